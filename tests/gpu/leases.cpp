// Tests leases at work: kernels run on the SMs that a lease reports, no two leases' kernels are on
// one SM at one time, and work across changes is done once and in order. Kernels note SM and time,
// while every lease is busy.

#include "fixture.hpp"
#include "tests.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <random>

using namespace fixture;

namespace {

constexpr unsigned kSeed = 20261121;
constexpr uint32_t kBlocks = 264; // two for each SM of the device
constexpr uint64_t kMicrosecond = 1000;

// Has a value for each block of a stream's kernels.
class Values {
  public:
    Values() {
        const raw::InPrimary current;
        CHECK_EQ(raw::cuMemAlloc(&memory_, kBytes), CUDA_SUCCESS);
        CHECK_EQ(raw::cuMemsetD8(memory_, 0, kBytes), CUDA_SUCCESS);
    }
    ~Values() {
        const raw::InPrimary current;
        CHECK_EQ(raw::cuMemFree(memory_), CUDA_SUCCESS);
    }
    Values(const Values&) = delete;
    Values& operator=(const Values&) = delete;

    CUdeviceptr memory() const { return memory_; }
    // Returns each value after so many kernels in a row: the arithmetic wraps.
    bool are_of(uint32_t kernels) const {
        uint64_t expected = 0;
        for (uint32_t i = 0; i < kernels; i++)
            expected = expected * 3 + 1;
        std::vector<uint64_t> values(kBlocks);
        const raw::InPrimary current;
        CHECK_EQ(raw::cuMemcpyDtoH(values.data(), memory_, kBytes), CUDA_SUCCESS);
        return std::all_of(values.begin(), values.end(),
                           [&](uint64_t value) { return value == expected; });
    }

  private:
    static constexpr std::size_t kBytes = kBlocks * sizeof(uint64_t);
    CUdeviceptr memory_ = 0;
};

struct Work {
    gcx_stream stream = nullptr;
    Values values;
    uint32_t kernels = 0;
    uint32_t last = 0; // the tag of the last kernel, 0: none yet
};

struct Owner {
    gcx_lease lease = nullptr;
    std::array<Work, 2> work;

