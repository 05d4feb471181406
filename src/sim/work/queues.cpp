// The hardware's queues, which the streams of a process share.
//
// Recorded (queues): a stream holds one while the first thing in it waits for something before it:
// for the kernel ahead in its stream, for an event, for a graph's branch. While all are held, every
// other launch waits, whatever SMs it has. What runs holds none, nor does a kernel that only waits
// for room on its SMs, which here none ever does; copies neither hold nor wait for one. Of memory
// sets and host functions nothing was recorded: they are taken for copies.
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

Queues& queues_of(const Machine& machine, const Stream& stream) {
    const Context& context = *stream.context;
    Queues& queues = context.workqueue.own ? *context.workqueue.own : context.device->queues;
    if (queues.all.empty())
        queues.all.resize(queues.count != 0 ? queues.count : machine.connections);
    return queues;
}

// The one that the stream holds, else the one that is free first.
Queue& next_queue(Queues& queues, const Stream& stream, uint64_t now) {
    const auto its = std::find_if(queues.all.begin(), queues.all.end(), [&](const Queue& queue) {
        return queue.holder == stream.queue_hold && queue.until > now;
    });
    if (its != queues.all.end())
        return *its;
    return *std::min_element(queues.all.begin(), queues.all.end(),
                             [](const Queue& a, const Queue& b) { return a.until < b.until; });
}

uint64_t hold(Machine& machine, Queues& queues, Queue& queue, uint64_t until) {
    queue.holder = machine.next_queue_hold++;
    queue.until = std::max(queue.until, until);
    queues.held_until = std::max(queues.held_until, queue.until);
    return queue.holder;
}

} // namespace

uint64_t start_in_queue(Machine& machine, Stream& stream, uint64_t ready) {
    const uint64_t now = machine.clock_ns;
    Queues& queues = queues_of(machine, stream);
    if (ready <= now && queues.held_until <= now)
        return ready;
    Queue& queue = next_queue(queues, stream, now);
    const bool has_it = queue.holder == stream.queue_hold && queue.until > now;
    const uint64_t from = has_it ? now : std::max(now, queue.until);
    if (ready <= from)
        return from;
    stream.queue_hold = hold(machine, queues, queue, ready);
    return ready;
}

void reservation_queue(Machine& machine, const Stream& stream, uint64_t until) {
    Queues& queues = queues_of(machine, stream);
    Queue& queue =
        *std::min_element(queues.all.begin(), queues.all.end(),
                          [](const Queue& a, const Queue& b) { return a.until < b.until; });
    hold(machine, queues, queue, until);
}

} // namespace gcx::sim
