// Tests reservations, in this process and among several.
#include "tests.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

using namespace std::chrono_literals;

void reservation_describes_itself() {
    const gcx::reservation one(0, 24, {"one"});
    const gcx::reservation two(0, 22, {"two"});
    const gcx::reservation there(1, gcx::rest);
    CHECK(one.sm_count() == 24 && two.sm_count() == 24 && there.sm_count() == 132);
    CHECK(one.name() == "one" && there.name().empty() && one.id() != two.id());
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 0u);
    CHECK(there.get_resource().device() == 1);
    const gcx_reservation_info info = two.info();
    CHECK(info.family == gcx::family::coscheduled && info.simulated == 1 && info.joined == 0);
    CHECK(info.lost == 0 && info.device_sm_count == 132 && info.mps == gcx::mps_state::off);

    gcx::reservation_params fewer;
    fewer.min_sm_count = 8;
    CHECK_EQ(gcx::reservation(0, 100, fewer).sm_count(), 132u - 2 * 24);
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::reservation(0, 100));
    CHECK(std::string(gcx::last_error_message()).find("\"two\"") != std::string::npos);
    const std::vector<gcx_live_reservation> live = gcx::live_reservations();
    CHECK_EQ(live.size(), 3u);
    CHECK(std::any_of(live.begin(), live.end(), [&](const gcx_live_reservation& found) {
        return found.id == one.id() && std::string(found.name) == "one" && found.pid == getpid() &&
               found.atoms[0] == one.info().atoms[0];
    }));
}

// More reservations exist than the list has room for at first, in a folder that only the caller
// names.
void named_folder_has_separate_reservations() {
    const Folder other("GCX_RESERVATION_OTHER_DIR");
    gcx::reservation_params params;
    params.folder = other.path;
    const gcx::reservation usual(0, gcx::rest);
    std::vector<gcx::reservation> reservations;
    reservations.reserve(20);
    for (int i = 0; i < 20; i++)
        reservations.emplace_back(i % 2, 8, params);
    CHECK_EQ(gcx::live_reservations(other.path).size(), 20u);
    CHECK_EQ(gcx::live_reservations().size(), 1u);
    CHECK_EQ(reservations[7].token().rfind(std::string(other.path) + "/", 0), std::size_t{0});
    std::swap(reservations[3], reservations[12]);
    reservations.erase(reservations.begin() + 5, reservations.begin() + 9);
    CHECK_EQ(gcx::live_reservations(std::string(other.path)).size(), 16u);
    reservations.clear();
    CHECK(gcx::live_reservations(other.path).empty());
}

// A joined reservation is the same one: its token, its SMs and their end.
void joined_reservation_is_the_same() {
    gcx::reservation reservation(0, 24, {"engine"});
    const std::string token = reservation.token();
    gcx::reservation joined = gcx::reservation::join(token);
    CHECK(joined.info().joined == 1 && joined.token() == token && joined.name() == "engine");
    reservation.close();
    CHECK_EQ(gcx::lease(joined, gcx::rest).sm_count(), 24u);
#ifdef __cpp_lib_jthread
    CHECK_EQ(gcx::lease(joined, 8, std::stop_token()).sm_count(), 8u);
#endif
    joined.close();
    CHECK_THROWS(GCX_ERROR_NOT_FOUND, gcx::reservation::join(token));
}

void wrong_reservation_is_refused() {
    const auto refused = [](auto change) {
        gcx::reservation_params params;
        change(params);
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation(0, 24, params));
    };
    refused([](auto& params) { params.flags = support::no_such<gcx::reservation_flags>(0x80); });
    refused([](auto& params) { params.timeout = -1ms; });
    refused([](auto& params) { params.name = std::string("de\0code", 7); });
    refused([](auto& params) { params.folder = ""; });
    refused([](auto& params) { params.folder = std::string("/tmp\0/x", 7); });
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation(0, -8));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation(0, 1L << 40));
    const gcx::reservation there(0, 8, {std::string(63, 'n')});
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation::join(there.token() + '\0'));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::live_reservations(std::string("/tmp\0/x", 7)));
    CHECK_EQ(gcx::live_reservations().size(), 1u);
}

// The variable may be missing in the process that joins, as in reservation.hpp's example.
void join_with_unset_variable_is_refused() {
    unsetenv("GCX_TEST_NO_SUCH_RESERVATION");
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::reservation::join(std::getenv("GCX_TEST_NO_SUCH_RESERVATION")));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation::join(nullptr));
    try {
        (void)gcx::reservation::join(std::getenv("GCX_TEST_NO_SUCH_RESERVATION"));
    } catch (const gcx::error& error) {
        CHECK(std::string(error.what()).find("std::getenv") != std::string::npos);
    }
    const gcx::reservation there(0, 8);
    setenv("GCX_TEST_RESERVATION", there.token().c_str(), 1);
    CHECK_EQ(gcx::reservation::join(std::getenv("GCX_TEST_RESERVATION")).id(), there.id());
    CHECK_EQ(gcx::reservation::join(there.token()).id(), there.id());
    unsetenv("GCX_TEST_RESERVATION");
}

// An unset variable is passed as the folder or the name; only a folder that is left out is the
// default one.
void unset_variable_as_folder_or_name_is_refused() {
    unsetenv("GCX_TEST_UNSET");
    const auto unset = [] { return std::getenv("GCX_TEST_UNSET"); };
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::live_reservations(unset()));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::reservation(0, 8, {unset()}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 8, {unset()}));
    gcx::reservation_params params;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, params.folder = unset());
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, params.name = unset());
    CHECK(!params.folder && params.name.empty());
    try {
        (void)gcx::live_reservations(unset());
    } catch (const gcx::error& error) {
        CHECK(std::string(error.what()).find("std::getenv") != std::string::npos);
    }
}

// Names and folders are accepted in each form that makes a std::string.
void name_and_folder_accept_any_string() {
    gcx::reservation_params params;
    const std::string text = "a name";
    const char* const pointer = text.c_str();
    params.name = pointer;
    CHECK(params.name == text);
    params.name = text;
    params.name = std::string("another");
    CHECK(params.name == "another");
    params.name = {};
    CHECK(params.name.empty());
    const std::optional<std::string> folder = "/a/folder";
    params.folder = folder;
    CHECK(params.folder == folder);
    params.folder = std::nullopt;
    params.folder = "/another";
    params.folder = {};
    CHECK(!params.folder);
    CHECK_EQ(gcx::live_reservations({}).size(), gcx::live_reservations(std::nullopt).size());
    CHECK_EQ(gcx::live_reservations(std::optional<std::string>()).size(),
             gcx::live_reservations().size());
}

} // namespace

void test_reservations() {
    const Folder folder("GCX_RESERVATION_DIR");
    on_each_driver([] {
        reservation_describes_itself();
        named_folder_has_separate_reservations();
        wait_ends_by_timeout_or_cancel<gcx::reservation, gcx::reservation_params>(
            [] { return gcx::live_reservations().size(); });
        joined_reservation_is_the_same();
        wrong_reservation_is_refused();
        join_with_unset_variable_is_refused();
        unset_variable_as_folder_or_name_is_refused();
        name_and_folder_accept_any_string();
    });
    CHECK(gcx::live_reservations().empty());
}
