// Waits of reservations that end: at their timeout though another process has the folder locked,
// and at gcx_cancel_signal though the SMs come free just then.
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

constexpr char kH100[] = "h100@13.0";
// What a wait of at most half a second may take on a busy machine.
constexpr auto kPatience = 4s;

// The lock of the folder, as a process has it that was stopped in the middle of a change.
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

// A thread that makes and removes a file in the folder all the time, as processes that publish do.
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

// Fails a check if the body takes longer than so.
template <class Body>
void within(Clock::duration most, const Body& body) {
    const auto begin = Clock::now();
    body();
    CHECK(Clock::now() - begin < most);
}

bool is_lock_refusal(gcx_result result) {
    return (result == GCX_ERROR_ALREADY_ACQUIRED || result == GCX_ERROR_OPERATING_SYSTEM) &&
           message_has("locked for");
}

void lock_held_create_returns_at_timeout() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation own = taken(8);
        const std::string token = token_of(own);
        gcx_reservation reservation = nullptr;
        {
            const Locked locked(folder);
            const Publishing publishing(folder);
            within(kPatience, [&] { CHECK(is_lock_refusal(take(8, {}, &reservation))); });
            within(kPatience,
                   [&] { CHECK(is_lock_refusal(take(8, {.timeout_ms = 5}, &reservation))); });
            const auto begin = Clock::now();
            CHECK(is_lock_refusal(take(8, {.timeout_ms = 900}, &reservation)));
            CHECK(Clock::now() - begin >= 900ms);
            CHECK(Clock::now() - begin < 900ms + kPatience);
            within(5s + kPatience, [&] {
                CHECK(is_lock_refusal(gcx_reservation_join(token.c_str(), &reservation)));
            });
            within(kPatience, [&] { CHECK_EQ(listed().size(), 1U); });
            within(kPatience, [&] { give_back(own); });
            CHECK(listed().empty());
        }
        CHECK(reservation == nullptr);
        give_back(taken(GCX_REST));
    });
    CHECK(folder.files().empty());
}

// One that waits for SMs already, when a process is stopped in a change.
void lock_held_waiter_returns_at_timeout() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation all = taken(GCX_REST);
        gcx_reservation reservation = nullptr;
        std::thread waiter([&] {
            within(1s + kPatience, [&] {
                CHECK_EQ(take(8, {.timeout_ms = 1000}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
            });
        });
        while (listed().size() != 2)
            std::this_thread::yield();
        {
            const Locked locked(folder);
            const Publishing publishing(folder);
            give_back(all); // which it can't learn of
            waiter.join();
        }
        CHECK(listed().empty());
        give_back(taken(GCX_REST));
    });
    CHECK(folder.files().empty());
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
            result = take(sm_count, {.name = "w", .timeout_ms = GCX_FOREVER, .cancel = cancel},
                          &reservation);
        });
        while (listed().size() == before)
            std::this_thread::yield();
    }
    void end() {
        thread.join();
        if (reservation != nullptr)
            give_back(reservation);
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
};

void cancel_signalled_waiter_is_never_granted() {
    const Folder folder;
    on_machine(kH100, [&] {
        for (int round = 0; round < 40; round++) {
            const gcx_reservation all = taken(GCX_REST);
            Waiter waiter;
            CHECK_OK(gcx_cancel_signal(waiter.cancel));
            CHECK_EQ(listed().size(), 1U); // it is out of the queue
            give_back(all);
            const gcx_reservation next = taken(GCX_REST); // and in nobody's way
            CHECK_EQ(info_of(next).sm_count, 132U);
            waiter.end();
            CHECK_EQ(waiter.result, GCX_ERROR_NOT_PERMITTED);
            give_back(next);
        }
    });
    CHECK(folder.files().empty());
}

// Whether it was granted is decided when the signal returns, and the result says the same.
void cancel_signalled_as_sms_come_free_is_decided() {
    const Folder folder;
    on_machine(kH100, [&] {
        int granted = 0;
        for (int round = 0; round < 60; round++) {
            const gcx_reservation all = taken(GCX_REST);
            Waiter waiter;
            std::thread giver([&] {
                give_back(all);
                std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
            });
            std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
            CHECK_OK(gcx_cancel_signal(waiter.cancel));
            bool has = false;
            for (const gcx_live_reservation& live : listed())
                has = has || (live.waits == 0 && std::string(live.name) == "w");
            giver.join();
            waiter.thread.join();
            CHECK_EQ(waiter.result, has ? GCX_SUCCESS : GCX_ERROR_NOT_PERMITTED);
            granted += has ? 1 : 0;
            if (waiter.reservation != nullptr)
                give_back(waiter.reservation);
            CHECK_OK(gcx_cancel_destroy(waiter.cancel));
        }
        CHECK(granted < 60);
    });
    CHECK(folder.files().empty());
}

void cancel_signalled_next_waiter_is_served() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation most = taken(72);
        Waiter first(132);
        Waiter second(8);
        CHECK_OK(gcx_cancel_signal(first.cancel));
        second.thread.join(); // though nothing came free
        CHECK_EQ(second.result, GCX_SUCCESS);
        second.thread = std::thread([] {});
        second.end();
        first.end();
        CHECK_EQ(first.result, GCX_ERROR_NOT_PERMITTED);
        give_back(most);
    });
    CHECK(folder.files().empty());
}

// The signal waits for no other process.
void cancel_signalled_while_lock_held_returns() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation all = taken(GCX_REST);
        Waiter waiter;
        {
            const Locked locked(folder);
            within(kPatience, [&] { CHECK_OK(gcx_cancel_signal(waiter.cancel)); });
            CHECK_EQ(listed().size(), 1U);
            give_back(all);
        }
        give_back(taken(GCX_REST));
        waiter.end();
        CHECK_EQ(waiter.result, GCX_ERROR_NOT_PERMITTED);
    });
    CHECK(folder.files().empty());
}

// Several waits of one cancel, those that come later among them.
void cancel_signalled_ends_all_its_waits() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation all = taken(GCX_REST);
        gcx_cancel cancel = nullptr;
        CHECK_OK(gcx_cancel_create(&cancel));
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&] {
                gcx_reservation reservation = nullptr;
                CHECK_EQ(take(8, {.timeout_ms = GCX_FOREVER, .cancel = cancel}, &reservation),
                         GCX_ERROR_NOT_PERMITTED);
            });
        while (listed().size() != 5)
            std::this_thread::yield();
        CHECK_OK(gcx_cancel_signal(cancel));
        CHECK_EQ(listed().size(), 1U);
        CHECK_OK(gcx_cancel_signal(cancel));
        give_back(all);
        gcx_reservation reservation = nullptr;
        CHECK_EQ(take(8, {.cancel = cancel}, &reservation), GCX_ERROR_NOT_PERMITTED);
        for (std::thread& thread : threads)
            thread.join();
        CHECK_OK(gcx_cancel_destroy(cancel));
    });
    CHECK(folder.files().empty());
}

} // namespace

int main() {
    lock_held_create_returns_at_timeout();
    lock_held_waiter_returns_at_timeout();
    cancel_signalled_waiter_is_never_granted();
    cancel_signalled_as_sms_come_free_is_decided();
    cancel_signalled_next_waiter_is_served();
    cancel_signalled_while_lock_held_returns();
    cancel_signalled_ends_all_its_waits();
    return check::summary("waits of reservations");
}
