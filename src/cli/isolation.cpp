#include "cli/isolation.hpp"
#include "cli/bench_sides.hpp"
#include "cli/bench_work.hpp"
#include "cli/layout.hpp"
#include "cli/measure.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

namespace gcx::cli {
namespace {

constexpr uint64_t kCriticalNs = 10'000;
constexpr uint64_t kQueuedNs = 300'000;
constexpr uint64_t kLongNs = 10'000'000;
constexpr uint32_t kQueued = 8; // kernels in each stream of A
constexpr std::size_t kStreamsOfB = 4;
constexpr uint32_t kBranches = 15;
constexpr uint32_t kBranchKernels = 4; // of each
// Beside a neighbour: launches for each round, up to a number, at random moments; and more until
// the neighbour has made some calls, unless those take for ever.
constexpr uint32_t kLaunches = 40;
constexpr uint32_t kSimulatedLaunches = 10; // which tell nothing but that all works
constexpr uint32_t kMostLaunches = 4'000;
constexpr uint32_t kLeastCalls = 4;
constexpr unsigned kLongestPauseUs = 100;
constexpr auto kPatience = std::chrono::seconds(5);

// Lets other threads run, and wakes up at once.
void pause(std::chrono::microseconds duration) {
    const auto until = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
}

// Two partitions of a device: A with most SMs, B with some.
class Isolation {
  public:
    Isolation(const gcx_driver_info& driver, int32_t device, uint32_t rounds, bool own_workqueues)
        : clock_(driver), work_(driver, device), rounds_(rounds),
          launches_(driver.simulated != 0 ? kSimulatedLaunches : kLaunches) {
        const gcx_resource whole = device_sms(device);
        const gcx_sm_request small{.sm_count = bench_shape(device).small};
        gcx_resource parts[2];
        check(gcx_sm_split(&whole, &small, 1, GCX_SPLIT_DEFAULT, &parts[0], &parts[1]));
        b_ = make_context(device, parts[0], own_workqueues);
        a_ = make_context(device, parts[1], own_workqueues);
        table_.own_workqueues = own_workqueues ? 1 : 0;
        table_.b_sms = resource_info(parts[0]).sm_count;
        table_.a_sms = resource_info(parts[1]).sm_count;
        for (std::size_t i = 0; i < kStreamsOfB; i++)
            streams_of_b_.push_back(make_stream(b_));
        for (uint32_t i = 0; i < kWaitingStreams.back(); i++)
            streams_of_a_.push_back(make_stream(a_));
    }

    void measure(uint32_t connections) {
        const auto critical = [&](gcx_stream stream) {
            work_.spin(stream, table_.b_sms, kCriticalNs);
        };
        table_.connections = connections;
        fill_streams(1); // the first kernel of a context takes its time
        beside([] {}, critical);
        table_.alone_us = beside([] {}, critical);
        for (std::size_t i = 0; i < kWaitingStreams.size(); i++)
            table_.by_streams_us[i] = beside([&] { fill_streams(kWaitingStreams[i]); }, critical);
        const std::array<std::function<void()>, kReservationers.size()> holders = {
            [&] { in_each(8, [&](gcx_stream stream) { work_.spin(stream, 1, kLongNs); }); },
            [&] { in_each(8, [&](gcx_stream stream) { fill(stream, kQueuedNs); }); },
            [&] {
                in_each(8, [&](gcx_stream stream) {
                    work_.spin(stream, 1, kLongNs);
                    work_.spin(stream, 1, kCriticalNs);
                });
            },
            [&] { wait_for_an_event(8); },
            [&] { launch_branches([&](gcx_stream stream) { fill(stream, kQueuedNs); }); },
            [&] { branches_again(); },
            [&] { launch_chain(streams_of_a_[0].get(), 60); },
            [&] { in_each(8, [&](gcx_stream stream) { launch_chain(stream, 8); }); },
            [&] { fill_streams(8); },
        };
        for (std::size_t i = 0; i + 1 < holders.size(); i++)
            table_.by_holder_us[i] = beside(holders[i], critical);
        table_.by_holder_us.back() =
            beside(holders.back(), [&](gcx_stream stream) { work_.copy(stream); });
    }

    // Beside each kind of calls of another thread.
    void measure_neighbours(const gcx_driver_info& driver, int32_t device) {
        NeighbourCalls calls(driver, device, a_.get());
        for (std::size_t kind = 0; kind < kNeighbours; kind++) {
            const Neighbour neighbour(calls, a_.get(), kind);
            while (neighbour.made() == 0) // the first is often another
                std::this_thread::yield();
            table_.by_neighbour[kind] = beside(neighbour);
        }
        table_.neighbours = 1;
    }
    const IsolationTable& table() const { return table_; }

