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
    CHECK_NATIVE(cuDevicePrimaryCtxRetain, &primary_, device_);
    const Current current(primary_);
    CHECK_NATIVE(cuModuleLoadData, &module_, kPtx);
    CHECK_NATIVE(cuModuleGetFunction, &spinner_, module_, "gcx_spin");
    CHECK_NATIVE(cuStreamCreate, &clock_, CU_STREAM_NON_BLOCKING);
    CHECK_NATIVE(cuEventCreate, &start_, CU_EVENT_DEFAULT);
    CHECK_NATIVE(cuEventRecord, start_, clock_);
}

Work::~Work() {
    CHECK_NATIVE(cuEventDestroy, start_);
    CHECK_NATIVE(cuStreamDestroy, clock_);
    {
        const Current current(primary_);
        CHECK_NATIVE(cuModuleUnload, module_);
    }
    CHECK_NATIVE(cuDevicePrimaryCtxRelease, device_);
}

void Work::spin(CUstream stream, uint64_t nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    CHECK_NATIVE(cuLaunchKernel, spinner_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

float Work::free_at(CUstream stream) const {
    CUevent end = nullptr;
    const Current current(primary_);
    CHECK_NATIVE(cuEventCreate, &end, CU_EVENT_DEFAULT);
    CHECK_NATIVE(cuEventRecord, end, stream);
    CHECK_NATIVE(cuEventSynchronize, end);
    float milliseconds = 0;
    // NATIVE would expand to the headers' newest variant, which older drivers lack.
    const auto elapsed = sim_function<CUresult (*)(float*, CUevent, CUevent)>("cuEventElapsedTime");
    CHECK_EQ(elapsed(&milliseconds, start_, end), CUDA_SUCCESS);
    CHECK_NATIVE(cuEventDestroy, end);
    return milliseconds;
}

} // namespace support
