// Waits that end at their timeout, even if another process has the folder locked, and by
// gcx_cancel_signal, even if the SMs become free at the same time.
#include "reservations.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

using namespace reservations;
using namespace support;
using publish::Folder;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// The longest duration of a wait of half a second on a busy machine.
constexpr auto kPatience = 4s;

// Locks the folder, like a process that was stopped in the middle of a change.
class Locked {
  public:
    explicit Locked(const Folder& folder)
        : file_(open(folder.inner().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        CHECK_EQ(flock(file_, LOCK_EX), 0);
    }
    ~Locked() { close(file_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    int file_;
};

// A thread that keeps creating and removing a file in the folder, as publishing processes do.
class Publishing {
  public:
    explicit Publishing(const Folder& folder) : path_(folder.inner() / "published") {
        thread_ = std::thread([this] {
            while (!done_) {
                std::ofstream(path_) << "x";
                std::this_thread::sleep_for(20ms);
                unlink(path_.c_str());
            }
        });
    }
    ~Publishing() {
        done_ = true;
        thread_.join();
    }
    Publishing(const Publishing&) = delete;
    Publishing& operator=(const Publishing&) = delete;

  private:
    publish::fs::path path_;
    std::atomic<bool> done_{false};
    std::thread thread_;
};

// Checks that the body takes no longer than this.
template <class Body>
void within(Clock::duration most, const Body& body) {
    const auto begin = Clock::now();
    body();
    CHECK(Clock::now() - begin < most);
}

bool is_lock_refusal(gcx_result result) {
    return result == GCX_ERROR_TIMEOUT && message_has("locked for");
}

void folder_locked_acquire_returns_at_timeout(const Folder& folder) {
    const gcx_reservation own = reserve(8);
    const std::string token = token_of(own);
    gcx_reservation reservation = nullptr;
    {
        const Locked locked(folder);
        const Publishing publishing(folder);
        within(kPatience, [&] { CHECK(is_lock_refusal(try_reserve(8, {}, &reservation))); });
        within(kPatience,
               [&] { CHECK(is_lock_refusal(try_reserve(8, {.timeout_ms = 5}, &reservation))); });
        const auto begin = Clock::now();
        CHECK(is_lock_refusal(try_reserve(8, {.timeout_ms = 900}, &reservation)));
        CHECK(Clock::now() - begin >= 900ms);
        CHECK(Clock::now() - begin < 900ms + kPatience);
        within(5s + kPatience,
               [&] { CHECK(is_lock_refusal(gcx_reservation_join(token.c_str(), &reservation))); });
        within(kPatience, [&] { CHECK_EQ(listed().size(), 1U); });
        within(kPatience, [&] { release(own); });
        CHECK(listed().empty());
    }
    CHECK(reservation == nullptr);
    release(reserve(GCX_REST));
}

// A request waits for SMs when another process is stopped in the middle of a change.
void folder_locked_waiter_returns_at_timeout(const Folder& folder) {
    const gcx_reservation all = reserve(GCX_REST);
    std::thread waiter([&] {
        within(1s + kPatience,
               [&] { CHECK_EQ(try_reserve(8, {.timeout_ms = 1000}), GCX_ERROR_TIMEOUT); });
    });
    while (listed().size() != 2)
        std::this_thread::yield();
    {
        const Locked locked(folder);
        const Publishing publishing(folder);
        release(all); // which it can't learn of
        waiter.join();
    }
    CHECK(listed().empty());
    release(reserve(GCX_REST));
}

struct Waiter {
    gcx_cancel cancel = nullptr;
    gcx_reservation reservation = nullptr;
    gcx_result result = GCX_SUCCESS;
    std::thread thread;

    explicit Waiter(uint32_t sm_count = 8) {
        const std::size_t before = listed().size();
        CHECK_OK(gcx_cancel_create(&cancel));
        thread = std::thread([this, sm_count] {
            result = try_reserve(
                sm_count, {.name = "w", .timeout_ms = GCX_FOREVER, .cancel = cancel}, &reservation);
        });
        while (listed().size() == before)
            std::this_thread::yield();
    }
    void end() {
        thread.join();
        if (reservation != nullptr)
            release(reservation);
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
};

void cancel_signalled_waiter_is_never_granted(const Folder& /*folder*/) {
    for (int round = 0; round < 40; round++) {
        const gcx_reservation all = reserve(GCX_REST);
        Waiter waiter;
        CHECK_OK(gcx_cancel_signal(waiter.cancel));
        CHECK_EQ(listed().size(), 1U); // it is out of the queue
        release(all);
        const gcx_reservation next = reserve(GCX_REST); // and in nobody's way
        CHECK_EQ(info_of(next).sm_count, 132U);
        waiter.end();
        CHECK_EQ(waiter.result, GCX_ERROR_CANCELLED);
        release(next);
    }
}

// When the signal returns, it is decided whether the request was granted, and the result agrees.
void cancel_signalled_as_sms_become_free_is_decided(const Folder& /*folder*/) {
    int granted = 0;
    for (int round = 0; round < 60; round++) {
        const gcx_reservation all = reserve(GCX_REST);
        Waiter waiter;
        std::thread giver([&] {
            release(all);
            std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
        });
        std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
        CHECK_OK(gcx_cancel_signal(waiter.cancel));
        bool has = false;
        for (const gcx_live_reservation& live : listed())
            has = has || (live.waits == 0 && std::string(live.name) == "w");
        giver.join();
        waiter.thread.join();
        CHECK_EQ(waiter.result, has ? GCX_SUCCESS : GCX_ERROR_CANCELLED);
        granted += has ? 1 : 0;
        if (waiter.reservation != nullptr)
            release(waiter.reservation);
        CHECK_OK(gcx_cancel_destroy(waiter.cancel));
    }
    CHECK(granted < 60);
}

void cancel_signalled_next_waiter_is_served(const Folder& /*folder*/) {
    const gcx_reservation most = reserve(72);
    Waiter first(132);
    CHECK_REFUSED(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("1 waits, the first, \"w\" of process "));
    Waiter second(8);
    CHECK_OK(gcx_cancel_signal(first.cancel));
    second.thread.join(); // though nothing came free
    CHECK_EQ(second.result, GCX_SUCCESS);
    second.thread = std::thread([] {});
    second.end();
    first.end();
    CHECK_EQ(first.result, GCX_ERROR_CANCELLED);
    release(most);
}

// The signal does not wait for other processes.
void cancel_signalled_while_folder_locked_returns(const Folder& folder) {
    const gcx_reservation all = reserve(GCX_REST);
    Waiter waiter;
    {
        const Locked locked(folder);
        within(kPatience, [&] { CHECK_OK(gcx_cancel_signal(waiter.cancel)); });
        CHECK_EQ(listed().size(), 1U);
        release(all);
        // A request that is cancelled while it waits for the lock gets nothing.
        gcx_cancel cancel = make_cancel();
        std::thread later([&] {
            std::this_thread::sleep_for(50ms);
            CHECK_OK(gcx_cancel_signal(cancel));
        });
        CHECK_EQ(try_reserve(8, {.timeout_ms = 1000, .cancel = cancel}), GCX_ERROR_CANCELLED);
        later.join();
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
    release(reserve(GCX_REST));
    waiter.end();
    CHECK_EQ(waiter.result, GCX_ERROR_CANCELLED);
}

// One cancel ends several waits, including later ones.
void cancel_signalled_ends_all_its_waits(const Folder& /*folder*/) {
    const gcx_reservation all = reserve(GCX_REST);
    gcx_cancel cancel = make_cancel();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            CHECK_EQ(try_reserve(8, {.timeout_ms = GCX_FOREVER, .cancel = cancel}),
                     GCX_ERROR_CANCELLED);
        });
    while (listed().size() != 5)
        std::this_thread::yield();
    CHECK_OK(gcx_cancel_signal(cancel));
    CHECK_EQ(listed().size(), 1U);
    CHECK_OK(gcx_cancel_signal(cancel));
    release(all);
    CHECK_EQ(try_reserve(8, {.cancel = cancel}), GCX_ERROR_CANCELLED);
    for (std::thread& thread : threads)
        thread.join();
    CHECK_OK(gcx_cancel_destroy(cancel));
}

} // namespace

int main() {
    leaves_no_file(folder_locked_acquire_returns_at_timeout);
    leaves_no_file(folder_locked_waiter_returns_at_timeout);
    leaves_no_file(cancel_signalled_waiter_is_never_granted);
    leaves_no_file(cancel_signalled_as_sms_become_free_is_decided);
    leaves_no_file(cancel_signalled_next_waiter_is_served);
    leaves_no_file(cancel_signalled_while_folder_locked_returns);
    leaves_no_file(cancel_signalled_ends_all_its_waits);
    return check::summary("waits of reservations");
}
