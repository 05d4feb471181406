// HandleTable: stale, external and forged handles are refused, and threads can destroy and use one
// concurrently.

#include "core/handle_table.hpp"

#include "check.hpp"

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace {

using gcx::Error;

std::atomic<int> alive{0};
std::atomic<bool> refuse_to_close{false};

struct Thing {
    explicit Thing(int its_value) : value(its_value) { alive++; }
    ~Thing() {
        alive--;
        value = -1;
    }
    Thing(const Thing&) = delete;
    Thing& operator=(const Thing&) = delete;
    void close() {
        if (refuse_to_close)
            throw Error{GCX_ERROR_UNKNOWN, "it can't be closed now"};
        closed++;
    }
    int value;
    int closed = 0;
};

using Table = gcx::HandleTable<Thing>;

// NOLINTBEGIN(performance-no-int-to-ptr): handles aren't addresses
const void* pointer(uint64_t bits) {
    return reinterpret_cast<const void*>(bits);
}
// NOLINTEND(performance-no-int-to-ptr)

gcx_result pin_result(Table& table, uint64_t handle) {
    try {
        table.pin(pointer(handle));
        return GCX_SUCCESS;
    } catch (const Error& error) {
        CHECK(!error.message.empty());
        return error.result;
    }
}

gcx_result close_result(Table& table, uint64_t handle) {
    try {
        table.close(table.pin(pointer(handle)));
        return GCX_SUCCESS;
    } catch (const Error& error) {
        return error.result;
    }
}

void handles_find_their_objects() {
    Table table(1, "thing");
    CHECK(table.empty());
    std::vector<uint64_t> handles;
    std::set<uint64_t> distinct;
    for (int i = 0; i < 3000; i++) {
        handles.push_back(table.add(std::make_unique<Thing>(i)));
        distinct.insert(handles.back());
    }
    CHECK_EQ(distinct.size(), handles.size());
    CHECK(!table.empty());
    CHECK_EQ(alive.load(), 3000);
    for (int i = 0; i < 3000; i++) {
        const auto pin = table.pin(pointer(handles[static_cast<std::size_t>(i)]));
        CHECK_EQ(pin->value, i);
        CHECK_EQ(pin.handle(), handles[static_cast<std::size_t>(i)]);
    }
    for (const uint64_t handle : handles)
        CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
    CHECK(table.empty());
    CHECK_EQ(alive.load(), 0);
}

void stale_handles_are_refused() {
    Table table(1, "thing");
    const uint64_t handle = table.add(std::make_unique<Thing>(1));
    CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
    CHECK_EQ(pin_result(table, handle), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(close_result(table, handle), GCX_ERROR_INVALID_HANDLE);
}

void external_and_forged_handles_are_refused() {
    Table table(1, "thing");
    Table other(2, "other thing");
    const uint64_t mine = table.add(std::make_unique<Thing>(1));
    const uint64_t foreign = other.add(std::make_unique<Thing>(2));
    CHECK_EQ(pin_result(table, foreign), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(pin_result(other, mine), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(pin_result(table, 0), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(pin_result(table, UINT64_MAX), GCX_ERROR_INVALID_HANDLE);
    for (int bit = 0; bit < 64; bit++)
        CHECK_EQ(pin_result(table, mine ^ (uint64_t{1} << bit)), GCX_ERROR_INVALID_HANDLE);
    std::mt19937_64 random(9);
    for (int round = 0; round < 2000; round++)
        CHECK_EQ(pin_result(table, random()), GCX_ERROR_INVALID_HANDLE);
    // An address is not a handle.
    CHECK_EQ(pin_result(table, reinterpret_cast<uint64_t>(&table)), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(close_result(table, mine), GCX_SUCCESS);
    CHECK_EQ(close_result(other, foreign), GCX_SUCCESS);
}

void slots_are_reused_with_new_handles() {
    Table table(3, "thing");
    std::set<uint64_t> seen;
    std::map<uint64_t, int> uses; // by what follows the generation
    uint64_t before = 0;
    for (int round = 0; round < 20480; round++) {
        const uint64_t handle = table.add(std::make_unique<Thing>(round));
        CHECK(seen.insert(handle).second);
        uses[handle >> 40]++;
        if (before != 0)
            CHECK_EQ(pin_result(table, before), GCX_ERROR_INVALID_HANDLE);
        CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
        before = handle;
    }
    CHECK_EQ(alive.load(), 0);
    // Slots take turns, so that an old handle's number returns as late as possible.
    CHECK_EQ(uses.size(), 1024U);
    for (const auto& [slot, count] : uses)
        CHECK_EQ(count, 20);
}

// The slots of live handles take no turns, but the free ones still do.
void few_free_slots_take_turns() {
    Table table(3, "thing");
    std::vector<uint64_t> staying;
    for (int i = 0; i < 1020; i++)
        staying.push_back(table.add(std::make_unique<Thing>(i)));
    std::map<uint64_t, int> uses;
    for (int round = 0; round < 400; round++) {
        const uint64_t handle = table.add(std::make_unique<Thing>(round));
        uses[handle >> 40]++;
        CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
    }
    CHECK_EQ(uses.size(), 4U);
    for (const uint64_t handle : staying)
        CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
    CHECK(table.empty());
    CHECK_EQ(alive.load(), 0);
}

void tables_of_two_runs_give_different_handles() {
    Table one(1, "thing");
    Table other(1, "thing");
    const uint64_t a = one.add(std::make_unique<Thing>(1));
    const uint64_t b = other.add(std::make_unique<Thing>(2));
    CHECK(a != b);
    CHECK_EQ(pin_result(other, a), GCX_ERROR_INVALID_HANDLE);
    CHECK_EQ(close_result(one, a), GCX_SUCCESS);
    CHECK_EQ(close_result(other, b), GCX_SUCCESS);
}

void pins_outlive_their_handles() {
    Table table(1, "thing");
    const uint64_t handle = table.add(std::make_unique<Thing>(5));
    {
        const auto pin = table.pin(pointer(handle));
        CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
        CHECK_EQ(pin_result(table, handle), GCX_ERROR_INVALID_HANDLE);
        CHECK_EQ(pin->value, 5);
        CHECK_EQ(pin->closed, 0); // that waits for the pin
        CHECK_EQ(alive.load(), 1);
    }
    CHECK_EQ(alive.load(), 0);
}

void failed_close_keeps_the_handle_valid() {
    Table table(1, "thing");
    const uint64_t handle = table.add(std::make_unique<Thing>(6));
    refuse_to_close = true;
    CHECK_EQ(close_result(table, handle), GCX_ERROR_UNKNOWN);
    refuse_to_close = false;
    CHECK_EQ(table.pin(pointer(handle))->value, 6);
    CHECK_EQ(close_result(table, handle), GCX_SUCCESS);
    CHECK_EQ(alive.load(), 0);
}

void full_table_refuses_and_stays_usable() {
    Table table(1, "thing");
    std::vector<uint64_t> handles(1U << 20);
    for (uint64_t& handle : handles)
        handle = table.add(std::make_unique<Thing>(0));
    bool refused = false;
    try {
        table.add(std::make_unique<Thing>(0));
    } catch (const Error& error) {
        refused = error.result == GCX_ERROR_OUT_OF_MEMORY &&
                  error.message.find("1048576 thing handles") != std::string::npos;
    }
    CHECK(refused);
    CHECK_EQ(close_result(table, handles[7]), GCX_SUCCESS);
    handles[7] = table.add(std::make_unique<Thing>(0));
    for (const uint64_t handle : handles)
        close_result(table, handle);
    CHECK(table.empty());
    CHECK_EQ(alive.load(), 0);
}

// Exactly one thread closes each handle, and no pin sees a closed object.
void threads_race_for_pins_and_closes() {
    constexpr int kThreads = 8;
    constexpr int kRounds = 3000;
    constexpr std::size_t kSlots = 4;
    Table table(1, "thing");
    std::atomic<uint64_t> shared[kSlots] = {};
    std::atomic<int> added{0};
    std::atomic<int> closed{0};
    std::atomic<int> dead_seen{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; t++) {
        threads.emplace_back([&, t] {
            std::mt19937 random(static_cast<unsigned>(t));
            for (int round = 0; round < kRounds; round++) {
                std::atomic<uint64_t>& slot = shared[random() % kSlots];
                switch (random() % 4) {
                case 0: {
                    slot = table.add(std::make_unique<Thing>(round));
                    added++;
                    break;
                }
                case 1: {
                    if (close_result(table, slot.load()) == GCX_SUCCESS)
                        closed++;
                    break;
                }
                default:
                    try {
                        const auto pin = table.pin(pointer(slot.load()));
                        if (pin->value < 0)
                            dead_seen++;
                    } catch (const Error& error) {
                        if (error.result != GCX_ERROR_INVALID_HANDLE)
                            dead_seen++;
                    }
                }
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(dead_seen.load(), 0);
    CHECK(closed.load() > 0);
    CHECK_EQ(alive.load(), added.load() - closed.load());
    CHECK_EQ(table.empty(), added.load() == closed.load());
}

void one_of_many_closers_wins() {
    Table table(1, "thing");
    for (int round = 0; round < 200; round++) {
        const uint64_t handle = table.add(std::make_unique<Thing>(round));
        std::atomic<int> winners{0};
        std::vector<std::thread> threads;
        threads.reserve(8);
        for (int t = 0; t < 8; t++)
            threads.emplace_back(
                [&] { winners += close_result(table, handle) == GCX_SUCCESS ? 1 : 0; });
        for (std::thread& thread : threads)
            thread.join();
        CHECK_EQ(winners.load(), 1);
    }
    CHECK_EQ(alive.load(), 0);
    CHECK(table.empty());
}

} // namespace

int main() {
    handles_find_their_objects();
    stale_handles_are_refused();
    external_and_forged_handles_are_refused();
    slots_are_reused_with_new_handles();
    few_free_slots_take_turns();
    tables_of_two_runs_give_different_handles();
    pins_outlive_their_handles();
    failed_close_keeps_the_handle_valid();
    full_table_refuses_and_stays_usable();
    threads_race_for_pins_and_closes();
    alive = 0; // the race's table took what was left with it
    one_of_many_closers_wins();
    return check::summary("handle_table");
}
