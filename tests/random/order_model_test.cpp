// The model of the order that plain CUDA promises, rule by rule.
#include "order_model.hpp"

#include "check.hpp"

using namespace random_programs;

namespace {

Action act(Timelines& timelines, Slot slot) {
    const Action action = timelines.plan(slot);
    timelines.commit(action);
    return action;
}

bool is_after(const Action& later, const Action& earlier) {
    return later.clock.covers(earlier.slot, earlier.clock.at(earlier.slot));
}

void null_and_blocking_streams_wait_for_each_other() {
    Timelines timelines;
    const Slot blocking = timelines.create(true);
    const Slot other = timelines.create(true);
    const Action first = act(timelines, blocking);
    const Action of_thread = act(timelines, kThreadStreams + 2);
    CHECK(!is_after(act(timelines, other), first));
    const Action null = act(timelines, kNull);
    CHECK(is_after(null, first) && is_after(null, of_thread));
    CHECK(is_after(act(timelines, other), null));
    CHECK(is_after(act(timelines, other), first));
    CHECK(is_after(act(timelines, kThreadStreams), null));
}

void non_blocking_stream_and_null_do_not_wait() {
    Timelines timelines;
    const Slot stream = timelines.create(false);
    const Action first = act(timelines, stream);
    const Action null = act(timelines, kNull);
    CHECK(!is_after(null, first));
    const Action second = act(timelines, stream);
    CHECK(!is_after(second, null));
    CHECK(is_after(second, first));
}

void host_waits_for_blocking_streams_by_null_alone() {
    Timelines timelines;
    const Slot blocking = timelines.create(true);
    const Slot free = timelines.create(false);
    const Action null = act(timelines, kNull);
    // A blocking stream without an action since does not include it.
    CHECK(!timelines.work_of(blocking).covers(kNull, null.clock.at(kNull)));
    const Action first = act(timelines, blocking);
    const Action second = act(timelines, free);
    CHECK(timelines.work_of(kNull).covers(blocking, first.clock.at(blocking)));
    CHECK(!timelines.work_of(kNull).covers(free, second.clock.at(free)));
    CHECK(timelines.all_work().covers(free, second.clock.at(free)));
    timelines.host_waits(timelines.work_of(kNull));
    CHECK(is_after(act(timelines, free), first));
}

void destroyed_stream_counts_until_its_work_is_known() {
    Timelines timelines;
    const Slot stream = timelines.create(true);
    const Action first = act(timelines, stream);
    timelines.destroy(stream);
    CHECK(timelines.create(true) != stream);
    CHECK(is_after(act(timelines, kNull), first));
    timelines.host_waits(timelines.work_of(kNull));
    CHECK_EQ(timelines.create(true), stream);
    const Action second = act(timelines, stream);
    CHECK(second.clock.at(stream) > first.clock.at(stream));
}

void number_of_streams_is_limited() {
    Timelines timelines;
    for (Slot slot = kCreated; slot < kSlots; slot++)
        CHECK_EQ(timelines.create(true), slot);
    CHECK_EQ(timelines.create(true), kHost);
}

void event_orders_streams() {
    Timelines timelines;
    const Slot before = timelines.create(false);
    const Slot after = timelines.create(false);
    const Action first = act(timelines, before);
    const Clock event = act(timelines, before).clock;
    timelines.wait(after, event);
    CHECK(is_after(act(timelines, after), first));
}

void wait_in_null_orders_blocking_streams() {
    Timelines timelines;
    const Slot before = timelines.create(false);
    const Slot after = timelines.create(true);
    const Action first = act(timelines, before);
    timelines.wait(kNull, first.clock);
    CHECK(is_after(act(timelines, after), first));
}

void record_and_allocation_do_not_make_a_blocking_stream_wait() {
    Timelines timelines;
    const Slot blocking = timelines.create(true);
    const Action null = act(timelines, kNull);
    CHECK(!is_after(timelines.record(blocking), null));
    CHECK(!is_after(timelines.allocate(blocking), null));
    CHECK(!timelines.work_of(blocking).covers(kNull, null.clock.at(kNull)));
    CHECK(is_after(act(timelines, blocking), null));
}

void record_in_null_separates_and_allocation_does_not() {
    for (const bool records : {false, true}) {
        Timelines timelines;
        const Slot before = timelines.create(true);
        const Slot after = timelines.create(true);
        const Action first = act(timelines, before);
        if (records)
            timelines.record(kNull);
        else
            timelines.allocate(kNull);
        CHECK_EQ(is_after(act(timelines, after), first), records);
    }
}

void word_is_accessed_in_order_only() {
    Timelines timelines;
    Words words;
    Word word;
    word.live = true;
    word.memory = Memory::kPinned;
    words.add(word);
    const Slot one = timelines.create(false);
    const Slot two = timelines.create(false);
    CHECK(!Words::readable(words[0], timelines.host())); // nobody has written it
    words.write(0, act(timelines, one), 5);
    CHECK(!Words::readable(words[0], timelines.plan(two).clock));
    CHECK(Words::readable(words[0], timelines.plan(one).clock));
    timelines.wait(two, timelines.work_of(one));
    CHECK(Words::writable(words[0], timelines.plan(two).clock));
    words.read(0, act(timelines, two));
    CHECK(Words::readable(words[0], timelines.plan(one).clock));
    CHECK(!Words::writable(words[0], timelines.plan(one).clock)); // the reader comes first
}

void word_is_checked_once_the_host_knows_it() {
    Timelines timelines;
    Words words;
    Word word;
    word.live = true;
    word.memory = Memory::kPinned;
    words.add(word);
    const Slot stream = timelines.create(false);
    words.write(0, act(timelines, stream), 5);
    int checked = 0;
    const auto check = [&] { words.check(timelines.host(), [&](std::size_t) { checked++; }); };
    check();
    CHECK_EQ(checked, 0);
    timelines.host_waits(timelines.work_of(stream));
    check();
    check();
    CHECK_EQ(checked, 1);
}

} // namespace

int main() {
    null_and_blocking_streams_wait_for_each_other();
    non_blocking_stream_and_null_do_not_wait();
    host_waits_for_blocking_streams_by_null_alone();
    destroyed_stream_counts_until_its_work_is_known();
    number_of_streams_is_limited();
    event_orders_streams();
    wait_in_null_orders_blocking_streams();
    record_and_allocation_do_not_make_a_blocking_stream_wait();
    record_in_null_separates_and_allocation_does_not();
    word_is_accessed_in_order_only();
    word_is_checked_once_the_host_knows_it();
    return check::summary("model of the order of plain CUDA");
}