    gcx_resource sms() const {
        gcx_resource resource{};
        CHECK_OK(gcx_lease_get_resource(lease, &resource));
        return resource;
    }
};

// Describes a launch, by tag.
struct Launch {
    std::size_t owner;
    uint32_t before; // the kernel before it in its stream; 0: none
    SmIds sms;       // where it may run
};

class Table {
  public:
    Table(uint32_t rounds, unsigned seed)
        : random_(seed),
          notes_((rounds + 1) * static_cast<uint32_t>(owners_.size()) * 2 * kBlocks) {
        launches_.resize(1); // tags count from 1
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        for (Owner& owner : owners_) {
            params.name = "gpu suite";
            CHECK_OK(gcx_lease_acquire(0, 24, &params, &owner.lease));
            for (Work& work : owner.work)
                CHECK_OK(gcx_lease_stream_create(owner.lease, nullptr, &work.stream));
        }
    }
    ~Table() {
        for (Owner& owner : owners_) {
            for (Work& work : owner.work)
                CHECK_OK(gcx_stream_destroy(work.stream));
            CHECK_OK(gcx_lease_release(owner.lease));
        }
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    void work() {
        for (std::size_t i = 0; i < owners_.size(); i++)
            for (Work& work : owners_[i].work)
                launch(i, work);
    }

    // Draws random sizes for some or all of them, and parks one now and then.
    void change(uint32_t flags) {
        if (random_below(20) == 0) {
            park_one();
            return;
        }
        std::vector<gcx_lease_size> sizes;
        uint32_t room = 132;
        const bool all = random_below(2) == 0;
        const std::size_t one = random_below(static_cast<uint32_t>(owners_.size()));
        for (std::size_t i = 0; i < owners_.size(); i++) {
            if (!all && i != one)
                continue;
            const auto others = static_cast<uint32_t>(owners_.size() - 1);
            const uint32_t most = all ? room - 8 * (others - static_cast<uint32_t>(sizes.size()))
                                      : room - count_of_others(i);
            const uint32_t count = 8 + random_below(most - 8 + 1) / 8 * 8;
            sizes.push_back({owners_[i].lease, count, 0});
            room -= all ? count : 0;
        }
        const gcx_result result =
            gcx_lease_resize(sizes.data(), static_cast<uint32_t>(sizes.size()), flags);
        // A lease that grows alone may find too few SMs where counts were rounded up.
        if (result == GCX_ERROR_ALREADY_ACQUIRED)
            refused_++;
        else if (CHECK_OK(result))
            changes_++;
    }

    // The streams run on exactly the SMs that the leases report.
    void probe() {
        for (const Owner& owner : owners_) {
            const SmIds expected = mapped_sms(owner.sms());
            const SmIds seen = probed(owner.work[0].stream);
            if (!CHECK(seen == expected))
                std::printf("   seen %s, promised %s\n", ranges(seen).c_str(),
                            ranges(expected).c_str());
            probes_++;
        }
    }

    uint32_t changes() const { return changes_; }

    void end() {
        for (Owner& owner : owners_) {
            CHECK_OK(gcx_lease_synchronize(owner.lease));
            for (const Work& work : owner.work)
                CHECK(work.values.are_of(work.kernels));
        }
        judge(notes_.read());
        std::printf("   %u changes, %u refused for want of SMs, %zu kernels, %u probes\n", changes_,
                    refused_, launches_.size() - 1, probes_);
    }

  private:
    uint32_t random_below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

    void launch(std::size_t owner, Work& work) {
        const auto tag = static_cast<uint32_t>(launches_.size());
        launches_.push_back({owner, work.last, mapped_sms(owners_[owner].sms())});
        CHECK_EQ(notes_.launch(gcx_stream_native(work.stream), kBlocks, tag,
                               (10 + random_below(60)) * kMicrosecond, work.values.memory()),
                 CUDA_SUCCESS);
        work.kernels++;
        work.last = tag;
    }

    uint32_t count_of_others(std::size_t but) const {
        uint32_t count = 0;
        for (std::size_t i = 0; i < owners_.size(); i++)
            count += i == but ? 0 : sm_count(owners_[i].sms());
        return count;
    }

    // One lease is parked and gives all its SMs to another, and comes back with some of them.
    void park_one() {
        const auto count = static_cast<uint32_t>(owners_.size());
        const uint32_t from = random_below(count);
        const uint32_t to = (from + 1 + random_below(count - 1)) % count;
        const gcx_lease_size all[] = {{owners_[from].lease, 0, GCX_SIZE_PARKED},
                                      {owners_[to].lease, GCX_REST, 0}};
        CHECK_OK(gcx_lease_resize(all, 2, GCX_RESIZE_DEFAULT));
        CHECK_EQ(sm_count(owners_[from].sms()), 0U);
        CHECK(gcx_stream_native(owners_[from].work[0].stream) == nullptr);
        const gcx_lease_size some[] = {{owners_[from].lease, 8, 0}, {owners_[to].lease, 8, 0}};
        CHECK_OK(gcx_lease_resize(some, 2, GCX_RESIZE_DEFAULT));
        changes_ += 2;
    }

    void judge(std::vector<raw::Note> notes) {
        struct Span {
            uint64_t begin = UINT64_MAX;
            uint64_t end = 0;
        };
        std::vector<Span> spans(launches_.size());
        uint32_t astray = 0;
        for (const raw::Note& note : notes) {
            const SmIds& sms = launches_[note.tag].sms;
            astray += std::binary_search(sms.begin(), sms.end(), note.sm) ? 0 : 1;
            Span& span = spans[note.tag];
            span.begin = std::min(span.begin, note.begin);
            span.end = std::max(span.end, note.end);
        }
        CHECK_EQ(astray, 0U);
        uint32_t too_soon = 0;
        for (std::size_t tag = 1; tag < launches_.size(); tag++)
            too_soon +=
                launches_[tag].before != 0 && spans[launches_[tag].before].end > spans[tag].begin
                    ? 1
                    : 0;
        CHECK_EQ(too_soon, 0U);
        CHECK_EQ(meetings(std::move(notes)), 0U);
    }

    // Returns how often blocks of two leases were on one SM at one time.
    uint32_t meetings(std::vector<raw::Note> notes) const {
        std::sort(notes.begin(), notes.end(), [](const raw::Note& a, const raw::Note& b) {
            return a.sm != b.sm ? a.sm < b.sm : a.begin < b.begin;
        });
        uint32_t met = 0;
        // Has the latest end on this SM of each owner's blocks so far.
        std::map<std::size_t, uint64_t> ends;
        uint32_t sm = UINT32_MAX;
        for (const raw::Note& note : notes) {
            if (note.sm != sm)
                ends.clear();
            sm = note.sm;
            const std::size_t owner = launches_[note.tag].owner;
            for (const auto& [other, end] : ends)
                met += other != owner && end > note.begin ? 1 : 0;
            ends[owner] = std::max(ends[owner], note.end);
        }
        return met;
    }

    std::mt19937 random_;
    std::array<Owner, 3> owners_;
    std::vector<Launch> launches_;
    raw::Notes notes_;
    uint32_t changes_ = 0;
    uint32_t refused_ = 0;
    uint32_t probes_ = 0;
};

// Runs enough rounds for this many changes: some are refused, because too few SMs are free.
void random_changes(uint32_t changes, uint32_t flags) {
    const uint32_t rounds = changes * 2;
    Table table(rounds, kSeed + flags);
    for (uint32_t round = 0; round < rounds && table.changes() < changes; round++) {
        table.work();
        table.change(flags);
        if (round % 10 == 0)
            table.probe();
    }
    CHECK_EQ(table.changes(), changes);
    table.work();
    table.end();
}

// Resizes 10 times next to a long kernel, and the host never blocks: the kernel still runs at the
// end.
void resize_does_not_wait() {
    constexpr uint64_t kSpin = 500 * raw::kMillisecond;
    gcx_lease small = nullptr;
    gcx_lease large = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 24, nullptr, &small));
    CHECK_OK(gcx_lease_acquire(0, 64, nullptr, &large));
    const gcx_lease_size next[] = {{small, 48, 0}, {large, 64, 0}};
    CHECK_OK(gcx_lease_prepare(next, 2));
    gcx_stream work = nullptr;
    gcx_stream busy = nullptr;
    CHECK_OK(gcx_lease_stream_create(small, nullptr, &work));
    CHECK_OK(gcx_lease_stream_create(large, nullptr, &busy));
    CHECK_EQ(raw::launch_spin(gcx_stream_native(busy), kSpin), CUDA_SUCCESS);
    for (uint32_t round = 0; round < 10; round++) {
        const gcx_lease_size size = {small, round % 2 == 0 ? 48U : 24U, 0};
        CHECK_OK(gcx_lease_resize(&size, 1, GCX_RESIZE_DEFAULT));
        CHECK_EQ(raw::launch_spin(gcx_stream_native(work), 1000), CUDA_SUCCESS);
    }
    CHECK_OK(gcx_lease_synchronize(small));
    CHECK_EQ(gcx_lease_query(large), GCX_ERROR_NOT_READY);

