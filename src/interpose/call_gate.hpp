// Keeps what calls use from being destroyed by a reset of the device in another thread.
//
// A call that uses an object of gcx's own enters the gate first. A reset closes the gate, which
// waits until no call is inside. Calls never wait for each other, only for the reset itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace gcx::interpose {

class CallGate {
  public:
    // A call may enter again, also another gate, while it is inside.
    void enter() {
        for (;;) {
            if ((state_.fetch_add(kCall) & (kClosing | kClosed)) == 0 || t_depth != 0)
                break;
            state_.fetch_sub(kCall);
            while ((state_.load() & (kClosing | kClosed)) != 0)
                std::this_thread::yield();
        }
        t_depth++;
    }
    void leave() {
        t_depth--;
        state_.fetch_sub(kCall);
    }

    // New calls may enter for some time while this waits, since an earlier one can need them to
    // return, such as a launch into a full stream. Then they wait, so that a reset comes to an end.
    void close() {
        constexpr auto kPatience = std::chrono::milliseconds(100);
        const auto begin = std::chrono::steady_clock::now();
        for (uint32_t idle = 0; !state_.compare_exchange_weak(idle, idle | kClosed);) {
            if (std::chrono::steady_clock::now() - begin > kPatience)
                state_.fetch_or(kClosing);
            std::this_thread::yield();
            idle = state_.load() & kClosing;
        }
    }
    // Keeps the count of calls that are about to see the closed gate.
    void open() { state_.fetch_and(~(kClosing | kClosed)); }

  private:
    static constexpr uint32_t kClosing = 1;
    static constexpr uint32_t kClosed = 2;
    static constexpr uint32_t kCall = 4;

    static inline constinit thread_local uint32_t t_depth = 0; // gates that the thread is inside
    std::atomic<uint32_t> state_{0};
};

class InsideGate {
  public:
    explicit InsideGate(CallGate& gate) : gate_(gate) { gate_.enter(); }
    ~InsideGate() { gate_.leave(); }
    InsideGate(const InsideGate&) = delete;
    InsideGate& operator=(const InsideGate&) = delete;

  private:
    CallGate& gate_;
};

class ClosedGate {
  public:
    explicit ClosedGate(CallGate& gate) : gate_(gate) { gate_.close(); }
    ~ClosedGate() { gate_.open(); }
    ClosedGate(const ClosedGate&) = delete;
    ClosedGate& operator=(const ClosedGate&) = delete;

  private:
    CallGate& gate_;
};

} // namespace gcx::interpose
