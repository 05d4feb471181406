#include "cli/neighbour.hpp"

#include "cli/layout.hpp"

#include <algorithm>

namespace gcx::cli {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
// More than the L2 cache holds, where so much is free.
constexpr std::size_t kBytes = 256 * kMebibyte;
// The simulation copies with this machine's CPU.
constexpr std::size_t kSimulatedBytes = kMebibyte / 4;
// Each loses 4 MiB of device memory for good.
constexpr uint32_t kMostNewContexts = 200;
constexpr uint32_t kGraphKernels = 8;
constexpr uint64_t kShortNs = 1'000;

} // namespace

NeighbourCalls::NeighbourCalls(const gcx_driver_info& driver, int32_t device, gcx_context a)
    : driver_(driver), work_(driver, device), a_(a), device_(driver_.device(device)) {
    check(gcx_stream_create(a, nullptr, stream_.out()));
    const gcx_resource whole = device_sms(device);
    check(gcx_resource_get_atom(&whole, 0, &kept_));
    Context first;
    check(gcx_context_create(&kept_, 1, nullptr, first.out()));
    const Pushed current(a);
    try {
        allocate(RawLibrary(driver), driver.simulated != 0);
        describe();
    } catch (...) {
        give_up();
        throw;
    }
}

void NeighbourCalls::allocate(const RawLibrary& library, bool simulated) {
    library.need("cuMemAlloc_v2", raw_.MemAlloc);
    library.need("cuMemFree_v2", raw_.MemFree);
    library.need("cuMemAllocAsync", raw_.MemAllocAsync);
    library.need("cuMemFreeAsync", raw_.MemFreeAsync);
    library.need("cuMemHostAlloc", raw_.MemHostAlloc);
    library.need("cuMemFreeHost", raw_.MemFreeHost);
    library.need("cuMemcpyHtoD_v2", raw_.MemcpyHtoD);
    library.need("cuMemcpyHtoDAsync_v2", raw_.MemcpyHtoDAsync);
    library.need("cuMemcpyDtoDAsync_v2", raw_.MemcpyDtoDAsync);
    library.need("cuMemsetD8_v2", raw_.MemsetD8);
    std::size_t free = 0;
    std::size_t total = 0;
    check_raw(driver_.MemGetInfo(&free, &total), "cuMemGetInfo");
    bytes_ = simulated ? kSimulatedBytes : std::clamp(free / 8, kMebibyte, kBytes);
    pageable_.resize(host_bytes());
    check_raw(raw_.MemAlloc(&from_, bytes_), "cuMemAlloc");
    check_raw(raw_.MemAlloc(&to_, bytes_), "cuMemAlloc");
    check_raw(raw_.MemHostAlloc(&pinned_, host_bytes(), 0), "cuMemHostAlloc");
}

// The smallest group that the driver gives, for contexts of its own.
void NeighbourCalls::describe() {
    RawResource sms;
    RawResource group;
    RawResource rest;
    unsigned one = 1;
    check_raw(driver_.DeviceGetDevResource(device_, &sms, RawDriver::kResourceTypeSm),
              "cuDeviceGetDevResource");
    check_raw(driver_.DevSmResourceSplitByCount(&group, &one, &sms, &rest, 0, 1),
              "cuDevSmResourceSplitByCount");
    check_raw(driver_.DevResourceGenerateDesc(&description_, &group, 1),
              "cuDevResourceGenerateDesc");
}

NeighbourCalls::~NeighbourCalls() {
    if (gcx_context_push(a_) != GCX_SUCCESS)
        return;
    give_up();
    gcx_context_pop(nullptr);
}

void NeighbourCalls::give_up() noexcept {
    for (const uint64_t memory : {from_, to_}) {
        if (memory != 0)
            raw_.MemFree(memory);
    }
    if (pinned_ != nullptr)
        raw_.MemFreeHost(pinned_);
}

void NeighbourCalls::nothing() {
    std::this_thread::yield();
}

void NeighbourCalls::memory() {
    uint64_t memory = 0;
    check_raw(raw_.MemAlloc(&memory, bytes_ / 4), "cuMemAlloc");
    check_raw(raw_.MemFree(memory), "cuMemFree");
}

