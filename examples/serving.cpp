// Decode next to prefill, as docs/guides/decode-and-prefill.md describes it: two leases that change
// while prompts wait, graphs that are captured once, and a policy that keeps a promised time per
// token.
//
//     c++ -std=c++17 serving.cpp $(pkg-config --cflags --libs gcx) -I$CUDA_HOME/include -ldl
//     ./a.out [MILLISECONDS PROMISED]
//
// Without a GPU: GCX_DRIVER=sim:h100@13.0 before it. The kernels stand in for a model's: blocks
// that take a fixed time, so that a kernel takes the longer the fewer SMs it has.
#include <gcx.hpp>

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// The driver that gcx has opened: what an engine's own CUDA code would call.
class Cuda {
  public:
    Cuda() : library_(dlopen(gcx::driver_info().library, RTLD_NOW)) {
        if (library_ == nullptr)
            throw std::runtime_error(dlerror());
        find(retain, "cuDevicePrimaryCtxRetain");
        find(push, "cuCtxPushCurrent_v2");
        find(load_library, "cuLibraryLoadData");
        find(get_kernel, "cuLibraryGetKernel");
        find(get_function, "cuKernelGetFunction");
        find(allocate, "cuMemAlloc_v2");
        find(create_stream, "cuStreamCreate");
        find(begin_capture, "cuStreamBeginCapture_v2");
        find(end_capture, "cuStreamEndCapture");
        find(destroy_graph, "cuGraphDestroy");
        find(launch, "cuLaunchKernel");
    }

    decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
    decltype(&cuCtxPushCurrent) push = nullptr;
    decltype(&cuLibraryLoadData) load_library = nullptr;
    decltype(&cuLibraryGetKernel) get_kernel = nullptr;
    decltype(&cuKernelGetFunction) get_function = nullptr;
    decltype(&cuMemAlloc) allocate = nullptr;
    decltype(&cuStreamCreate) create_stream = nullptr;
    decltype(&cuStreamBeginCapture) begin_capture = nullptr;
    decltype(&cuStreamEndCapture) end_capture = nullptr;
    decltype(&cuGraphDestroy) destroy_graph = nullptr;
    decltype(&cuLaunchKernel) launch = nullptr;

  private:
    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library_, name));
        if (function == nullptr)
            throw std::runtime_error(std::string("the driver has no ") + name);
    }
    void* library_;
};

void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(std::string(what) + ": CUresult " + std::to_string(result));
}

// A graph of gcx.h: captured once, launched on whatever SMs a stream has.
class Graph {
  public:
    explicit Graph(CUgraph captured) { gcx::check(gcx_graph_create(captured, nullptr, &graph_)); }
    Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
    Graph& operator=(Graph&&) = delete;
    ~Graph() { gcx_graph_destroy(graph_); }

    void prepare(const gcx::lease& lease) const {
        const gcx_resource sms = lease.get_resource().value();
        gcx::check(gcx_graph_prepare(graph_, &sms, 1, GCX_PREPARE_FOR_LEASES));
    }
    void launch(const gcx::stream& stream) const {
        gcx_stream const one = stream.handle();
        gcx::check(gcx_graph_launch(graph_, &one, 1));
    }
    uint64_t executables() const {
        gcx_graph_info info = GCX_GRAPH_INFO_INIT;
        gcx::check(gcx_graph_get_info(graph_, &info));
        return info.instantiated;
    }

  private:
    gcx_graph graph_ = nullptr;
};

// Each block notes its SM and lasts spin_ns. The simulated driver knows this kernel by its name.
constexpr char kKernel[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)
.maxntid 1024, 1, 1
{
    .reg .pred %p<3>;
    .reg .b32  %r<5>;
    .reg .b64  %rd<6>;
    mov.u64        %rd1, %globaltimer;
    mov.u32        %r1, %smid;
    mov.u32        %r2, %tid.x;
    setp.ne.u32    %p1, %r2, 0;
    @%p1 bra       MORE;
    ld.param.u64   %rd2, [counts];
    mul.wide.u32   %rd3, %r1, 4;
    add.s64        %rd2, %rd2, %rd3;
    red.global.add.u32 [%rd2], 1;
MORE:
    mov.u64        %rd4, %globaltimer;
    sub.s64        %rd4, %rd4, %rd1;
    ld.param.u32   %r3, [spin_ns];
    cvt.u64.u32    %rd5, %r3;
    setp.lt.u64    %p2, %rd4, %rd5;
    @%p2 bra       MORE;
    ret;
}
)";

// The engine's part: what runs, captured as graphs on a plain stream.
class Model {
  public:
    static constexpr unsigned kPieces = 60; // of a prompt

