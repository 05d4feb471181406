// What private_tables.py runs of the CUDA runtime: one function for each way to submit work. Built as
// a library with static and with shared cudart. stream is NULL or a stream; results are CUDA's.
#include <cuda_runtime.h>

namespace {

constexpr size_t kSize = 4096;
constexpr int kWidth = 64;

__device__ int symbol[kSize / sizeof(int)];

__global__ void kernel(int* out) {
    if (out != nullptr)
        out[threadIdx.x] = static_cast<int>(blockIdx.x);
}

int* device_memory = nullptr;
int* other_memory = nullptr;
int* pinned_memory = nullptr;
int pageable_memory[kSize / sizeof(int)];
cudaGraphExec_t graph = nullptr;

cudaError_t capture_graph() {
    cudaStream_t stream = nullptr;
    cudaGraph_t captured = nullptr;
    cudaError_t error = cudaStreamCreate(&stream);
    if (error == cudaSuccess)
        error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) {
        kernel<<<1, 32, 0, stream>>>(device_memory);
        cudaMemsetAsync(device_memory, 0, kSize, stream);
        cudaMemcpyAsync(other_memory, device_memory, kSize, cudaMemcpyDeviceToDevice, stream);
        error = cudaStreamEndCapture(stream, &captured);
    }
    return error == cudaSuccess ? cudaGraphInstantiate(&graph, captured, 0) : error;
}

} // namespace

// Allocates the memory. Before that only a launch works, which then writes nothing.
extern "C" int prepare() {
    cudaError_t error = cudaMalloc(&device_memory, kSize);
    if (error == cudaSuccess)
        error = cudaMalloc(&other_memory, kSize);
    if (error == cudaSuccess)
        error = cudaMallocHost(&pinned_memory, kSize);
    return error == cudaSuccess ? capture_graph() : error;
}

#define WORK(name) extern "C" int name([[maybe_unused]] cudaStream_t stream)

WORK(launch) {
    kernel<<<1, 32, 0, stream>>>(device_memory);
    return cudaGetLastError();
}

WORK(launch_ex) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, device_memory);
}

WORK(launch_cooperative) {
    void* parameters[] = {&device_memory};
    return cudaLaunchCooperativeKernel(kernel, dim3(1), dim3(32), parameters, 0, stream);
}

WORK(copy_to_device) {
    return cudaMemcpy(device_memory, pageable_memory, kSize, cudaMemcpyHostToDevice);
}

WORK(copy_pinned_to_device) {
    return cudaMemcpy(device_memory, pinned_memory, kSize, cudaMemcpyHostToDevice);
}

WORK(copy_to_host) {
    return cudaMemcpy(pageable_memory, device_memory, kSize, cudaMemcpyDeviceToHost);
}

WORK(copy_in_device) {
    return cudaMemcpy(other_memory, device_memory, kSize, cudaMemcpyDeviceToDevice);
}

WORK(copy_2d) {
    return cudaMemcpy2D(other_memory, kWidth, device_memory, kWidth, kWidth / 2, 8,
                        cudaMemcpyDeviceToDevice);
}

WORK(copy_peer) {
    return cudaMemcpyPeer(other_memory, 0, device_memory, 0, kSize);
}

WORK(copy_async) {
    return cudaMemcpyAsync(pinned_memory, device_memory, kSize, cudaMemcpyDeviceToHost, stream);
}

WORK(copy_2d_async) {
    return cudaMemcpy2DAsync(other_memory, kWidth, device_memory, kWidth, kWidth / 2, 8,
                             cudaMemcpyDeviceToDevice, stream);
}

WORK(copy_to_symbol) {
    return cudaMemcpyToSymbol(symbol, pageable_memory, kSize);
}

WORK(copy_from_symbol) {
    return cudaMemcpyFromSymbol(pageable_memory, symbol, kSize);
}

WORK(copy_to_symbol_async) {
    return cudaMemcpyToSymbolAsync(symbol, pinned_memory, kSize, 0, cudaMemcpyHostToDevice, stream);
}

WORK(fill) {
    return cudaMemset(device_memory, 1, kSize);
}

WORK(fill_2d) {
    return cudaMemset2D(device_memory, kWidth, 1, kWidth / 2, 8);
}

WORK(fill_async) {
    return cudaMemsetAsync(device_memory, 1, kSize, stream);
}

WORK(launch_graph) {
    return cudaGraphLaunch(graph, stream);
}

WORK(allocate_async) {
    void* memory = nullptr;
    const cudaError_t error = cudaMallocAsync(&memory, kSize, stream);
    return error == cudaSuccess ? cudaFreeAsync(memory, stream) : error;
}

WORK(record_event) {
    cudaEvent_t event = nullptr;
    cudaError_t error = cudaEventCreate(&event);
    if (error == cudaSuccess)
        error = cudaEventRecord(event, stream);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(stream, event);
    if (error == cudaSuccess)
        error = cudaEventDestroy(event);
    return error;
}

WORK(call_host) {
    return cudaLaunchHostFunc(stream, [](void*) {}, nullptr);
}

WORK(synchronize) {
    return cudaStreamSynchronize(stream);
}
