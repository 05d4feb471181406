// facts/h200-driver580-queues.txt: which launches wait. Simulated kernels share no SMs, so that
// kernels that fill A run concurrently here. So durations are compared only for one connection.
#include "replay.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

using namespace sim_test;

namespace {

constexpr uint64_t kKernelNs = 300'000;
constexpr double kWaitsUs = 500; // longer latencies mean that a launch waited

// A process with a number of connections, and partitions A with 108 SMs and B with 24.
class Machine {
  public:
    explicit Machine(const std::string& connections, const char* machine = "h200@13.0",
                     bool require_workqueues = false) {
        if (connections.empty())
            unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
        else
            setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections.c_str(), 1);
        simulate(machine);
        primary_.emplace();
        const Split made = split(query(), 1, 0, 24);
        b_ = partition(made.groups[0], require_workqueues);
        a_ = partition(made.remainder, require_workqueues);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() { CHECK_OK(cuCtxSynchronize()); }

    bool has_the_sms() { return primary_->sms(b_->stream).size() == 24; }

    CUstream stream_of_a(int priority = 0) {
        CUstream stream = nullptr;
        CHECK_OK(later().green_stream_create(&stream, a_->green, CU_STREAM_NON_BLOCKING, priority));
        return stream;
    }

    void spin(CUstream stream, uint64_t nanoseconds, int times = 1) {
        for (int i = 0; i < times; i++)
            CHECK_OK(primary_->spin(stream, nanoseconds));
    }

    void queue_kernels(unsigned streams, int priority = 0) {
        for (unsigned i = 0; i < streams; i++)
            spin(stream_of_a(priority), kKernelNs, 8);
    }

    void wait_for_an_event(unsigned streams) {
        CUstream busy = stream_of_a();
        spin(busy, 20'000'000);
        CUevent event = new_event();
        CHECK_OK(cuEventRecord(event, busy));
        for (unsigned i = 0; i < streams; i++)
            CHECK_OK(cuStreamWaitEvent(stream_of_a(), event, 0));
        CHECK_OK(cuEventDestroy_v2(event));
    }

    // Launches a graph of parallel branches with kernels in sequence.
    void launch_graph(unsigned branches, unsigned kernels) {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
        uint64_t nanoseconds = kKernelNs;
        void* arguments[] = {&nanoseconds};
        kernel.func = primary_->spinner;
        kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
        kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
        kernel.kernelParams = arguments;
        CUgraphExec exec = nullptr;
        CUgraph graph = new_graph();
        CHECK_OK(cuCtxPushCurrent_v2(a_->context));
        for (unsigned branch = 0; branch < branches; branch++) {
            CUgraphNode before = nullptr;
            for (unsigned i = 0; i < kernels; i++)
                CHECK_OK(cuGraphAddKernelNode_v2(&before, graph, i == 0 ? nullptr : &before,
                                                 i == 0 ? 0 : 1, &kernel));
        }
        CHECK_OK(cuCtxPopCurrent_v2(nullptr));
        CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        CHECK_OK(cuGraphLaunch(exec, stream_of_a()));
        CHECK_OK(cuGraphExecDestroy(exec));
        CHECK_OK(cuGraphDestroy(graph));
    }