    Model() {
        CUcontext primary = nullptr;
        CUlibrary library = nullptr;
        CUkernel kernel = nullptr;
        check(cuda_.retain(&primary, 0), "the primary context");
        check(cuda_.push(primary), "making it current");
        check(cuda_.load_library(&library, kKernel, nullptr, nullptr, 0, nullptr, nullptr, 0),
              "loading the kernel");
        check(cuda_.get_kernel(&kernel, library, "gcx_probe"), "finding the kernel");
        check(cuda_.get_function(&kernel_, kernel), "getting its function");
        check(cuda_.allocate(&counts_, kMaxSms * sizeof(uint32_t)), "its memory");
        check(cuda_.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "a plain stream");
    }

    // A decode step: consecutive kernels that don't fill the GPU.
    Graph step() { return capture(20, 96, 100'000); }
    // A piece of a prompt: one kernel that fills the GPU several times.
    Graph piece() { return capture(1, 1056, 100'000); }

  private:
    static constexpr uint32_t kMaxSms = 1024;

    Graph capture(unsigned kernels, unsigned blocks, uint32_t nanoseconds) {
        CUgraph captured = nullptr;
        uint32_t max_sms = kMaxSms;
        void* arguments[] = {&counts_, &max_sms, &nanoseconds};
        check(cuda_.begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "to capture");
        for (unsigned i = 0; i < kernels; i++)
            check(cuda_.launch(kernel_, blocks, 1, 1, 1024, 1, 1, 0, stream_, arguments, nullptr),
                  "launching");
        check(cuda_.end_capture(stream_, &captured), "capturing");
        Graph graph(captured); // has a copy
        check(cuda_.destroy_graph(captured), "destroying a graph");
        return graph;
    }

    Cuda cuda_;
    CUfunction kernel_ = nullptr;
    CUdeviceptr counts_ = 0;
    CUstream stream_ = nullptr;
};

// The leases of decode and prefill, which together have all SMs. A side without SMs is parked; the
// other side's next work waits, on the device, for its last work.
class Sides {
  public:
    struct Side {
        gcx::lease lease;
        gcx::stream stream{lease}; // follows the lease
    };
    Side prefill{gcx::lease(0, 1, {"prefill"})};
    Side decode{gcx::lease(0, gcx::rest, {"decode"})};
    unsigned changes = 0;

    explicit Sides(uint32_t sm_count) : sm_count_(sm_count) { resize(sm_count); }

    // Gives decode this many SMs and prefill the others. No host thread waits.
    void arrange(uint32_t decode_sms) {
        if (decode_sms == now_)
            return;
        resize(decode_sms);
        changes++;
    }

  private:
    void resize(uint32_t decode_sms) {
        const gcx::lease_size none(decode.lease, gcx::parked);
        const gcx::lease_size all(prefill.lease, gcx::parked);
        gcx::resize({decode_sms == 0 ? none : gcx::lease_size(decode.lease, decode_sms),
                     decode_sms == sm_count_ ? all : gcx::lease_size(prefill.lease, gcx::rest)});
        now_ = decode_sms;
    }

    uint32_t sm_count_;
    uint32_t now_ = 0; // decode's
};

// Next to prompts decode has the fewest SMs on which a step keeps the promise.
class Policy {
  public:
    // Measures decode on each number of SMs, and prefill on the others.
    Policy(double promise, uint32_t sm_count, Sides& sides, const Graph& step, const Graph& piece)
        : whole_{sm_count, 0} {
        for (const uint32_t part : {sm_count / 6, sm_count / 4, sm_count * 3 / 8, sm_count}) {
            const uint32_t sms = part == sm_count ? part : (part + 7) / 8 * 8;
            sides.arrange(sms);
            const double step_ms = measure(sides.decode, step);
            const double piece_ms = measure(sides.prefill, piece);
            std::printf("  decode on %3u SMs: a step %.2f ms; prefill on %3u: a piece %.2f ms\n",
                        sms, step_ms, sm_count - sms, piece_ms);
            const bool is_split = sms < sm_count && step_ms <= promise * kOfPromise;
            if (is_split && next_to_prompts_.split == 0)
                next_to_prompts_ = {sms, static_cast<unsigned>(std::ceil(step_ms / piece_ms))};
        }
        if (next_to_prompts_.split == 0)
            throw std::runtime_error("next to prompts a step takes longer than was promised");
    }

    // The work of one token's time.
    struct Plan {
        uint32_t split = 0;  // decode's SMs
        unsigned pieces = 0; // of prompts, at the same time
    };
    Plan plan(unsigned pieces) const {
        return pieces == 0
                   ? whole_
                   : Plan{next_to_prompts_.split, std::min(pieces, next_to_prompts_.pieces)};
    }

  private:
    static constexpr double kOfPromise = 0.97; // the rest is for launching, and for slow steps

    static double measure(const Sides::Side& side, const Graph& graph) {
        if (side.lease.sm_count() == 0)
            return 0;
        graph.prepare(side.lease); // so that no launch creates the executable
        const gcx::event start(0, gcx::event_flags::timing), end(0, gcx::event_flags::timing);
        graph.launch(side.stream);
        side.stream.record(start);
        graph.launch(side.stream);
        side.stream.record(end);
        end.synchronize();
        return end.elapsed_since(start).count();
    }

    Plan whole_;
    Plan next_to_prompts_;
};

double percentile(std::vector<double> times, double share) {
    std::sort(times.begin(), times.end());
    return times.at(static_cast<std::size_t>(share * static_cast<double>(times.size() - 1)));
}

void serve(double promise) {
    const gcx_device_info device = gcx::device(0).info();
    std::printf("%s, %u SMs; promised: %g ms from token to token\n", device.name, device.sm_count,
                promise);
    Model model;
    const Graph step = model.step(), piece = model.piece();
    Sides sides(device.sm_count);
    const Policy policy(promise, device.sm_count, sides, step, piece);

    // Prompts arrive at these tokens.
    std::deque<unsigned> coming = {3, 4, 30, 31, 32};
    std::deque<double> waiting; // arrival times of the prompts without a first token
    unsigned pieces = 0;        // their pieces that are not launched
    std::deque<std::pair<gcx::event, double>> last_pieces;
    std::vector<double> tokens, firsts;
    const gcx::event began(0, gcx::event_flags::timing);
    sides.arrange(device.sm_count);
    step.launch(sides.decode.stream);
    sides.decode.stream.record(began);

    const auto launch_piece = [&] {
        piece.launch(sides.prefill.stream);
        if (--pieces % Model::kPieces == 0) {
            gcx::event end(0, gcx::event_flags::timing);
            sides.prefill.stream.record(end);
            last_pieces.emplace_back(std::move(end), waiting.front());
            waiting.pop_front();
        }
    };
    const auto answer = [&](bool all) {
        while (!last_pieces.empty() && (all || last_pieces.front().first.query())) {
            const auto& [end, came] = last_pieces.front();
            end.synchronize();
            firsts.push_back(end.elapsed_since(began).count() - came);
            last_pieces.pop_front();
        }
    };
    Policy::Plan shown;
    double now = 0;
    for (unsigned token = 0; !coming.empty() || pieces > 0; token++) {
        while (!coming.empty() && coming.front() <= token) {
            coming.pop_front();
            waiting.push_back(now);
            pieces += Model::kPieces;
        }
        const Policy::Plan plan = policy.plan(pieces);
        sides.arrange(plan.split);
        step.launch(sides.decode.stream);
        const gcx::event end(0, gcx::event_flags::timing);
        sides.decode.stream.record(end);
        for (unsigned i = 0; i < plan.pieces; i++)
            launch_piece();
        end.synchronize();
        tokens.push_back(end.elapsed_since(began).count() - now);
        now += tokens.back();
        answer(false);
        if (plan.split != shown.split)
            std::printf("  token %3u: decode on %3u SMs, %4u pieces left\n", token, plan.split,
                        pieces);
        shown = plan;
    }
    answer(true);
    std::printf("%zu tokens: p50 %.2f, p99 %.2f ms; promise %s\n", tokens.size(),
                percentile(tokens, 0.5), percentile(tokens, 0.99),
                percentile(tokens, 0.99) <= promise ? "kept" : "BROKEN");
    std::printf("%zu prompts: first token after %.1f ms in the median\n", firsts.size(),
                percentile(firsts, 0.5));
    std::printf("%u changes of the leases; 2 graphs, each captured once, %llu executables\n",
                sides.changes,
                static_cast<unsigned long long>(step.executables() + piece.executables()));
}

} // namespace

int main(int count, char** words) {
    try {
        const double promise = count > 1 ? std::atof(words[1]) : 6.0;
        if (!(promise > 0))
            throw std::runtime_error("usage: serving [MILLISECONDS PROMISED], a number above 0");
        // Streams that wait must not hold up all launches of the process; before CUDA starts.
        gcx::check(gcx_queue_request_connections(GCX_MAX_CONNECTIONS));
        serve(promise);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "serving: %s\n", error.what());
        return 1;
    }
}
