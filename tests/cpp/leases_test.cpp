// Tests leases: the SMs they get and release, streams that follow them, and waits.
#include "tests.hpp"

#include <vector>

namespace {

void lease_describes_itself() {
    const gcx::lease one(0, 24, {"one"});
    const gcx::lease two(0, 22, {"two"});
    const gcx::lease there(1, gcx::rest);
    CHECK(one.sm_count() == 24 && two.sm_count() == 24 && there.sm_count() == 132);
    CHECK(one.name() == "one" && one.device() == 0 && there.device() == 1 && there.name().empty());
    CHECK(one.id() != two.id());
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 0u);
    const gcx::stream of_one(one);
    const gcx::stream of_two(two, -2);
    CHECK(of_two.priority() == -2 && of_two.sm_count() == 24 && of_two.device() == 0);
    CHECK(of_two.get_resource() == two.get_resource());
    CHECK(one.info().stream_count == 1 && one.info().family == gcx::family::coscheduled);
    CHECK_EQ(of_two.sm_ids().size(), 24u);

    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 100));
    CHECK(std::string(gcx::last_error_message()).find("\"two\" has 24") != std::string::npos);
    const std::vector<gcx_live_lease> live = gcx::live_leases();
    CHECK(live.size() == 3 && std::string(live[1].name) == "two" && live[2].device == 1);
    CHECK(gcx::resource(live[0].resource) == one.get_resource());
    CHECK_EQ(gcx::live_leases(1).size(), 1u);
    const auto clear =
        gcx::device(0).sms().split({24, gcx::rest}, gcx::split_flags::exclude_leased);
    CHECK_EQ(clear.groups[0].overlap(one.get_resource() | two.get_resource()), 0u);
    CHECK_EQ(clear.groups[1].sm_count(), 132u - 3 * 24);
}

void parked_lease_keeps_its_streams() {
    const gcx::lease from(0, 24);
    const gcx::lease to(0, 32);
    const gcx::stream stream(from);
    const gcx::stream other(to);
    gcx::resize({{from, gcx::parked}, {to, 56}});
    CHECK(from.sm_count() == 0 && to.sm_count() == 56 && other.sm_ids().size() == 56);
    CHECK_THROWS(GCX_ERROR_LEASE_PARKED, stream.native());
    stream.synchronize();
    to.resize(gcx::parked, gcx::resize_flags::deferred);
    from.resize(gcx::rest);
    CHECK_EQ(stream.sm_ids().size(), 132u);
}

} // namespace

void test_leases() {
    on_each_driver([] {
        lease_describes_itself();
        parked_lease_keeps_its_streams();
        wait_ends_by_timeout_or_cancel<gcx::lease, gcx::lease_params>(
            [] { return gcx::live_leases().size(); });
    });
}
