// The hardware queues, which the streams of a process share.
//
// Recorded (queues log):
// - A stream occupies a queue while its first task waits for the kernel ahead of it, for an event,
//   or for a branch of a graph.
// - While all queues are occupied, every other launch waits, on any SMs.
// - Running kernels, and kernels that wait only for room on their SMs, occupy no queue.
// - Copies and host functions neither occupy a queue nor wait for one. Memory sets occupy one; that
//   they wait for one is assumed.
// What waits for a host function is assumed to occupy a queue no longer than if it returned at once.
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

Queues& queues_of(const Machine& machine, const Stream& stream) {
    const Context& context = *stream.context;
    Queues& queues = context.workqueue.queues ? *context.workqueue.queues : context.device->queues;
    if (queues.all.empty())
        queues.all.resize(queues.count != 0 ? queues.count : machine.connections);
    return queues;
}

Queue& first_free(Queues& queues) {
    return *std::ranges::min_element(queues.all, {}, &Queue::until);
}

// Returns the queue that the stream occupies, or else the one that becomes free first.
Queue& next_queue(Queues& queues, const Stream& stream, uint64_t now) {
    const auto occupied = std::ranges::find_if(queues.all, [&](const Queue& queue) {
        return queue.ticket == stream.queue_ticket && queue.until > now;
    });
    if (occupied != queues.all.end())
        return *occupied;
    return first_free(queues);
}

uint64_t occupy(Machine& machine, Queues& queues, Queue& queue, uint64_t until) {
    queue.ticket = machine.next_queue_ticket++;
    queue.until = std::max(queue.until, until);
    queues.occupied_until = std::max(queues.occupied_until, queue.until);
    return queue.ticket;
}

} // namespace

Moment start_in_queue(Machine& machine, Stream& stream, Moment ready) {
    const uint64_t now = machine.clock_ns;
    const uint64_t ready_ns = planned_ns(ready);
    Queues& queues = queues_of(machine, stream);
    if (ready_ns <= now && queues.occupied_until <= now)
        return ready;
    Queue& queue = next_queue(queues, stream, now);
    const bool has_it = queue.ticket == stream.queue_ticket && queue.until > now;
    const uint64_t from = has_it ? now : std::max(now, queue.until);
    if (ready_ns <= from)
        ready.ns = from;
    else
        stream.queue_ticket = occupy(machine, queues, queue, ready_ns);
    return ready;
}

void occupy_queue(Machine& machine, const Stream& stream, uint64_t until) {
    Queues& queues = queues_of(machine, stream);
    occupy(machine, queues, first_free(queues), until);
}

} // namespace gcx::sim
