#include "cli/isolation.hpp"
#include "cli/bench_sides.hpp"
#include "cli/bench_work.hpp"
#include "cli/layout.hpp"
#include "cli/measure.hpp"

#include <functional>

namespace gcx::cli {
namespace {

constexpr uint64_t kCriticalNs = 10'000;
constexpr uint64_t kQueuedNs = 300'000;
constexpr uint64_t kLongNs = 10'000'000;
constexpr uint32_t kQueued = 8; // kernels in each stream of A
constexpr std::size_t kStreamsOfB = 4;

// Two partitions of a device: A with most SMs, B with some.
class Isolation {
  public:
    Isolation(const gcx_driver_info& driver, int32_t device, uint32_t rounds, bool own_workqueues)
        : clock_(driver), work_(driver, device), rounds_(rounds) {
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

    IsolationTable measure(uint32_t connections) {
        const auto critical = [&](gcx_stream stream) {
            work_.spin(stream, table_.b_sms, kCriticalNs);
        };
        table_.connections = connections;
        fill_streams(1); // the first kernel of a context takes its time
        beside([] {}, critical);
        table_.alone_us = beside([] {}, critical);
        for (std::size_t i = 0; i < kWaitingStreams.size(); i++)
            table_.by_streams_us[i] = beside([&] { fill_streams(kWaitingStreams[i]); }, critical);
        const std::array<std::function<void()>, kHolders.size()> holders = {
            [&] { in_each(8, [&](gcx_stream stream) { work_.spin(stream, 1, kLongNs); }); },
            [&] { in_each(8, [&](gcx_stream stream) { fill(stream, kQueuedNs); }); },
            [&] {
                in_each(8, [&](gcx_stream stream) {
                    work_.spin(stream, 1, kLongNs);
                    work_.spin(stream, 1, kCriticalNs);
                });
            },
            [&] { wait_for_an_event(8); },
            [&] { launch_branches(15, 4); },
            [&] { launch_chain(streams_of_a_[0].get(), 60); },
            [&] { in_each(8, [&](gcx_stream stream) { launch_chain(stream, 8); }); },
            [&] { fill_streams(8); },
        };
        for (std::size_t i = 0; i + 1 < holders.size(); i++)
            table_.by_holder_us[i] = beside(holders[i], critical);
        table_.by_holder_us.back() =
            beside(holders.back(), [&](gcx_stream stream) { work_.copy(stream); });
        return table_;
    }

  private:
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

    void launch_branches(uint32_t branches, uint32_t kernels) {
        gcx_stream origin = streams_of_a_[0].get();
        work_.launch_graph(origin, [&] {
            for (uint32_t branch = 0; branch < branches; branch++) {
                gcx_stream stream = streams_of_a_[branch].get();
                if (branch != 0)
                    work_.wait(stream, origin);
            }
            for (uint32_t branch = 0; branch < branches; branch++) {
                for (uint32_t i = 0; i < kernels; i++)
                    fill(streams_of_a_[branch].get(), kQueuedNs);
            }
            for (uint32_t branch = 1; branch < branches; branch++)
                work_.wait(origin, streams_of_a_[branch].get());
        });
    }

    BenchClock clock_;
    BenchWork work_;
    uint32_t rounds_;
    Context a_;
    Context b_;
    std::vector<Stream> streams_of_a_;
    std::vector<Stream> streams_of_b_;
    IsolationTable table_;
};

} // namespace

std::vector<IsolationTable> measure_isolation(const gcx_driver_info& driver, int32_t device,
                                              uint32_t rounds) {
    gcx_queue_info queues = GCX_QUEUE_INFO_INIT;
    check(gcx_queue_get_info(&queues));
    gcx_capability_info workqueues = GCX_CAPABILITY_INFO_INIT;
    check(gcx_capability_get_info(GCX_CAPABILITY_WORKQUEUES, &workqueues));
    std::vector<IsolationTable> tables;
    for (const bool own : {false, true}) {
        if (own && workqueues.available == 0)
            continue;
        tables.push_back(Isolation(driver, device, rounds, own).measure(queues.connections));
    }
    return tables;
}

} // namespace gcx::cli
