// The SM count that programs inside a partition see, and what they can do with those SMs.
#include "caller.hpp"
#include "inside.hpp"

namespace {

using inside::Inside;

int attribute(CUdevice_attribute which, CUdevice device = 0) {
    int value = -1;
    CU_OK(cuDeviceGetAttribute, &value, which, device);
    return value;
}

int sms() {
    return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

unsigned device_sms(CUdevResource* resource) {
    CU_OK(cuDeviceGetDevResource, 0, resource, CU_DEV_RESOURCE_TYPE_SM);
    return resource->sm.smCount;
}

void check_limits(int count) {
    const CUfunction function = inside::kernel();
    int blocks = 0;
    int grid = 0;
    int block = 0;
    CU_OK(cuOccupancyMaxPotentialBlockSize, &grid, &block, function, nullptr, 0, 0);
    CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, block, 0);
    CHECK_EQ(grid, blocks * count);
    const auto shared_of = [](int) -> std::size_t { return 16384; };
    CU_OK(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, function, shared_of, 0, 256, 0);
    CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, block, 16384);
    CHECK_EQ(grid, blocks * count);
}

// The largest cooperative launch is the one that a program computes from the reported count.
void check_cooperative(int count) {
    const CUfunction function = inside::kernel();
    int blocks = 0;
    CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, 128, 0);
    const auto most = static_cast<unsigned>(blocks * count);
    CU_OK(cuLaunchCooperativeKernel, function, most, 1, 1, 128, 1, 1, 0, nullptr, nullptr);
    CHECK_EQ(
        CU(cuLaunchCooperativeKernel)(function, most + 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr),
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

void count_in_partition_is_the_partitions(const Inside&) {
    int value = 0;
    CHECK_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
             CUDA_ERROR_NOT_INITIALIZED);
    CU_OK(cuInit, 0);
    CHECK_EQ(sms(), 24); // before there is any context
    CHECK_EQ(support::sim::counts().primary_retains, 0U);
    inside::use_primary();
    CHECK_EQ(sms(), 24);
    CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    CHECK_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
    CHECK_EQ(CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 7),
             CUDA_ERROR_INVALID_DEVICE);
    check_limits(24);
    check_cooperative(24);
}

void count_of_device_runs_in_partition(const Inside& inside) {
    inside::use_primary();
    CHECK_EQ(sms(), 132);
    inside::check_runs(inside.sms[0], 1,
                       [&] { CHECK_EQ(inside::launch(inside::kernel(), nullptr), CUDA_SUCCESS); });
}

// An old cuBLAS leaves parts of products unwritten if it sees a partition's count.
void count_seen_depends_on_caller(int old_cublas, int others) {
    CU_OK(cuInit, 0);
    const auto ask = CU(cuDeviceGetAttribute);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(count_seen_by("CUBLAS_OLD", ask), old_cublas);
        CHECK_EQ(count_seen_by("CUBLAS_UNKNOWN", ask), old_cublas);
        CHECK_EQ(count_seen_by("CUBLAS_NEW", ask), others);
        CHECK_EQ(count_seen_by("OTHER", ask), others);
        CHECK_EQ(sms(), others);
        inside::use_primary();
    }
}

// A program with green contexts divides the partition like a device.
void green_context_divides_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    CUdevResource whole{};
    CUdevResource groups[3]{};
    CUdevResource rest{};
    unsigned count = 3;
    CHECK_EQ(device_sms(&whole), 24U);
    CU_OK(cuDevSmResourceSplitByCount, groups, &count, &whole, &rest, 0, 8);
    CHECK_EQ(count, 3U);
    CHECK_EQ(groups[0].sm.smCount, 8U);
    CUdevResourceDesc descriptor = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CU_OK(cuDevResourceGenerateDesc, &descriptor, groups, 1);
    CU_OK(cuGreenCtxCreate, &green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CU_OK(cuCtxFromGreenCtx, &context, green);
    inside::use_primary();
    CU_OK(cuCtxPushCurrent, context);
    CUcontext current = nullptr;
    CU_OK(cuCtxGetCurrent, &current);
    CHECK(current == context); // of the program
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    support::sim::note_runs(1);
    CHECK_EQ(inside::launch(inside::kernel(), stream), CUDA_SUCCESS);
    const gcx_sim_run run = support::sim::runs().at(0);
    CHECK_EQ(run.sm_count, 8U);
    for (std::size_t i = 0; i < inside.sms[0].size(); i++)
        CHECK_EQ(run.sms[i] & ~inside.sms[0][i], 0U);
    CHECK_EQ(sms(), 24); // of the device, as without gcx
    CU_OK(cuCtxPopCurrent, &current);
    CHECK(current == context);
    CU_OK(cuCtxGetDevResource, nullptr, &whole, CU_DEV_RESOURCE_TYPE_SM);
    CHECK_EQ(whole.sm.smCount, 24U);
    CUcontext primary = nullptr;
    CU_OK(cuCtxGetCurrent, &primary);
    CU_OK(cuCtxGetDevResource, primary, &whole, CU_DEV_RESOURCE_TYPE_SM);
    CHECK_EQ(whole.sm.smCount, 24U);
    CU_OK(cuStreamDestroy, stream);
    CU_OK(cuGreenCtxDestroy, green);
}

// A null descriptor means the whole device, which is the partition here.
void green_context_without_descriptor_is_partition(const Inside& inside) {
    CU_OK(cuInit, 0);
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CU_OK(cuGreenCtxCreate, &green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    CU_OK(cuCtxFromGreenCtx, &context, green);
    CU_OK(cuCtxPushCurrent, context);
    inside::check_runs(inside.sms[0], 1,
                       [&] { CHECK_EQ(inside::launch(inside::kernel(), nullptr), CUDA_SUCCESS); });
}

} // namespace

int main() {
    for (const std::string& driver : inside::kDrivers) {
        const inside::Setup setup = {.spec = "h100@" + driver};
        inside::run(setup, count_in_partition_is_the_partitions);
        inside::run(setup, green_context_divides_partition);
        inside::run(setup, green_context_without_descriptor_is_partition);
    }
    using gcx::interpose::ReportedCount;
    inside::run({.reported_count = ReportedCount::kPartition},
                count_in_partition_is_the_partitions);
    inside::run({.reported_count = ReportedCount::kDevice}, count_of_device_runs_in_partition);
    inside::run({.reported_count = ReportedCount::kAuto},
                [](const Inside&) { count_seen_depends_on_caller(132, 24); });
    inside::run({.reported_count = ReportedCount::kPartition},
                [](const Inside&) { count_seen_depends_on_caller(24, 24); });
    inside::run({.reported_count = ReportedCount::kDevice},
                [](const Inside&) { count_seen_depends_on_caller(132, 132); });
    return check::summary("counts inside");
}
