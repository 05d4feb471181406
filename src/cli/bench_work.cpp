#include "cli/bench_work.hpp"

#include "cli/layout.hpp"
#include "cli/library_message.hpp"

#include <chrono>

namespace gcx::cli {
namespace {

constexpr std::size_t kCopiedBytes = 1U << 20;
constexpr int kCaptureThreadLocal = 1;

// gcx_spin(uint64_t nanoseconds), which the simulated driver knows by its name.
constexpr char kSpin[] = R"(
.version 6.3
.target sm_70
.address_size 64

.visible .entry gcx_spin(
    .param .u64 nanoseconds
)
{
    .reg .pred  %p<2>;
    .reg .b64   %rd<5>;

    ld.param.u64    %rd1, [nanoseconds];
    mov.u64         %rd2, %globaltimer;
MORE:
    mov.u64         %rd3, %globaltimer;
    sub.s64         %rd4, %rd3, %rd2;
    setp.lt.u64     %p1, %rd4, %rd1;
    @%p1 bra        MORE;
    ret;
}
)";

} // namespace

RawHandle native_stream(gcx_stream stream) {
    CUstream_st* const found = gcx_stream_native(stream);
    if (found == nullptr)
        throw Failure(GCX_ERROR_INVALID_HANDLE, library_message());
    return found;
}

BenchClock::BenchClock(const gcx_driver_info& driver) {
    if (driver.simulated != 0)
        RawLibrary(driver).need("gcx_sim_get_counts", get_counts_);
}

double BenchClock::now() const {
    if (get_counts_ != nullptr) {
        gcx_sim_counts counts{};
        get_counts_(&counts);
        return static_cast<double>(counts.clock_ns) / 1000;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

BenchWork::BenchWork(const gcx_driver_info& driver, int32_t device) : bytes_(kCopiedBytes) {
    const RawLibrary library(driver);
    library.need("cuLibraryLoadData", raw_.LibraryLoadData);
    library.need("cuLibraryUnload", raw_.LibraryUnload);
    library.need("cuLibraryGetKernel", raw_.LibraryGetKernel);
    library.need("cuLaunchKernel", raw_.LaunchKernel);
    library.need("cuMemAlloc_v2", raw_.MemAlloc);
    library.need("cuMemFree_v2", raw_.MemFree);
    library.need("cuMemcpyHtoDAsync_v2", raw_.MemcpyHtoDAsync);
    library.need("cuStreamBeginCapture_v2", raw_.StreamBeginCapture);
    library.need("cuStreamEndCapture", raw_.StreamEndCapture);
    library.need("cuGraphInstantiateWithFlags", raw_.GraphInstantiate);
    library.need("cuGraphLaunch", raw_.GraphLaunch);
    library.need("cuGraphExecDestroy", raw_.GraphExecDestroy);
    library.need("cuGraphDestroy", raw_.GraphDestroy);
    const gcx_resource whole = device_sms(device);
    check(gcx_context_create(&whole, 1, nullptr, whole_.out()));
    const Pushed current(whole_.get());
    try {
        kernel_ = load(&library_);
        check_raw(raw_.MemAlloc(&memory_, kCopiedBytes), "cuMemAlloc");
    } catch (...) {
        give_up();
        throw;
    }
}

BenchWork::~BenchWork() {
    if (gcx_context_push(whole_.get()) != GCX_SUCCESS)
        return;
    give_up();
    gcx_context_pop(nullptr);
}

void BenchWork::give_up() noexcept {
    for (RawHandle const graph : graphs_)
        raw_.GraphExecDestroy(graph);
    graphs_.clear();
    if (memory_ != 0)
        raw_.MemFree(memory_);
    if (library_ != nullptr)
        raw_.LibraryUnload(library_);
}

RawHandle BenchWork::load(RawHandle* library) const {
    RawHandle kernel = nullptr;
    check_raw(raw_.LibraryLoadData(library, kSpin, nullptr, nullptr, 0, nullptr, nullptr, 0),
              "cuLibraryLoadData");
    check_raw(raw_.LibraryGetKernel(&kernel, *library, "gcx_spin"), "cuLibraryGetKernel");
    return kernel;
}

void BenchWork::load_and_launch(gcx_stream stream, uint64_t nanoseconds) const {
    RawHandle library = nullptr;
    try {
        launch(load(&library), stream, 1, 32, nanoseconds);
        check(gcx_stream_synchronize(stream));
    } catch (...) {
        if (library != nullptr)
            raw_.LibraryUnload(library);
        throw;
    }
    check_raw(raw_.LibraryUnload(library), "cuLibraryUnload");
}

void BenchWork::launch(RawHandle kernel, gcx_stream stream, uint32_t blocks, uint32_t threads,
                       uint64_t nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    check_raw(raw_.LaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, native_stream(stream),
                                arguments, nullptr),
              "cuLaunchKernel");
}

void BenchWork::spin(gcx_stream stream, uint32_t blocks, uint64_t nanoseconds) const {
    launch(kernel_, stream, blocks, 32, nanoseconds);
}

void BenchWork::fill(gcx_stream stream, uint32_t sm_count, uint64_t nanoseconds) const {
    constexpr uint32_t kThreads = 1024; // two such blocks, or one, are all that an SM has room for
    launch(kernel_, stream, 2 * sm_count, kThreads, nanoseconds);
}

void BenchWork::copy(gcx_stream stream) const {
    check_raw(raw_.MemcpyHtoDAsync(memory_, bytes_.data(), bytes_.size(), native_stream(stream)),
              "cuMemcpyHtoDAsync");
}

void BenchWork::wait(gcx_stream stream, gcx_stream other) const {
    gcx_stream_info info = GCX_STREAM_INFO_INIT;
    check(gcx_stream_get_info(stream, &info));
    Event event;
    check(gcx_event_create(info.device, 0, event.out()));
    check(gcx_stream_record(other, event.get()));
    check(gcx_stream_wait(stream, event.get()));
    event.destroy();
}

RawHandle BenchWork::launch_graph(gcx_stream stream, const std::function<void()>& body) {
    check_raw(raw_.StreamBeginCapture(native_stream(stream), kCaptureThreadLocal),
              "cuStreamBeginCapture");
    RawHandle graph = nullptr;
    try {
        body();
    } catch (...) {
        if (raw_.StreamEndCapture(native_stream(stream), &graph) == 0)
            raw_.GraphDestroy(graph);
        throw;
    }
    check_raw(raw_.StreamEndCapture(native_stream(stream), &graph), "cuStreamEndCapture");
    RawHandle exec = nullptr;
    const Pushed current(whole_.get());
    const RawResult made = raw_.GraphInstantiate(&exec, graph, 0);
    raw_.GraphDestroy(graph);
    check_raw(made, "cuGraphInstantiate");
    graphs_.push_back(exec);
    launch_again(stream, exec);
    return exec;
}

void BenchWork::launch_again(gcx_stream stream, RawHandle graph) const {
    check_raw(raw_.GraphLaunch(graph, native_stream(stream)), "cuGraphLaunch");
}

void BenchWork::finish() {
    while (!graphs_.empty()) {
        check_raw(raw_.GraphExecDestroy(graphs_.back()), "cuGraphExecDestroy");
        graphs_.pop_back();
    }
}

} // namespace gcx::cli
