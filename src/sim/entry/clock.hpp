// The simulated clock: what happens at its times, and calls that wait for a moment.
//
// Work is scheduled when it is submitted, and its effect is applied when the clock passes its end.
// What depends on a host function is known only when that has returned: its moments name the
// function, and then lie as much later as the function returned later than planned.
#pragma once

#include "sim/machine.hpp"

#include <algorithm>

namespace gcx::sim {

// Includes the host functions of another moment; those that have returned only as a time.
void include(Moment& moment, const std::vector<Moment::After>& after);

// Changes a moment to the later one of the two.
inline void extend(Moment& moment, const Moment& other) {
    moment.ns = std::max(moment.ns, other.ns);
    if (!other.after.empty())
        include(moment, other.after);
}

Moment later(Moment one, const Moment& other);
Moment plus(Moment moment, uint64_t ns);
// Replaces host functions that have returned by the times that have become known.
void settle(Moment& moment);
// Returns the moment's time if all host functions return when planned.
uint64_t planned_ns(const Moment& moment);
bool has_passed(const Machine& machine, const Moment& moment);

// Applies an effect at a moment; effects of one time in order of submission.
void schedule(Machine& machine, Moment when, std::function<void(Machine&)> apply);
// Runs a host function at a moment. Returns when it has returned.
Moment schedule_host(Machine& machine, const Moment& begin, std::function<void()> function);
// Waits from a moment on until a condition of memory holds. Returns when it does.
Moment schedule_wait(Machine& machine, const Moment& begin, std::function<bool(Machine&)> holds);

// Moves the clock by the cost of a call.
void add_cost(Machine& machine, uint64_t ns);
// Moves the clock to a time at once, as in gcx_sim_advance().
void advance_to(Machine& machine, uint64_t ns);
// Moves the clock to a moment. Releases the machine's lock while host functions run, so that
// objects that the caller found before can be gone. Refuses if the machine is replaced.
void wait_until(Machine& machine, Moment moment);

} // namespace gcx::sim