    // A lease takes the SMs of a busy lease: the host doesn't wait, the device does.
    const gcx_lease_size change[] = {{small, 64, 0}, {large, 24, 0}};
    CHECK_OK(gcx_lease_prepare(change, 2));
    CHECK_EQ(raw::launch_spin(gcx_stream_native(busy), kSpin), CUDA_SUCCESS);
    CHECK_OK(gcx_lease_resize(change, 2, GCX_RESIZE_DEFAULT));
    CHECK_EQ(gcx_lease_query(large), GCX_ERROR_NOT_READY);
    CHECK_EQ(raw::launch_spin(gcx_stream_native(work), 1000), CUDA_SUCCESS);
    CHECK_EQ(gcx_stream_query(work), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_stream_synchronize(work));
    CHECK_OK(gcx_lease_query(large));

    CHECK_OK(gcx_stream_destroy(work));
    CHECK_OK(gcx_stream_destroy(busy));
    CHECK_OK(gcx_lease_release(small));
    CHECK_OK(gcx_lease_release(large));
}

} // namespace

void test_leases(bool quick) {
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_cache_set_limit(512));
    section("leases: 1,000 random changes while all work");
    random_changes(quick ? 50 : 1000, GCX_RESIZE_DEFAULT);
    section("leases: the same, where growing leases stay until all SMs are free");
    random_changes(quick ? 50 : 300, GCX_RESIZE_DEFERRED);
    if (!quick) { // compute-sanitizer runs no kernel next to the host
        section("leases: no caller is blocked");
        resize_does_not_wait();
    }
    CHECK_OK(gcx_cache_set_limit(64));
    uint32_t left = 0;
    CHECK_OK(gcx_lease_list(-1, nullptr, 0, &left));
    CHECK_EQ(left, 0U);
}
