#include "order_model.hpp"

namespace random_programs {

Timelines::Timelines() {
    for (Slot slot = kNull; slot < kCreated; slot++)
        streams_[slot].live = true;
}

Action Timelines::plan(Slot slot) const {
    Action action{slot, host_};
    action.clock.join(streams_[slot].clock);
    if (slot == kNull)
        action.clock.join(blocking_);
    else if (streams_[slot].blocking)
        action.clock.join(streams_[kNull].acted);
    action.clock.at(slot)++;
    return action;
}

void Timelines::commit(const Action& action) {
    Stream& stream = streams_[action.slot];
    stream.clock = stream.acted = action.clock;
    if (action.slot != kNull && stream.blocking)
        blocking_.join(action.clock);
}

Action Timelines::allocate(Slot slot) {
    Stream& stream = streams_[slot];
    Action action{slot, host_};
    action.clock.join(stream.clock);
    action.clock.at(slot)++;
    stream.clock = action.clock;
    if (slot != kNull && stream.blocking)
        blocking_.join(stream.clock);
    return action;
}

Action Timelines::record(Slot slot) {
    if (slot != kNull)
        return allocate(slot);
    const Action action = plan(slot);
    commit(action);
    return action;
}

void Timelines::wait(Slot slot, const Clock& event) {
    Stream& stream = streams_[slot];
    stream.clock.join(event);
    if (slot == kNull)
        commit(plan(slot));
    else if (stream.blocking)
        blocking_.join(stream.clock);
}

Action Timelines::act_on_host() {
    host_.at(kHost)++;
    return {kHost, host_};
}

Clock Timelines::work_of(Slot slot) const {
    Clock clock = streams_[slot].clock;
    if (slot == kNull)
        clock.join(blocking_);
    return clock;
}

Clock Timelines::all_work() const {
    Clock clock = host_;
    for (const Stream& stream : streams_)
        clock.join(stream.clock);
    return clock;
}

Slot Timelines::create(bool blocking) {
    for (Slot slot = kCreated; slot < kSlots; slot++) {
        Stream& stream = streams_[slot];
        if (stream.live || !host_.covers(stream.clock))
            continue;
        // The count goes on, since words remember it.
        const uint32_t count = stream.clock.at(slot);
        stream = {};
        stream.clock.at(slot) = count;
        stream.blocking = blocking;
        stream.live = true;
        return slot;
    }
    return kHost;
}

void Words::write(std::size_t index, const Action& action, uint32_t value) {
    Word& word = words_[index];
    word.known = true;
    word.value = value;
    word.writer = action.slot;
    word.written = action.clock.at(action.slot);
    word.readers = {};
    if (!is_read_by_host(word.memory))
        return;
    if (!word.unchecked)
        unchecked_.push_back(index);
    word.unchecked = true;
}

} // namespace random_programs
