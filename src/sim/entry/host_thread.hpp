// The thread that runs host functions, one after the other, and the one that lets the clock go on
// in real time while they are pending, so that a program that makes no driver call gets their
// results. Both begin with the first host function and stay until the process ends.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// All but on_host_thread() need the machine's lock.
void start_host_thread();
void notify_host();
bool on_host_thread(); // the caller is a host function
bool is_host_busy(const Machine& machine);
// Waits, with the lock released, until something changes and the condition holds.
void wait_for_change(const std::function<bool()>& condition);
// Waits until a host function has returned. Refuses if the machine is replaced.
void wait_for_host(Machine& machine);
// Waits until no host function runs, but only a few milliseconds for each that runs long.
void give_way_to_host(Machine& machine);
// Drops the pending host functions of a machine that is replaced, and waits for the running one.
void retire(Machine& machine);
// In a forked child, which has neither thread: nothing that was submitted happens any more.
void forget_host_thread(Machine* machine);

// Of clock.cpp, for the threads.
void apply_next(Machine& machine); // the earliest effect, moving the clock to it
void apply_until(Machine& machine, uint64_t ns);
void release_held(Machine& machine); // lets effects happen whose host functions have returned
void end_call(Machine& machine, HostCall& call);
void end_value_waits(Machine& machine); // of those whose value is there

} // namespace gcx::sim
