#include "work.hpp"

namespace support {
namespace {

constexpr char kPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry gcx_spin(.param .u64 gcx_spin_param_0)
{ ret; }
)";

} // namespace

Work::Work(int32_t device) : device_(device) {
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRetain)(&primary_, device_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleLoadData)(&module_, kPtx), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleGetFunction)(&spinner_, module_, "gcx_spin"), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuStreamCreate)(&clock_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventCreate)(&start_, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventRecord)(start_, clock_), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
}

Work::~Work() {
    CHECK_EQ(NATIVE(cuEventDestroy)(start_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuStreamDestroy)(clock_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuModuleUnload)(module_), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxRelease)(device_), CUDA_SUCCESS);
}

void Work::spin(CUstream stream, uint64_t nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    CHECK_EQ(NATIVE(cuLaunchKernel)(spinner_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
             CUDA_SUCCESS);
}

float Work::free_at(CUstream stream) const {
    CUevent end = nullptr;
    CHECK_EQ(NATIVE(cuCtxPushCurrent)(primary_), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventCreate)(&end, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK_EQ(NATIVE(cuCtxPopCurrent)(&popped), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventRecord)(end, stream), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventSynchronize)(end), CUDA_SUCCESS);
    float milliseconds = 0;
    // NATIVE would expand to the headers' newest variant, which older drivers lack.
    const auto elapsed = sim_function<CUresult (*)(float*, CUevent, CUevent)>("cuEventElapsedTime");
    CHECK_EQ(elapsed(&milliseconds, start_, end), CUDA_SUCCESS);
    CHECK_EQ(NATIVE(cuEventDestroy)(end), CUDA_SUCCESS);
    return milliseconds;
}

} // namespace support
