#include "sim/entry/host_thread.hpp"
#include "sim/entry/clock.hpp"
#include "sim/entry/entry.hpp"

#include <csignal>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <new>

namespace gcx::sim {
namespace {

using Clock = std::chrono::steady_clock;

// How long calls that move the clock wait for a host function, before they go on without it: it may
// itself wait for what the caller does next.
constexpr std::chrono::milliseconds kPatience{10};

// Never destroyed, since the threads use it at process exit. Constructed again in a forked child.
struct Threads {
    std::condition_variable changed;
    bool started = false;
};
alignas(Threads) std::byte g_memory[sizeof(Threads)];
Threads* g_threads = new (g_memory) Threads;

thread_local bool t_is_host = false;

Machine* live_machine() {
    Machine* const machine = existing_machine();
    return machine == nullptr || machine->abandoned ? nullptr : machine;
}

// If the program has made driver calls while the function ran, these took place at the time that
// passed meanwhile.
void finish(Machine& machine, HostCall& call, uint64_t now) {
    apply_until(machine, now);
    machine.running = nullptr;
    machine.stuck = false;
    end_call(machine, call);
    apply_until(machine, machine.clock_ns);
}

void run_next(Machine& machine, std::unique_lock<std::mutex>& lock) {
    const std::shared_ptr<HostCall> call = machine.ready.front();
    machine.ready.pop_front();
    machine.running = call;
    const uint64_t epoch = machine.epoch;
    const uint64_t calls = machine.calls;
    const uint64_t began_ns = machine.clock_ns;
    const auto began = Clock::now();
    lock.unlock();
    call->function();
    call->function = nullptr;
    const auto lasted = std::chrono::nanoseconds(Clock::now() - began);
    lock.lock();
    // The function itself may have replaced the machine.
    if (Machine* const same = existing_machine(); same != nullptr && same->epoch == epoch)
        finish(*same, *call,
               same->calls == calls ? same->clock_ns
                                    : began_ns + static_cast<uint64_t>(lasted.count()));
    notify_host();
}

void run_host_functions() {
    keep_loaded();
    t_is_host = true;
    std::unique_lock lock(machine_mutex());
    for (;;) {
        Machine* const machine = live_machine();
        if (machine == nullptr || machine->ready.empty() || is_unloaded())
            g_threads->changed.wait(lock);
        else
            run_next(*machine, lock);
    }
}

// Waits until something changes or until a time. Looks at memory meanwhile if streams wait for values
// there, which the program may write without a call.
void poll_values(const Machine& machine, std::unique_lock<std::mutex>& lock,
                 Clock::time_point end) {
    const bool waits = !machine.value_waits.empty();
    const auto next = Clock::now() + std::chrono::milliseconds(1);
    g_threads->changed.wait_until(lock, waits ? std::min(end, next) : end);
    if (Machine* const now = live_machine(); now != nullptr && !now->value_waits.empty()) {
        end_value_waits(*now);
        apply_until(*now, now->clock_ns);
    }
}

// Waits for the real time that corresponds to the time until the next effect, and then applies it
// unless a driver call has.
void keep_time_until_next(const Machine& machine, std::unique_lock<std::mutex>& lock) {
    constexpr uint64_t kLongest = 3'600'000'000'000;
    const uint64_t epoch = machine.epoch;
    const uint64_t number = machine.due.front().number;
    const uint64_t ns = machine.due.front().when.ns;
    const uint64_t left = ns - std::min(ns, machine.clock_ns);
    const auto end = Clock::now() + std::chrono::nanoseconds(std::min(left, kLongest));
    const auto find_same = [&]() -> Machine* {
        Machine* const now = live_machine();
        const bool same = now != nullptr && now->epoch == epoch && !now->due.empty() &&
                          now->due.front().number == number;
        return same ? now : nullptr;
    };
    while (find_same() != nullptr && Clock::now() < end)
        poll_values(*find_same(), lock, end);
    if (Machine* const same = find_same(); same != nullptr)
        apply_next(*same);
}

void keep_time() {
    keep_loaded();
    std::unique_lock lock(machine_mutex());
    for (;;) {
        const Machine* const machine = live_machine();
        if (machine == nullptr || machine->unfinished_calls == 0 || is_unloaded() ||
            (machine->due.empty() && machine->value_waits.empty()))
            g_threads->changed.wait(lock);
        else if (machine->due.empty())
            poll_values(*machine, lock, Clock::time_point::max());
        else
            keep_time_until_next(*machine, lock);
    }
}

// Counts a call that has released the lock. Refuses at the end if the machine is replaced, which
// waits for the count.
class Released {
  public:
    explicit Released(Machine& machine) : machine_(machine) { machine_.waiting++; }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;
    ~Released() {
        machine_.waiting--;
        if (machine_.abandoned)
            notify_host();
    }

  private:
    Machine& machine_;
};

} // namespace

void start_host_thread() {
    if (g_threads->started)
        return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread(run_host_functions).detach();
        std::thread(keep_time).detach();
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    g_threads->started = true;
}

void wait_for_change(const std::function<bool()>& condition) {
    g_threads->changed.wait(held_lock(), condition);
}

void notify_host() {
    g_threads->changed.notify_all();
}

bool on_host_thread() {
    return t_is_host;
}

bool is_host_busy(const Machine& machine) {
    return machine.running != nullptr || !machine.ready.empty();
}

void wait_for_host(Machine& machine) {
    {
        const Released released(machine);
        const uint64_t before = machine.returned_calls;
        wait_for_change([&] { return machine.abandoned || machine.returned_calls != before; });
    }
    require(!machine.abandoned, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

void give_way_to_host(Machine& machine) {
    const auto is_free = [&] {
        return machine.abandoned || machine.stuck || !is_host_busy(machine);
    };
    if (is_free() || on_host_thread())
        return;
    {
        const Released released(machine);
        while (!is_free()) {
            const uint64_t before = machine.returned_calls;
            const bool returned =
                g_threads->changed.wait_until(held_lock(), Clock::now() + kPatience, [&] {
                    return is_free() || machine.returned_calls != before;
                });
            machine.stuck = machine.stuck || !returned;
        }
    }
    require(!machine.abandoned, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

void retire(Machine& machine) {
    machine.abandoned = true;
    machine.ready.clear();
    machine.due.clear();
    machine.held.clear();
    machine.value_waits.clear();
    notify_host();
    wait_for_change(
        [&] { return machine.waiting == 0 && (machine.running == nullptr || on_host_thread()); });
}

void forget_host_thread(Machine* machine) {
    g_threads = new (g_memory) Threads;
    t_is_host = false;
    if (machine == nullptr)
        return;
    machine->ready.clear();
    machine->due.clear();
    machine->held.clear();
    machine->value_waits.clear();
    machine->running = nullptr;
    machine->waiting = 0;
}

} // namespace gcx::sim
