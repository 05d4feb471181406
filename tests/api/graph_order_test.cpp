// Launches graphs at random on leases that change, in one thread and in many. Each runs on its
// lease's SMs, no two leases' work is on one SM at one time, and nothing leaks.

#include "graph_kernels.hpp"
#include "leases.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

using namespace support;
using From = GraphKernels::From;

namespace {

constexpr unsigned kSeed = 20261122;

// Returns the time of a wave of blocks of this owner's kernels, which identifies the owner.
uint32_t time_of(unsigned owner) {
    return 10'000 + 37 * owner;
}
unsigned owner_of(const gcx_sim_run& run) {
    for (unsigned owner = 0; owner < 8; owner++) {
        if ((run.end_ns - run.begin_ns) % time_of(owner) == 0)
            return owner;
    }
    return 8;
}

struct Owner {
    unsigned number = 0;
    gcx_lease lease = nullptr;
    std::vector<gcx_stream> streams;
    gcx_graph graph = nullptr;
};

Owner make_owner(const GraphKernels& kernels, unsigned number, uint32_t sm_count) {
    Owner owner;
    owner.number = number;
    CUgraph captured = capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, 0, time_of(number), false, 132);
        kernels.probe(kernels.plain, From::module, 1, time_of(number), false, 132);
    });
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 2 + number % 3; // evicts executables that are in use
    CHECK_OK(gcx_graph_create(captured, &params, &owner.graph));
    CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_lease_acquire(0, sm_count, nullptr, &owner.lease));
    owner.streams.resize(2);
    for (gcx_stream& stream : owner.streams)
        CHECK_OK(gcx_lease_stream_create(owner.lease, nullptr, &stream));
    return owner;
}

void release(const Owner& owner) {
    CHECK_OK(gcx_graph_destroy(owner.graph));
    for (gcx_stream stream : owner.streams)
        CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_lease_release(owner.lease));
}

// Checks that work of different owners is never on one SM at one time.
void check_runs(std::size_t expected) {
    std::vector<gcx_sim_run> runs = sim::runs();
    std::erase_if(runs, [](const auto& run) { return run.kind != GCX_SIM_RUN_KERNEL; });
    CHECK_EQ(runs.size(), expected);
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    std::vector<gcx_sim_run> open;
    for (const gcx_sim_run& run : runs) {
        std::erase_if(open, [&](const auto& other) { return other.end_ns <= run.begin_ns; });
        for (const gcx_sim_run& other : open) {
            CHECK(owner_of(run) == owner_of(other) || !share_sms(run, other));
            CHECK(other.stream != run.stream); // in one stream, work runs in order
        }
        open.push_back(run);
    }
}

void resize_some(Random& dice, const std::vector<Owner>& owners) {
    std::vector<gcx_lease_size> sizes;
    for (const Owner& owner : owners) {
        if (dice.below(2) == 0)
            sizes.push_back({owner.lease, 8 + dice.below(48), 0});
    }
    if (!sizes.empty())
        gcx_lease_resize(sizes.data(), static_cast<uint32_t>(sizes.size()), dice.below(2));
}

void one_thread(unsigned seed) {
    Random dice(seed);
    const GraphKernels kernels;
    std::vector<Owner> owners;
    for (unsigned i = 0; i < 3; i++)
        owners.push_back(make_owner(kernels, i, 24));
    sim::note_runs(100'000);
    std::size_t launches = 0;
    for (int i = 0; i < 300; i++) {
        const Owner& owner = owners[dice.below(3)];
        gcx_stream stream = owner.streams[dice.below(2)];
        const uint32_t what = dice.below(12);
        if (what < 2) {
            resize_some(dice, owners);
        } else if (what == 2) {
            gcx_resource sms = resource_of(owner.lease);
            CHECK_OK(gcx_graph_prepare(owner.graph, &sms, 1, GCX_PREPARE_FOR_LEASES));
        } else if (what == 3) {
            kernels.take_sms(0);
            CHECK_OK(gcx_graph_launch(owner.graph, &stream, 1));
            launches++;
            // A graph runs on the SMs of its stream, which are some or all of the lease's.
            gcx_stream_info info = info_of(stream);
            CHECK_EQ(kernels.count_sms(0), info.sm_count);
        } else {
            CHECK_OK(gcx_graph_launch(owner.graph, &stream, 1));
            launches++;
        }
    }
    check_runs(2 * launches);
    sim::note_runs(0);
    for (const Owner& owner : owners) {
        CHECK_EQ(info_of(owner.graph).executables <= info_of(owner.graph).max_executables, true);
        release(owner);
    }
}

// Each thread launches on its own lease, while another changes all leases.
void leases_of_many_threads_are_disjoint() {
    const GraphKernels kernels;
    std::vector<Owner> owners;
    for (unsigned i = 0; i < 4; i++)
        owners.push_back(make_owner(kernels, i, 24));
    sim::note_runs(100'000);
    std::atomic<bool> over{false};
    std::atomic<std::size_t> launches{0};
    std::thread changes([&] {
        Random dice(kSeed);
        while (!over) {
            resize_some(dice, owners);
            std::this_thread::yield();
        }
    });
    in_threads(8, [&](unsigned i) {
        const Owner& owner = owners[i % 4];
        for (int round = 0; round < (check::slow ? 40 : 150); round++) {
            CHECK_OK(gcx_graph_launch(owner.graph, &owner.streams[i / 4], 1));
            launches++;
        }
    });
    over = true;
    changes.join();
    check_runs(2 * launches);
    sim::note_runs(0);
    for (const Owner& owner : owners)
        release(owner);
}

// Threads launch, change, prepare and destroy one graph concurrently.
void graph_used_by_threads_is_consistent() {
    const GraphKernels kernels;
    Owner owner = make_owner(kernels, 1, 32);
    const Split parts = split(whole_device(), {24, 40});
    in_threads(6, [&](unsigned i) {
        Random dice(kSeed + i);
        const Partition mine(parts.groups[i % 2]);
        for (int round = 0; round < (check::slow ? 30 : 100); round++) {
            gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
            std::fill_n(params.grid, 3, 1U);
            std::fill_n(params.block, 3, 1U);
            params.grid[0] = 100 + dice.below(100);
            gcx_result result = GCX_SUCCESS;
            switch (dice.below(6)) {
            case 0:
                result = gcx_graph_set_kernel(owner.graph, dice.below(2), &params);
                break;
            case 1:
                result = gcx_graph_prepare(owner.graph, &parts.groups[i % 2], 1, 0);
                break;
            case 2:
                result = gcx_graph_launch(owner.graph, &owner.streams[0], 1);
                break;
            default:
                result = gcx_graph_launch(owner.graph, &mine.stream, 1);
            }
            CHECK(result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE);
        }
        CHECK_OK(gcx_stream_synchronize(mine.stream));
    });
    release(owner);
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        for (unsigned seed = kSeed; seed < kSeed + (check::slow ? 1 : 4); seed++)
            leaves_nothing(h100, [&] { one_thread(seed); });
        leaves_nothing(h100, leases_of_many_threads_are_disjoint);
        leaves_nothing(h100, graph_used_by_threads_is_consistent);
    }
    return check::summary("graph order");
}
