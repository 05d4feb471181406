// Changes leases at random while they work. Checks who has which SMs, and by the simulated clock
// that no two leases' kernels are on one SM at one time; then runs the same operations in many
// threads.

#include "leases.hpp"
#include "work.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>

using namespace support;

namespace {

constexpr unsigned kSeed = 20261121;

struct Event {
    CUevent native = nullptr;

    explicit Event(CUstream stream) {
        gcx_event made = make_event(0, GCX_EVENT_TIMING);
        handle = made;
        native = gcx_event_native(made);
        CHECK_NATIVE(cuEventRecord, native, stream);
    }
    ~Event() { CHECK_OK(gcx_event_destroy(handle)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    gcx_event handle = nullptr;
};

// A kernel's owner, SMs and time.
struct Run {
    uint64_t lease;
    gcx_stream stream;
    gcx_resource sms;
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
};

struct Owner {
    gcx_lease lease = nullptr;
    uint64_t id = 0;
    std::vector<gcx_stream> streams;
};

class Machine {
  public:
    explicit Machine(unsigned seed) : random_(seed) {
        const gcx_resource whole = whole_device();
        CHECK_OK(gcx_context_create(&whole, 1, nullptr, &clock_context_));
        CHECK_OK(gcx_stream_create(clock_context_, nullptr, &clock_));
        start_ = std::make_unique<Event>(gcx_stream_native(clock_));
    }

    void step() {
        switch (random_.below(12)) {
        case 0:
        case 1:
            acquire();
            break;
        case 2:
            release();
            break;
        case 3:
        case 4:
        case 5:
            resize();
            break;
        case 6:
            give_all();
            break;
        case 7:
            sim::advance(random_.below(3'000'000));
            break;
        default:
            launch();
        }
        check_live();
    }

    void finish() {
        check_runs();
        runs_.clear();
        start_.reset();
        for (Owner& owner : owners_)
            release_owner(owner);
        owners_.clear();
        CHECK_OK(gcx_stream_destroy(clock_));
        CHECK_OK(gcx_context_destroy(clock_context_));
        sim::advance(1'000'000'000);
    }

    std::size_t kernels() const { return kernels_; }

  private:
    void acquire() {
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        params.min_sm_count = random_.below(3) == 0 ? 8 : 0;
        Owner owner;
        const uint32_t count = random_.below(6) == 0 ? GCX_REST : 8 + random_.below(60);
        if (gcx_lease_acquire(0, count, &params, &owner.lease) != GCX_SUCCESS)
            return;
        gcx_lease_info info = info_of(owner.lease);
        owner.id = info.id;
        for (uint32_t i = 0; i <= random_.below(3); i++) {
            gcx_stream stream = stream_of(owner.lease);
            owner.streams.push_back(stream);
        }
        owners_.push_back(owner);
    }

    static void release_owner(Owner& owner) {
        for (gcx_stream stream : owner.streams)
            CHECK_OK(gcx_stream_destroy(stream));
        if (owner.lease != nullptr)
            CHECK_OK(gcx_lease_release(owner.lease));
    }

    Owner* some() {
        return owners_.empty() ? nullptr
                               : &owners_[random_.below(static_cast<uint32_t>(owners_.size()))];
    }

    void release() {
        Owner* const owner = some();
        if (owner == nullptr)
            return;
        release_owner(*owner);
        owners_.erase(owners_.begin() + (owner - owners_.data()));
    }

    void resize() {
        std::vector<gcx_lease_size> sizes;
        for (const Owner& owner : owners_) {
            if (sizes.empty() || random_.below(2) == 0)
                sizes.push_back(
                    {owner.lease, random_.below(4) == 0 ? GCX_REST : 1 + random_.below(90), 0});
        }
        if (sizes.empty())
            return;
        const auto count = static_cast<uint32_t>(sizes.size());
        const bool deferred = random_.below(3) == 0;
        if (deferred) {
            // Creating contexts waits for all work, and would leave none running.
            gcx_lease_prepare(sizes.data(), count);
            for (int i = 0; i < 4; i++)
                launch();
        }
        gcx_lease_resize(sizes.data(), count, deferred ? GCX_RESIZE_DEFERRED : GCX_RESIZE_DEFAULT);
        if (deferred)
            launch();
    }

    // The first lease gives all its SMs to the last one, and ends.
    void give_all() {
        if (owners_.size() < 2 ||
            hand_over(owners_.front().lease, owners_.back().lease) != GCX_SUCCESS)
            return;
        release_owner(owners_.front());
        owners_.erase(owners_.begin());
    }

    void launch() {
        Owner* const owner = some();
        if (owner == nullptr)
            return;
        gcx_stream stream =
            owner->streams[random_.below(static_cast<uint32_t>(owner->streams.size()))];
        CUstream native = gcx_stream_native(stream);
        Run run{owner->id, stream, {}, nullptr, nullptr};
        CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &run.sms));
        run.begin = std::make_unique<Event>(native);
        work_.spin(native, 1'000 + random_.below(2'000'000));
        run.end = std::make_unique<Event>(native);
        runs_.push_back(std::move(run));
        kernels_++;
    }

    void check_live() const { CHECK_EQ(check_live_leases(), owners_.size()); }

    float at(const Event& event) const {
        float milliseconds = 0;
        CHECK_OK(gcx_event_synchronize(event.handle));
        CHECK_OK(gcx_event_get_elapsed(start_->handle, event.handle, &milliseconds));
        return milliseconds;
    }

    void check_runs() const {
        std::vector<std::pair<float, float>> times;
        for (const Run& run : runs_)
            times.emplace_back(at(*run.begin), at(*run.end));
        for (std::size_t i = 0; i < runs_.size(); i++) {
            for (std::size_t j = 0; j < i; j++) {
                // Kernels of one stream run in order, on whichever SMs.
                if (runs_[i].stream == runs_[j].stream)
                    CHECK(times[i].first >= times[j].second);
                if (runs_[i].lease == runs_[j].lease || overlap(runs_[i].sms, runs_[j].sms) == 0)
                    continue;
                CHECK(times[i].first >= times[j].second || times[j].first >= times[i].second);
            }
        }
    }

    Random random_;
    const Work work_;
    gcx_context clock_context_ = nullptr;
    gcx_stream clock_ = nullptr;
    std::unique_ptr<Event> start_;
    std::vector<Owner> owners_;
    std::vector<Run> runs_;
    std::size_t kernels_ = 0;
};

void disjoint_in_time_too(const char* driver) {
    const unsigned seeds = check::slow ? 2 : 10;
    for (unsigned seed = kSeed; seed < kSeed + seeds; seed++) {
        const int failed_before = check::failed;
        on_machine(std::string("h100@") + driver, [&] {
            const gcx_sim_counts before = sim::counts();
            {
                Machine machine(seed);
                for (int i = 0; i < 400; i++)
                    machine.step();
                machine.finish();
                CHECK(machine.kernels() > 50);
            }
            CHECK_OK(gcx_cache_set_limit(0));
            CHECK_EQ(cache_stats().in_use, 0U);
            CHECK_EQ(left_behind(before, sim::counts()), std::string());
        });
        if (check::failed != failed_before)
            std::fprintf(stderr, "    seed %u\n", seed);
    }
}

// Runs one thread of leases_of_many_threads_are_disjoint().
void any_operation(unsigned seed, gcx_cancel cancel, std::atomic<uint64_t>& granted) {
    Random random(seed);
    gcx_lease mine[2] = {};
    gcx_stream stream = nullptr;
    for (int i = 0; i < (check::slow ? 150 : 600); i++) {
        gcx_lease& lease = mine[random.below(2)];
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        params.timeout_ms = random.below(3);
        params.flags = random.below(4) == 0 ? GCX_LEASE_SHARED : 0;
        params.cancel = random.below(2) == 0 ? cancel : nullptr;
        if (lease == nullptr) {
            if (gcx_lease_acquire(0, 1 + random.below(40), &params, &lease) == GCX_SUCCESS)
                granted++;
            continue;
        }
        const gcx_lease_size sizes[] = {{mine[0], 1 + random.below(40), 0},
                                        {mine[1], 1 + random.below(40), 0}};
        switch (random.below(6)) {
        case 0:
            CHECK_OK(gcx_lease_release(lease));
            lease = nullptr;
            break;
        case 1:
            if (stream == nullptr) {
                CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
            } else {
                CHECK_OK(gcx_stream_destroy(stream));
                stream = nullptr;
            }
            break;
        case 2:
            if (mine[0] != nullptr && mine[1] != nullptr)
                gcx_lease_resize(sizes, 2, random.below(2));
            break;
        case 3:
            if (stream != nullptr && gcx_stream_native(stream) != nullptr)
                CHECK_OK(gcx_stream_query(stream));
            break;
        case 4:
            CHECK_OK(gcx_lease_synchronize(lease));
            break;
        default:
            const uint32_t count = random.below(60);
            const gcx_lease_size one = {lease, count == 0 ? GCX_REST : count, 0};
            gcx_lease_resize(&one, 1, 0);
        }
    }
    if (stream != nullptr)
        CHECK_OK(gcx_stream_destroy(stream));
    for (gcx_lease lease : mine) {
        if (lease != nullptr)
            CHECK_OK(gcx_lease_release(lease));
    }
}

void leases_of_many_threads_are_disjoint() {
    const gcx_sim_counts before = sim::counts();
    gcx_cancel cancel = make_cancel();
    std::atomic<bool> over{false};
    std::atomic<uint64_t> granted{0};
    // A concurrent observer never sees two leases with one SM.
    std::thread watcher([&] {
        std::vector<gcx_live_lease> live(64);
        while (!over) {
            uint32_t count = 0;
            CHECK_OK(gcx_lease_list(0, live.data(), 64, &count));
            for (uint32_t i = 0; i < count; i++) {
                for (uint32_t j = 0; j < i; j++)
                    CHECK(overlap(live[i].resource, live[j].resource) == 0 ||
                          (live[i].flags & live[j].flags & GCX_LEASE_SHARED) != 0);
            }
        }
    });
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; i++)
        threads.emplace_back(any_operation, kSeed + i, cancel, std::ref(granted));
    for (std::thread& thread : threads)
        thread.join();
    over = true;
    watcher.join();
    CHECK(granted > 20);
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(left_behind(before, sim::counts()), std::string());
}

} // namespace

int main() {
    for (const char* driver : drivers())
        disjoint_in_time_too(driver);
    on_machine("h100@13.0", leases_of_many_threads_are_disjoint);
    on_machine("h100@13.5", leases_of_many_threads_are_disjoint);
    return check::summary("lease order");
}
