// Tests contexts, streams and events, and that each handle has one owner.
#include "tests.hpp"

#include <map>
#include <optional>
#include <type_traits>
#include <vector>

namespace {

static_assert(!std::is_copy_constructible_v<gcx::stream>);
static_assert(!std::is_copy_assignable_v<gcx::context>);
static_assert(std::is_nothrow_move_constructible_v<gcx::event>);
static_assert(std::is_nothrow_move_assignable_v<gcx::stream>);
static_assert(sizeof(gcx::stream) == sizeof(gcx_stream));
static_assert(!std::is_convertible_v<gcx::resource, gcx::context>);

void partition_runs_on_its_sms() {
    const auto [parts, left] = gcx::device(0).sms().split({108, 24});
    const gcx::context large(parts[0]);
    const gcx::context small(parts[1]);
    const gcx::stream a(large);
    const gcx::stream b(small, -1);
    CHECK(a.sm_ids().size() == 108 && b.sm_ids().size() == 24);

    CHECK(large.sm_count() == 108 && large.device() == 0 && large.info().stream_count == 1);
    CHECK(large.id() != small.id() && large.get_resource() == parts[0]);
    CHECK(b.sm_count() == 24 && b.priority() == -1 && b.device() == 0);
    CHECK(b.get_resource() == parts[1] && b.info().context_id == small.id());
    a.synchronize();
    large.synchronize();
    CHECK(a.query());

    const gcx::context both({parts[0], parts[1]});
    CHECK_EQ(both.sm_count(), 132u);
    const std::vector<gcx::resource> of_vector(parts.begin(), parts.end());
    CHECK_EQ(gcx::context(of_vector).id(), both.id());
    const gcx::context own(parts[1], gcx::context_flags::private_);
    CHECK(own.id() != small.id());
}

void native_stream_becomes_a_handle() {
    const gcx::context context(part(24));
    const gcx::stream stream(context);
    const gcx::event event(0, gcx::event_flags::timing | gcx::event_flags::blocking_sync);
    CHECK(context.native() != nullptr && context.native_green() != nullptr);
    const gcx::stream again = gcx::stream::from_native(stream.native());
    CHECK(again.native() == stream.native() && again.sm_count() == 24);
    const gcx::event event_again = gcx::event::from_native(event.native());
    CHECK(event_again.native() == event.native());
}

void current_guard_restores_the_context() {
    gcx::context context(part(24));
    CHECK(gcx::context::current() == nullptr);
    {
        const gcx::current_guard guard(context);
        CHECK(gcx::context::current() == context.handle());
        CHECK_THROWS(GCX_ERROR_CONTEXT_ALREADY_IN_USE, context.close());
        CHECK(context);
        const gcx::context other(part(32));
        const gcx::current_guard inner(other);
        CHECK(gcx::context::current() == other.handle());
    }
    CHECK(gcx::context::current() == nullptr);
    context.push();
    CHECK(gcx::context::pop() == context.handle());
    CHECK_THROWS(GCX_ERROR_INVALID_CONTEXT, gcx::context::pop());
    context.close();
}

void verify_of_disjoint_partitions_succeeds() {
    const auto [parts, rest] = gcx::device(0).sms().split({108, 16});
    const gcx::stream a{gcx::context(parts[0])};
    const gcx::stream b{gcx::context(parts[1])};
    const gcx::verification good = gcx::verify({a, b});
    CHECK(good);
    CHECK_EQ(good.streams.size(), 2u);
    CHECK_EQ(good.streams[1].seen_count, 16u);
    const gcx::verification bad = gcx::verify({a, a});
    CHECK(!bad);
    CHECK_EQ(bad.problems().substr(0, 32), "partitions A and B share 108 SMs");
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::verify(std::vector<gcx::stream_ref>()));
}

// Moving leaves an empty object, and destroys the target's previous handle once.
void moved_object_has_one_owner() {
    gcx::context context(part(24));
    const gcx_context handle = context.handle();
    gcx::context moved = std::move(context);
    CHECK(moved.handle() == handle && !context); // NOLINT(bugprone-use-after-move)
    gcx::context other(part(32));
    CHECK_EQ(gcx::live_contexts().size(), 2u);
    other = std::move(moved);
    CHECK(other.handle() == handle && !moved); // NOLINT(bugprone-use-after-move)
    CHECK_EQ(gcx::live_contexts().size(), 1u);
    gcx::context& self = other;
    other = std::move(self);
    CHECK(other.handle() == handle && other.sm_count() == 24);

    const gcx_context released = other.release();
    CHECK(!other && released == handle);
    CHECK_EQ(gcx::live_contexts(0).size(), 1u);
    gcx::context adopted = gcx::context::adopt(released);
    adopted.close();
    CHECK(!adopted && gcx::live_contexts().empty());
}

void objects_destroyed_in_any_order_leave_nothing() {
    gcx::set_cache_limit(0);
    const auto before = support::sim::counts();
    {
        std::optional<gcx::context> context(part(24));
        const gcx::stream stream(*context);
        context.reset();
        CHECK_EQ(stream.sm_count(), 24u);
        CHECK_EQ(stream.sm_ids().size(), 24u);
        std::map<int, gcx::stream> streams;
        streams.emplace(1, gcx::stream(gcx::context(part(32))));
        streams[2] = gcx::stream(gcx::context(part(40)), -2);
        CHECK_EQ(streams[2].sm_count(), 40u);
        std::vector<gcx::event> events;
        for (int i = 0; i < 20; i++)
            events.emplace_back(gcx::device(0));
    }
    CHECK(gcx::live_contexts().empty());
    CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
}

} // namespace

void test_objects() {
    on_each_driver([] {
        partition_runs_on_its_sms();
        native_stream_becomes_a_handle();
        current_guard_restores_the_context();
        verify_of_disjoint_partitions_succeeds();
        moved_object_has_one_owner();
        objects_destroyed_in_any_order_leave_nothing();
    });
}