  private:
    NeighbourTimes beside(const Neighbour& neighbour) const {
        gcx_stream stream = streams_of_b_[0].get();
        const uint32_t before = neighbour.made();
        const uint32_t launches = std::min(rounds_ * launches_, kMostLaunches);
        const auto until = std::chrono::steady_clock::now() + kPatience;
        std::minstd_rand random;
        std::vector<double> times;
        while (times.size() < launches || (neighbour.made() - before < kLeastCalls &&
                                           std::chrono::steady_clock::now() < until)) {
            pause(std::chrono::microseconds(random() % kLongestPauseUs));
            times.push_back(clock_.time([&] {
                work_.spin(stream, table_.b_sms, kCriticalNs);
                check(gcx_stream_synchronize(stream));
            }));
        }
        std::sort(times.begin(), times.end());
        return {.p50_us = times[(times.size() - 1) / 2],
                .p99_us = times[(times.size() * 99 + 99) / 100 - 1],
                .max_us = times.back(),
                .launches = static_cast<uint32_t>(times.size()),
                .calls = neighbour.made() - before};
    }

    static Context make_context(int32_t device, const gcx_resource& sms, bool own_workqueues) {
        gcx_resource resources[2] = {sms};
        if (own_workqueues) {
            gcx_resource shared;
            check(gcx_device_get_resource(device, GCX_RESOURCE_WORKQUEUE_CONFIG, &shared));
            check(gcx_workqueue_configure(&shared, GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED,
                                          resource_info(shared).workqueue_concurrency_limit,
                                          &resources[1]));
        }
        Context context;
        check(gcx_context_create(resources, own_workqueues ? 2 : 1, nullptr, context.out()));
        return context;
    }

    static Stream make_stream(const Context& context) {
        Stream stream;
        check(gcx_stream_create(context.get(), nullptr, stream.out()));
        return stream;
    }

    // The median time of something on a stream of B, launch to end, right after work was given to
    // A, which has ended when the next round begins.
    double beside(const std::function<void()>& work_on_a,
                  const std::function<void(gcx_stream)>& on_b) {
        std::vector<double> times;
        for (uint32_t round = 0; round < rounds_; round++) {
            gcx_stream stream = streams_of_b_[round % kStreamsOfB].get();
            work_on_a();
            times.push_back(clock_.time([&] {
                on_b(stream);
                check(gcx_stream_synchronize(stream));
            }));
            for (const Stream& busy : streams_of_a_)
                check(gcx_stream_synchronize(busy.get()));
            work_.finish();
        }
        return median(times);
    }

    template <class Body>
    void in_each(uint32_t streams, const Body& body) const {
        for (uint32_t i = 0; i < streams; i++)
            body(streams_of_a_[i].get());
    }

    void fill(gcx_stream stream, uint64_t nanoseconds) const {
        work_.fill(stream, table_.a_sms, nanoseconds);
    }

    void fill_streams(uint32_t streams) const {
        in_each(streams, [&](gcx_stream stream) {
            for (uint32_t i = 0; i < kQueued; i++)
                fill(stream, kQueuedNs);
        });
    }

    void wait_for_an_event(uint32_t streams) const {
        gcx_stream busy = streams_of_a_.back().get();
        work_.spin(busy, 1, kLongNs);
        in_each(streams, [&](gcx_stream stream) {
            work_.wait(stream, busy);
            work_.spin(stream, 1, kCriticalNs);
        });
    }

    void launch_chain(gcx_stream stream, uint32_t kernels) {
        work_.launch_graph(stream, [&] {
            for (uint32_t i = 0; i < kernels; i++)
                fill(stream, kQueuedNs);
        });
    }

    RawHandle launch_branches(const std::function<void(gcx_stream)>& kernel) {
        gcx_stream origin = streams_of_a_[0].get();
        return work_.launch_graph(origin, [&] {
            for (uint32_t branch = 1; branch < kBranches; branch++)
                work_.wait(streams_of_a_[branch].get(), origin);
            in_each(kBranches, [&](gcx_stream stream) {
                for (uint32_t i = 0; i < kBranchKernels; i++)
                    kernel(stream);
            });
            for (uint32_t branch = 1; branch < kBranches; branch++)
                work_.wait(origin, streams_of_a_[branch].get());
        });
    }

    // Not its first launch, which uploads it.
    void branches_again() {
        gcx_stream origin = streams_of_a_[0].get();
        const RawHandle graph =
            launch_branches([&](gcx_stream stream) { work_.spin(stream, 1, kLongNs); });
        check(gcx_stream_synchronize(origin));
        work_.launch_again(origin, graph);
    }

    BenchClock clock_;
    BenchWork work_;
    uint32_t rounds_;
    uint32_t launches_; // beside a neighbour, for each round
    Context a_;
    Context b_;
    std::vector<Stream> streams_of_a_;
    std::vector<Stream> streams_of_b_;
    IsolationTable table_;
};

} // namespace

std::vector<IsolationTable> measure_isolation(const gcx_driver_info& driver, int32_t device,
                                              uint32_t rounds, bool neighbours) {
    gcx_queue_info queues = GCX_QUEUE_INFO_INIT;
    check(gcx_queue_get_info(&queues));
    gcx_capability_info workqueues = GCX_CAPABILITY_INFO_INIT;
    check(gcx_capability_get_info(GCX_CAPABILITY_WORKQUEUES, &workqueues));
    std::vector<IsolationTable> tables;
    for (const bool own : {false, true}) {
        if (own && workqueues.available == 0)
            continue;
        Isolation isolation(driver, device, rounds, own);
        isolation.measure(queues.connections);
        if (neighbours && !own)
            isolation.measure_neighbours(driver, device);
        tables.push_back(isolation.table());
    }
    return tables;
}

} // namespace gcx::cli
