// What is told of the memory that contexts hold, when others take and give memory meanwhile.

#include "core/memory_gauge.hpp"

#include "check.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace gcx;
using Bytes = MemoryGauge::Bytes;

constexpr uint64_t kMebibyte = 1 << 20;

// A device of which something is taken.
struct Memory {
    MemoryGauge gauge;
    uint64_t free = 1 << 30;

    Bytes take(uint64_t bytes) {
        return gauge.around([&] { return Bytes(free); }, [&] { free -= bytes; });
    }
    Bytes gain(uint64_t bytes) {
        return gauge.around([&] { return Bytes(free); }, [&] { free += bytes; });
    }
};

void as_measured() {
    Memory memory;
    CHECK_EQ(memory.gauge.expected(), 5 * kMebibyte);
    const Bytes first = memory.take(6 * kMebibyte);
    CHECK_EQ(memory.gauge.told(first), 6 * kMebibyte);
    CHECK_EQ(memory.gauge.expected(), 6 * kMebibyte);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(memory.gauge.told(memory.take(4 * kMebibyte)), 4 * kMebibyte);
    CHECK_EQ(memory.gauge.told(first), 6 * kMebibyte);
    CHECK_EQ(memory.gauge.expected(), 4 * kMebibyte);
    // A pool of the driver's that grows now and then is no disturbance.
    CHECK_EQ(memory.gauge.told(memory.take(16 * kMebibyte)), 16 * kMebibyte);
}

void beside_others() {
    Memory memory;
    // With few there is no telling: as measured, and never below 0.
    const Bytes large = memory.take(600 * kMebibyte);
    const Bytes less = memory.gain(100 * kMebibyte);
    CHECK_EQ(memory.gauge.told(large), 600 * kMebibyte);
    CHECK_EQ(memory.gauge.told(less), 0U);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(*memory.take(5 * kMebibyte), 5 * kMebibyte);
    CHECK_EQ(memory.gauge.told(large), 5 * kMebibyte);
    CHECK_EQ(memory.gauge.told(less), 5 * kMebibyte);
    CHECK_EQ(memory.gauge.told(memory.take(21 * kMebibyte)), 5 * kMebibyte);
    // The driver doesn't say.
    const Bytes none = memory.gauge.around([] { return Bytes(); }, [] {});
    CHECK(!none.has_value());
    CHECK_EQ(memory.gauge.told(none), 5 * kMebibyte);
    CHECK_EQ(MemoryGauge().told(none), 0U);
}

// Where most take nothing, the others' figures stand.
void nothing_at_all() {
    Memory memory;
    for (int i = 0; i < 8; i++)
        CHECK_EQ(memory.gauge.told(memory.take(0)), 0U);
    CHECK_EQ(memory.gauge.told(memory.take(kMebibyte)), kMebibyte);
    CHECK_EQ(memory.gauge.expected(), 5 * kMebibyte);
}

// The last ones count: what a driver takes may change with what else is there.
void only_the_last_ones() {
    Memory memory;
    for (int i = 0; i < 100; i++)
        memory.take(kMebibyte / 4);
    for (int i = 0; i < 64; i++)
        memory.take(kMebibyte / 2);
    CHECK_EQ(memory.gauge.expected(), kMebibyte / 2);
}

// What fails is not counted, and the next one can be made.
void what_fails() {
    Memory memory;
    bool thrown = false;
    try {
        memory.gauge.around([&] { return Bytes(memory.free); },
                            [] { throw std::runtime_error("no context"); });
    } catch (const std::runtime_error&) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK_EQ(memory.gauge.told(memory.take(kMebibyte)), kMebibyte);
    CHECK_EQ(memory.gauge.expected(), kMebibyte);
}

// One thread's is not in another's figure.
void threads() {
    Memory memory;
    std::vector<std::thread> all;
    std::atomic<int> wrong{0};
    for (int thread = 0; thread < 4; thread++)
        all.emplace_back([&] {
            for (int round = 0; round < 200; round++)
                wrong += memory.take(kMebibyte / 16) == Bytes(kMebibyte / 16) ? 0 : 1;
        });
    for (std::thread& thread : all)
        thread.join();
    CHECK_EQ(wrong.load(), 0);
}

} // namespace

int main() {
    as_measured();
    beside_others();
    nothing_at_all();
    only_the_last_ones();
    what_fails();
    threads();
    return check::summary("memory_gauge");
}
