// A plan that is written can be read again. Other text is refused with a message.
#include "interpose/exec_plan.hpp"

#include "check.hpp"

using namespace gcx::interpose;

namespace {

Plan example() {
    Plan plan;
    plan.driver = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    plan.shim = "/opt/my gcx/100%/libgcx-shim.so";
    plan.reported_count = ReportedCount::kDevice;
    plan.own_contexts = true;
    DevicePart first;
    first.uuid = {0, 1, 0xab, 0xff};
    first.family = GCX_SM_FAMILY_FINE;
    first.sm_count = 12;
    first.atoms = {0, 1, 2, 5, 7, 8};
    first.family_atoms = 66;
    first.token = "a token=%20 \n of bytes";
    DevicePart second;
    second.uuid = {9};
    second.sm_count = 20;
    second.atoms = {14, 15};
    second.family_atoms = 16;
    plan.devices = {first, second};
    return plan;
}

void plan_written_is_read_again() {
    const Plan written = example();
    const std::string text = write_plan(written);
    CHECK_EQ(text,
             "gcx-exec-1 driver=/usr/lib/x86_64-linux-gnu/libcuda.so.1 "
             "shim=/opt/my%20gcx/100%25/libgcx-shim.so report=device contexts=device "
             "device=0001abff000000000000000000000000 family=fine sms=12 atoms=0-2,5,7-8 of=66 "
             "token=a%20token=%2520%20%0a%20of%20bytes "
             "device=09000000000000000000000000000000 family=coscheduled sms=20 atoms=14-15 of=16");
    const Plan read = read_plan(text);
    CHECK_EQ(write_plan(read), text);
    CHECK_EQ(read.driver, written.driver);
    CHECK_EQ(read.shim, written.shim);
    CHECK_EQ(read.devices[0].token, written.devices[0].token);
    CHECK_EQ(read.devices[1].token, "");
    CHECK(read.reported_count == ReportedCount::kDevice);
    CHECK(read.own_contexts);
    CHECK_EQ(read.devices.size(), 2u);
    CHECK(read.devices[0].uuid == written.devices[0].uuid);
    CHECK_EQ(read.devices[0].family, GCX_SM_FAMILY_FINE);
    CHECK(read.devices[0].atoms == written.devices[0].atoms);
    CHECK_EQ(read.devices[1].family_atoms, 16u);
    CHECK_EQ(read.devices[1].sm_count, 20u);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    CHECK(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

void check_refused(const std::string& text, const char* why) {
    try {
        read_plan(text);
        CHECK_EQ(text, "refused");
    } catch (const PlanError& error) {
        if (!CHECK(std::string(error.what()).find(why) != std::string::npos))
            std::fprintf(stderr, "    it says: %s\n", error.what());
    }
}

void plan_damaged_is_refused() {
    const std::string good = write_plan(example());
    check_refused("", "doesn't begin with gcx-exec-1");
    check_refused("gcx-exec-2 driver=/x", "another version of gcx");
    check_refused("gcx-exec-1", "names no driver");
    check_refused("gcx-exec-1 driver=/x", "names no shim");
    check_refused("gcx-exec-1 driver=/x shim=/y", "names no device");
    check_refused("gcx-exec-1 driver=/x shim=/y sms=4", "is unknown here");
    check_refused(replaced(good, "driver=/", "driver="), "is not an absolute path");
    check_refused(replaced(good, "%20", "%2"), "%XX");
    check_refused(replaced(good, "%20", "%00"), "%XX");
    check_refused(good + "%", "out of range");
    check_refused(replaced(good, "report=device", "report=both"), "is unknown here");
    check_refused(replaced(good, "contexts=device", "contexts=yes"), "is unknown here");
    check_refused(replaced(good, "report=device", "colour=red"), "is unknown here");
    check_refused(replaced(good, "0001abff", "0001abfg"), "is not a UUID");
    check_refused(replaced(good, "0001abff", "0001abf"), "is not a UUID");
    check_refused(replaced(good, "family=fine", "family=structured"), "is not a family");
    for (const char* atoms : {"", "-", "0-", "2-0", "0,0", "5,4", "0-511,512", "x", "1,"})
        check_refused(replaced(good, "0-2,5,7-8", atoms), "out of range");
    for (const char* count : {"0", "-1", "1025", "99999999999999999999", "1x", ""})
        check_refused(replaced(good, "sms=12", std::string("sms=") + count), "out of range");
    check_refused(replaced(good, " sms=12", ""), "without sms");
    check_refused(replaced(good, " atoms=14-15", ""), "without sms, atoms");
    check_refused(replaced(good, "of=66", "of=8"), "its family lacks");
    check_refused(replaced(good, "0900", "0001abff"), "is not a UUID");
    check_refused(replaced(good, "device=09000000000000000000000000000000",
                           "device=0001abff000000000000000000000000"),
                  "names a device twice");
    // A truncated plan is refused or is complete up to there.
    for (std::size_t length = 0; length < good.size(); length++) {
        try {
            const Plan plan = read_plan(std::string_view(good).substr(0, length));
            CHECK(!plan.devices.empty());
        } catch (const PlanError&) {
            CHECK(true);
        }
    }
}

} // namespace

int main() {
    plan_written_is_read_again();
    plan_damaged_is_refused();
    return check::summary("the plan of gcx exec");
}
