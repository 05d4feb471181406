// A CUDA program that does not use gcx. Prints as JSON which SMs the kernels of each kind of stream
// and thread ran on, and the reported SM counts; with the word threads, the memory of threads that
// have ended. Built with static and with shared cudart.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t error = (call);                                                          \
        if (error != cudaSuccess) {                                                                \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

constexpr int kBlocks = 4096;
constexpr int kMaxSms = 1024;
constexpr int kThreads = 2000;

// Lasts long enough that blocks fill all SMs.
__global__ void note_sm(int* seen) {
    unsigned sm = 0;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0)
        seen[sm] = 1;
    const long long begin = clock64();
    while (clock64() - begin < 20000) {
    }
}

__global__ void nothing() {
}

__global__ void together(int* arrived) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0)
        atomicAdd(arrived, 1);
    cooperative_groups::this_grid().sync();
}

int* buffer() {
    int* seen = nullptr;
    CHECK(cudaMalloc(&seen, kMaxSms * sizeof(int)));
    CHECK(cudaMemset(seen, 0, kMaxSms * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    return seen;
}

bool first = true;

void report(const char* name, const int* seen) {
    CHECK(cudaDeviceSynchronize());
    std::vector<int> host(kMaxSms);
    CHECK(cudaMemcpy(host.data(), seen, kMaxSms * sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%s\"%s\": [", first ? "" : ", ", name);
    first = false;
    bool begun = false;
    for (int sm = 0; sm < kMaxSms; sm++) {
        if (host[sm] == 0)
            continue;
        std::printf("%s%d", begun ? ", " : "", sm);
        begun = true;
    }
    std::printf("]");
}

void in_stream(const char* name, cudaStream_t stream) {
    int* const seen = buffer();
    note_sm<<<kBlocks, 128, 0, stream>>>(seen);
    // The error is printed, and no SM is reported; the other kinds still give results.
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
        std::fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(error));
    report(name, seen);
}

void in_graph() {
    int* const seen = buffer();
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    note_sm<<<kBlocks, 128, 0, stream>>>(seen);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    report("captured graph", seen);
}

void in_made_graph() {
    int* seen = buffer();
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    void* arguments[] = {&seen};
    cudaKernelNodeParams node = {};
    node.func = reinterpret_cast<void*>(note_sm);
    node.gridDim = dim3(kBlocks);
    node.blockDim = dim3(128);
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, nullptr));
    report("graph made by hand", seen);
}

// Returns the SMs of the largest cooperative grid that the runtime reports as possible; -1: none.
int cooperative_blocks() {
    int each = 0;
    int sms = 0;
    int arrived = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, together, 128, 0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    int* const count = buffer();
    void* arguments[] = {const_cast<int**>(&count)};
    if (cudaLaunchCooperativeKernel(together, dim3(each * sms), dim3(128), arguments, 0, nullptr) !=
        cudaSuccess)
        return -1;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&arrived, count, sizeof arrived, cudaMemcpyDeviceToHost));
    return arrived == each * sms ? sms : -1;
}

void work_in_threads(int count) {
    for (int i = 0; i < count; i++)
        std::thread([] {
            nothing<<<1, 32, 0, cudaStreamPerThread>>>();
            CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        }).join();
}

// Returns the bytes of device memory lost after threads came, used their default streams, and
// ended.
long long lost_to_threads() {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    work_in_threads(100);
    CHECK(cudaMemGetInfo(&before, &total));
    work_in_threads(kThreads);
    CHECK(cudaMemGetInfo(&after, &total));
    return static_cast<long long>(before) - static_cast<long long>(after);
}

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "threads") == 0) {
        std::printf("{\"lost_to_threads\": %lld}\n", lost_to_threads());
        return 0;
    }
    std::printf("{\"seen\": {");
    in_stream("default stream", nullptr);
    in_stream("legacy default stream", cudaStreamLegacy);
    in_stream("default stream per thread", cudaStreamPerThread);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    in_stream("stream", stream);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    in_stream("non-blocking stream", stream);
    int least = 0;
    int greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    in_stream("stream with priority", stream);
    in_graph();
    in_made_graph();
    std::thread([] { in_stream("another thread's default stream", nullptr); }).join();
    std::thread([] { in_stream("another thread's own default", cudaStreamPerThread); }).join();
    std::thread([] {
        cudaStream_t own;
        CHECK(cudaStreamCreate(&own));
        in_stream("another thread's stream", own);
    }).join();
    int sms = 0;
    cudaDeviceProp properties;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("}, \"attribute\": %d, \"properties\": %d, \"cooperative\": %d}\n", sms,
                properties.multiProcessorCount, cooperative_blocks());
    return 0;
}