void NeighbourCalls::stream_ordered_memory() {
    uint64_t memory = 0;
    check_raw(raw_.MemAllocAsync(&memory, bytes_ / 4, stream()), "cuMemAllocAsync");
    check_raw(raw_.MemFreeAsync(memory, stream()), "cuMemFreeAsync");
    finish();
}

void NeighbourCalls::pinned_memory() {
    void* memory = nullptr;
    check_raw(raw_.MemHostAlloc(&memory, host_bytes(), 0), "cuMemHostAlloc");
    check_raw(raw_.MemFreeHost(memory), "cuMemFreeHost");
}

void NeighbourCalls::pageable_copy() {
    check_raw(raw_.MemcpyHtoD(to_, pageable_.data(), host_bytes()), "cuMemcpyHtoD");
}

void NeighbourCalls::pinned_copy() {
    check_raw(raw_.MemcpyHtoDAsync(to_, pinned_, host_bytes(), stream()), "cuMemcpyHtoDAsync");
    finish();
}

void NeighbourCalls::default_stream_fill() {
    check_raw(raw_.MemsetD8(to_, 0, bytes_), "cuMemsetD8");
}

void NeighbourCalls::copy_within() {
    check_raw(raw_.MemcpyDtoDAsync(to_, from_, bytes_, stream()), "cuMemcpyDtoDAsync");
    finish();
}

void NeighbourCalls::library() {
    work_.load_and_launch(stream_.get(), kShortNs);
}

void NeighbourCalls::graph() {
    work_.launch_graph(stream_.get(), [&] {
        for (uint32_t i = 0; i < kGraphKernels; i++)
            work_.spin(stream_.get(), 1, kShortNs);
    });
    finish();
    work_.finish();
}

void NeighbourCalls::kept_context() {
    Context context;
    check(gcx_context_create(&kept_, 1, nullptr, context.out()));
}

void NeighbourCalls::new_context() {
    if (new_contexts_++ >= kMostNewContexts)
        return nothing();
    RawHandle green = nullptr;
    check_raw(
        driver_.GreenCtxCreate(&green, description_, device_, RawDriver::kGreenCtxDefaultStream),
        "cuGreenCtxCreate");
    check_raw(driver_.GreenCtxDestroy(green), "cuGreenCtxDestroy");
}

const std::array<NeighbourCalls::Call, kNeighbours> NeighbourCalls::kCalls = {{
    {"nothing", &NeighbourCalls::nothing},
    {"cuMemAlloc, cuMemFree", &NeighbourCalls::memory},
    {"cuMemAllocAsync, cuMemFreeAsync", &NeighbourCalls::stream_ordered_memory},
    {"cuMemHostAlloc, cuMemFreeHost", &NeighbourCalls::pinned_memory},
    {"copies from pageable memory", &NeighbourCalls::pageable_copy},
    {"copies from pinned memory", &NeighbourCalls::pinned_copy},
    {"fills in the default stream", &NeighbourCalls::default_stream_fill},
    {"large copies within the device", &NeighbourCalls::copy_within},
    {"a library loaded, a first launch, unloaded", &NeighbourCalls::library},
    {"a graph captured, made, launched, destroyed", &NeighbourCalls::graph},
    {"gcx_context_create of SMs that had one", &NeighbourCalls::kept_context},
    {"cuGreenCtxCreate, cuGreenCtxDestroy", &NeighbourCalls::new_context},
}};

const char* neighbour_name(std::size_t kind) {
    return NeighbourCalls::kCalls.at(kind).name;
}

void NeighbourCalls::make(std::size_t kind) {
    (this->*kCalls.at(kind).make)();
}

Neighbour::Neighbour(NeighbourCalls& calls, gcx_context a, std::size_t kind)
    : thread_([this, &calls, a, kind] { run(calls, a, kind); }) {
}

Neighbour::~Neighbour() {
    stop_ = true;
    thread_.join();
}

void Neighbour::run(NeighbourCalls& calls, gcx_context a, std::size_t kind) noexcept {
    try {
        const Pushed current(a);
        while (!stop_) {
            calls.make(kind);
            made_++;
            std::this_thread::yield(); // for where there is one processor for both
        }
    } catch (...) {
        error_ = std::current_exception();
        failed_ = true;
    }
}

uint32_t Neighbour::made() const {
    if (failed_)
        std::rethrow_exception(error_);
    return made_;
}

} // namespace gcx::cli