    // Return the latency of a 10 us kernel and of a copy on B.
    double latency(int priority = 0) {
        CUstream stream = nullptr;
        CHECK_OK(later().green_stream_create(&stream, b_->green, CU_STREAM_NON_BLOCKING, priority));
        return taken_us([&] {
            spin(stream, 10'000);
            CHECK_OK(cuStreamSynchronize(stream));
        });
    }
    double latency_of_copy() {
        static const char bytes[1U << 20] = {};
        CUdeviceptr memory = 0;
        CHECK_OK(cuMemAlloc_v2(&memory, sizeof bytes));
        return taken_us([&] {
            CHECK_OK(cuMemcpyHtoDAsync_v2(memory, bytes, sizeof bytes, b_->stream));
            CHECK_OK(cuStreamSynchronize(b_->stream));
        });
    }

  private:
    static std::unique_ptr<Partition> partition(const CUdevResource& sms, bool require_workqueues) {
        std::vector<CUdevResource> resources = {sms};
        if (require_workqueues) {
            CUdevResource queues{};
            CHECK_OK(cuDeviceGetDevResource(0, &queues, cu::kResourceWorkqueueConfig));
            auto fields = cu::get_fields<cu::WorkqueueFields>(queues);
            fields.scope = cu::kWorkqueueScopeBalanced;
            cu::set_fields(queues, fields);
            resources.push_back(queues);
        }
        return std::make_unique<Partition>(resources);
    }

    std::optional<Primary> primary_;
    std::unique_ptr<Partition> a_;
    std::unique_ptr<Partition> b_;
};

double latency_next_to(const std::string& connections, const std::function<void(Machine&)>& work) {
    Machine machine(connections);
    work(machine);
    return machine.latency();
}

bool waits_next_to(const std::string& connections, const std::function<void(Machine&)>& work) {
    return latency_next_to(connections, work) > kWaitsUs;
}

// Returns numbers of a line, which may contain commas, from a position on.
std::vector<double> numbers_behind(const Line& line, std::size_t begin, std::size_t count) {
    std::string digits;
    for (const char c : line.text.substr(begin))
        if (c != ',')
            digits += c;
    std::vector<double> numbers;
    const char* at = digits.c_str();
    while (numbers.size() < count) {
        if (std::strchr("0123456789", *at) == nullptr) {
            at++;
            continue;
        }
        char* end = nullptr;
        numbers.push_back(std::strtod(at, &end));
        at = end;
    }
    return numbers;
}

// A row of the first table: whether B waits, longer for each K, and how long with one connection.
Kind row(const char* beginning, const std::string& connections) {
    return states(beginning, [beginning, connections](const Line& line) {
        constexpr unsigned kStreams[] = {1, 4, 7, 8, 16, 32, 64};
        const auto logged = numbers_behind(line, std::strlen(beginning), std::size(kStreams));
        bool right = true;
        double before = 0;
        for (std::size_t i = 0; i < logged.size(); i++) {
            const double simulated = latency_next_to(
                connections, [&](Machine& machine) { machine.queue_kernels(kStreams[i]); });
            const bool waits = logged[i] > kWaitsUs;
            right = right && waits == (simulated > kWaitsUs) && (!waits || simulated > before) &&
                    (connections != "1" || is_about(logged[i], simulated));
            before = simulated;
        }
        return right;
    });
}

// A row of the second table: latencies with 8 and with 32 connections.
Kind holder(const std::string& what, const std::function<double(Machine&&)>& latency,
            bool for_so_long = false) {
    return states(what + "  ", [=](const Line& line) {
        const auto logged = numbers_behind(line, what.size(), 2);
        const double with_few = latency(Machine("8"));
        const double with_many = latency(Machine("32"));
        return (logged[0] > kWaitsUs) == (with_few > kWaitsUs) &&
               (logged[1] > kWaitsUs) == (with_many > kWaitsUs) &&
               (!for_so_long || is_about(logged[0], with_few));
    });
}

Kind held_by(const std::string& what, const std::function<void(Machine&)>& work,
             bool for_so_long = false) {
    const auto latency = [work](Machine&& machine) {
        work(machine);
        return machine.latency();
    };
    return holder(what, latency, for_so_long);
}

void run_in_each(Machine& machine, unsigned streams, int kernels) {
    for (unsigned i = 0; i < streams; i++)
        machine.spin(machine.stream_of_a(), 10'000'000, kernels);
}

bool priorities_change_nothing() {
    bool same = true;
    for (const auto& [of_a, of_b] : {std::pair(0, -1), {0, -5}, {-1, 0}, {-1, -5}, {-5, -5}}) {
        Machine machine("8");
        machine.queue_kernels(8, of_a);
        same = same && machine.latency(of_b) > kWaitsUs && machine.latency(0) < kWaitsUs;
    }
    return same;
}

std::function<void(Machine&)> full_streams(unsigned count) {
    return [count](Machine& machine) { machine.queue_kernels(count); };
}

std::function<void(Machine&)> graph(unsigned branches, unsigned kernels, unsigned times = 1) {
    return [=](Machine& machine) {
        for (unsigned i = 0; i < times; i++)
            machine.launch_graph(branches, kernels);
    };
}

// By the header's text, balanced contexts have private workqueues and the others share.
bool private_queues_isolate() {
    const auto waits = [](bool require_workqueues) {
        Machine machine("8", "h200@13.1", require_workqueues);
        machine.queue_kernels(64);
        return machine.latency() > kWaitsUs;
    };
    return !waits(true) && waits(false);
}

// A queue is free again once the waiting task has begun.
bool queues_come_free() {
    Machine machine("8");
    machine.queue_kernels(64);
    const bool waited = machine.latency() > kWaitsUs;
    CHECK_OK(cuCtxSynchronize());
    return waited && machine.latency() < 30;
}

struct QueuesLog : Log {
    std::vector<Kind> kinds() override;
};

std::vector<Kind> QueuesLog::kinds() {
    return {
        states("What partitions of one process share beside memory: the hardware's queues.",
               [] { return Machine("").has_the_sms(); }),
        states("2026-11-21. A has 108 SMs, B 24.", queues_come_free),
        states("streams of B. \"Connections\" is CUDA_DEVICE_MAX_CONNECTIONS when CUDA started",
               [] {
                   bool right = !waits_next_to("32", full_streams(31));
                   for (const char* eight : {"", "8", "0", "33", "none"})
                       right = right && !waits_next_to(eight, full_streams(7)) &&
                               waits_next_to(eight, full_streams(8));
                   return right;
               }),
        literal("K streams of A, each with 8 kernels of 0.3 ms that fill A queued:"),
        literal("connections   K = 1     4        7        8         16        32        64"),
        row("1  ", "1"),
        row("8 (default)  ", ""),
        row("32  ", "32"),
        states("Stream priorities (A 0, B -1 or -5; A -1, B 0 or -5; both -5) change nothing.",
               priorities_change_nothing),
        literal(""),
        literal("What holds a queue (8 connections / 32 connections):"),
        held_by("8 streams of A with one small running kernel each, nothing behind it",
                [](Machine& machine) { run_in_each(machine, 8, 1); }),
        held_by("16 the same", [](Machine& machine) { run_in_each(machine, 16, 1); }),
        held_by("8 streams, one kernel each that fills A, so that all but one wait for SMs",
                [](Machine& machine) { run_in_each(machine, 8, 1); }),
        held_by(
            "8 streams, a small running kernel and one more queued behind it",
            [](Machine& machine) { run_in_each(machine, 8, 2); }, true),
        held_by(
            "8 streams that wait for an event of a running kernel (cuStreamWaitEvent)",
            [](Machine& machine) { machine.wait_for_an_event(8); }, true),
        held_by("one graph with 15 parallel branches of 4 kernels", graph(15, 4)),
        held_by("one linear graph of 60 kernels", graph(1, 60)),
        held_by("8 streams, a linear graph of 8 kernels each", graph(1, 8, 8)),
        holder("a copy of 1 MiB on B while 8 streams of A are full",
               [](Machine&& machine) {
                   machine.queue_kernels(8);
                   return machine.latency_of_copy();
               }),
        states("So: a stream holds a queue while the first thing in it waits for something",
               [] { return waits_next_to("2", full_streams(2)); }),
        states("the branch of a graph. Once as many streams as there are connections wait like",
               [] {
                   return !waits_next_to("16", graph(15, 4)) && waits_next_to("15", graph(15, 4)) &&
                          !waits_next_to("8",
                                         [](Machine& machine) { machine.wait_for_an_event(7); });
               }),
        states("SMs it has: 13 ms where it was 23 us.",
               [] {
                   return !waits_next_to("1",
                                         [](Machine& machine) { run_in_each(machine, 64, 1); });
               }),
        states("From CUDA 13.1 on the workqueue resources are for this;", private_queues_isolate),
    };
}

} // namespace

std::unique_ptr<Log> sim_test::queues_log() {
    return std::make_unique<QueuesLog>();
}
