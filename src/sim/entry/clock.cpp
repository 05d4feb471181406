#include "sim/entry/clock.hpp"
#include "sim/entry/entry.hpp"
#include "sim/entry/host_thread.hpp"

#include <tuple>

namespace gcx::sim {
namespace {

bool is_later(const Effect& one, const Effect& other) {
    return std::tie(one.when.ns, one.number) > std::tie(other.when.ns, other.number);
}

void make_due(Machine& machine, Effect effect) {
    machine.due.push_back(std::move(effect));
    std::ranges::push_heap(machine.due, is_later);
}

bool is_next_before(const Machine& machine, uint64_t ns) {
    return !machine.due.empty() && machine.due.front().when.ns <= ns;
}

// Host functions that begin on the way get the chance to return at their time.
void move_clock(Machine& machine, uint64_t ns) {
    give_way_to_host(machine);
    while (is_next_before(machine, ns)) {
        apply_next(machine);
        give_way_to_host(machine);
    }
    machine.clock_ns = std::max(machine.clock_ns, ns);
}

// Returns when the call has returned, which does not begin before a moment.
Moment end_of_call(const std::shared_ptr<HostCall>& call) {
    return {call->planned_ns, {{call, call->planned_ns}}};
}

std::shared_ptr<HostCall> new_call(Machine& machine, const Moment& begin) {
    start_host_thread();
    auto call = std::make_shared<HostCall>();
    call->planned_ns = planned_ns(begin);
    machine.unfinished_calls++;
    return call;
}

} // namespace

void include(Moment& moment, const std::vector<Moment::After>& after) {
    settle(moment);
    for (const Moment::After& one : after) {
        const auto same = std::ranges::find(moment.after, one.call, &Moment::After::call);
        if (one.call->returned)
            moment.ns = std::max(moment.ns, one.ns + one.call->delay_ns);
        else if (same == moment.after.end())
            moment.after.push_back(one);
        else
            same->ns = std::max(same->ns, one.ns);
    }
}

Moment later(Moment one, const Moment& other) {
    extend(one, other);
    return one;
}

Moment plus(Moment moment, uint64_t ns) {
    moment.ns += ns;
    for (Moment::After& after : moment.after)
        after.ns += ns;
    return moment;
}

void settle(Moment& moment) {
    std::erase_if(moment.after, [&](const Moment::After& after) {
        if (after.call->returned)
            moment.ns = std::max(moment.ns, after.ns + after.call->delay_ns);
        return after.call->returned;
    });
}

uint64_t planned_ns(const Moment& moment) {
    uint64_t ns = moment.ns;
    for (const Moment::After& after : moment.after)
        ns = std::max(ns, after.ns + after.call->delay_ns);
    return ns;
}

bool has_passed(const Machine& machine, const Moment& moment) {
    return planned_ns(moment) <= machine.clock_ns && !is_next_before(machine, planned_ns(moment)) &&
           std::ranges::all_of(moment.after,
                               [](const Moment::After& after) { return after.call->returned; });
}

void schedule(Machine& machine, Moment when, std::function<void(Machine&)> apply) {
    settle(when);
    Effect effect{std::move(when), machine.next_effect++, std::move(apply)};
    if (!effect.when.after.empty()) {
        machine.held.push_back(std::move(effect));
        return;
    }
    const uint64_t number = effect.number;
    make_due(machine, std::move(effect));
    if (machine.unfinished_calls > 0 && machine.due.front().number == number)
        notify_host(); // the clock goes on to it in real time
}

Moment schedule_host(Machine& machine, const Moment& begin, std::function<void()> function) {
    const std::shared_ptr<HostCall> call = new_call(machine, begin);
    call->function = std::move(function);
    schedule(machine, begin, [call](Machine& later) {
        later.ready.push_back(call);
        notify_host();
    });
    return end_of_call(call);
}

Moment schedule_wait(Machine& machine, const Moment& begin, std::function<bool(Machine&)> holds) {
    const std::shared_ptr<HostCall> call = new_call(machine, begin);
    schedule(machine, begin, [call, holds = std::move(holds)](Machine& later) {
        later.value_waits.push_back({call, holds});
        notify_host();
    });
    return end_of_call(call);
}

void end_call(Machine& machine, HostCall& call) {
    call.returned = true;
    call.delay_ns = machine.clock_ns - std::min(machine.clock_ns, call.planned_ns);
    machine.unfinished_calls--;
    machine.returned_calls++;
    release_held(machine);
}

void end_value_waits(Machine& machine) {
    const auto ended = std::erase_if(machine.value_waits, [&](const ValueWait& wait) {
        const bool holds = wait.holds(machine);
        if (holds)
            end_call(machine, *wait.call);
        return holds;
    });
    if (ended != 0)
        notify_host();
}

void apply_next(Machine& machine) {
    std::ranges::pop_heap(machine.due, is_later);
    const Effect effect = std::move(machine.due.back());
    machine.due.pop_back();
    machine.clock_ns = std::max(machine.clock_ns, effect.when.ns);
    effect.apply(machine);
    end_value_waits(machine);
}

void apply_until(Machine& machine, uint64_t ns) {
    while (is_next_before(machine, ns))
        apply_next(machine);
    machine.clock_ns = std::max(machine.clock_ns, ns);
}

void release_held(Machine& machine) {
    std::vector<Effect> held;
    held.swap(machine.held);
    for (Effect& effect : held) {
        settle(effect.when);
        if (effect.when.after.empty())
            make_due(machine, std::move(effect));
        else
            machine.held.push_back(std::move(effect));
    }
}

void add_cost(Machine& machine, uint64_t ns) {
    end_value_waits(machine); // the program may have written
    apply_until(machine, machine.clock_ns + ns);
}

void advance_to(Machine& machine, uint64_t ns) {
    move_clock(machine, ns);
}

void wait_until(Machine& machine, Moment moment) {
    for (settle(moment); !has_passed(machine, moment); settle(moment)) {
        if (moment.ns > machine.clock_ns)
            move_clock(machine, moment.ns);
        else if (!machine.due.empty() && !is_host_busy(machine)) // its host function begins later
            move_clock(machine, machine.due.front().when.ns);
        else if (is_host_busy(machine) || !machine.value_waits.empty())
            wait_for_host(machine);
        else
            refuse(CUDA_ERROR_UNKNOWN); // in a forked child, where nothing runs
    }
}

} // namespace gcx::sim
