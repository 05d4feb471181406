// Tests contexts, streams and events.
#include "tests.hpp"

#include <vector>

namespace {

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

} // namespace

void test_objects() {
    on_each_driver([] {
        partition_runs_on_its_sms();
        native_stream_becomes_a_handle();
        current_guard_restores_the_context();
        verify_of_disjoint_partitions_succeeds();
    });
}
