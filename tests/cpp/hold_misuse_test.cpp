// What a hostile user does with holds: each time gcx::error, and never a crash.
#include "tests.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Every member function of an owner without a handle, and closing again.
void empty_holds() {
    const gcx_result invalid = GCX_ERROR_INVALID_HANDLE;
    const gcx::hold none;
    CHECK_THROWS(invalid, none.info());
    CHECK_THROWS(invalid, none.token());
    CHECK_THROWS(invalid, none.get_resource());
    CHECK_THROWS(invalid, gcx::lease(none, 8));

    gcx::hold hold(0, 24);
    const std::string token = hold.token();
    for (int i = 0; i < 2; i++) {
        hold.close();
        CHECK(!hold);
    }
    CHECK_THROWS(invalid, hold.info());
    CHECK_THROWS(GCX_ERROR_NOT_FOUND, gcx::hold::join(token));
    gcx::cancel cancel;
    cancel.close();
    gcx::hold_params params;
    params.cancel = &cancel;
    CHECK_THROWS(invalid, gcx::hold(0, 8, params));

    // Given up behind its back, by C.
    gcx::hold other(0, 24);
    CHECK_OK(gcx_hold_destroy(other.handle()));
    CHECK_THROWS(invalid, other.close());
    CHECK_THROWS(invalid, other.token());
    (void)other.detach();
    CHECK(gcx::live_holds().empty());
}

void wrong_holds() {
    const auto refused = [](auto change) {
        gcx::hold_params params;
        change(params);
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, 24, params));
    };
    refused([](auto& params) { params.flags = support::no_such<gcx::hold_flags>(0x80); });
    refused([](auto& params) { params.family = gcx::family::structured; });
    refused([](auto& params) { params.min_sm_count = 25; });
    refused([](auto& params) { params.timeout = -1ms; });
    refused([](auto& params) { params.name = std::string(64, 'n'); });
    refused([](auto& params) { params.name = std::string("de\0code", 7); });
    refused([](auto& params) { params.folder = ""; });
    refused([](auto& params) { params.folder = "tmp"; });
    refused([](auto& params) { params.folder = std::string("/tmp\0/x", 7); });
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::hold(2, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::hold(-1, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, -8));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, 1L << 40));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, gcx::hold(0, 140));
    for (const char* token : {"", "x", "/tmp/x", "/no/such/folder/hold-x"})
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(token));
    const gcx::hold there(0, 8, {std::string(63, 'n')});
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(there.token() + '\0'));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(std::string(9000, 'x')));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::live_holds("tmp"));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::live_holds(std::string("/tmp\0/x", 7)));
    CHECK_EQ(gcx::live_holds().size(), 1u);
}

// As in hold.hpp's example: the variable may be missing in the process that joins.
void hold_join_of_unset_variable_is_refused() {
    unsetenv("GCX_TEST_NO_SUCH_HOLD");
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(std::getenv("GCX_TEST_NO_SUCH_HOLD")));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(nullptr));
    try {
        (void)gcx::hold::join(std::getenv("GCX_TEST_NO_SUCH_HOLD"));
    } catch (const gcx::error& error) {
        CHECK(std::string(error.what()).find("std::getenv") != std::string::npos);
    }
    const gcx::hold there(0, 8);
    setenv("GCX_TEST_HOLD", there.token().c_str(), 1);
    CHECK_EQ(gcx::hold::join(std::getenv("GCX_TEST_HOLD")).id(), there.id());
    CHECK_EQ(gcx::hold::join(there.token()).id(), there.id());
    unsetenv("GCX_TEST_HOLD");
}

// Where the variable is not set; a folder that is none means the default one only if it is left
// out.
void unset_variable_as_folder_or_name_is_refused() {
    unsetenv("GCX_TEST_UNSET");
    const auto unset = [] { return std::getenv("GCX_TEST_UNSET"); };
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::live_holds(unset()));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, 8, {unset()}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 8, {unset()}));
    gcx::hold_params params;
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, params.folder = unset());
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, params.name = unset());
    CHECK(!params.folder && params.name.empty());
    try {
        (void)gcx::live_holds(unset());
    } catch (const gcx::error& error) {
        CHECK(std::string(error.what()).find("std::getenv") != std::string::npos);
    }
}

// What a std::string is made of is taken as before.
void names_and_folders_are_given_as_strings_are() {
    gcx::hold_params params;
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
    CHECK_EQ(gcx::live_holds({}).size(), gcx::live_holds(std::nullopt).size());
    CHECK_EQ(gcx::live_holds(std::optional<std::string>()).size(), gcx::live_holds().size());
}

void wrong_folders() {
    const Folder open("GCX_HOLD_OPEN_FOLDER");
    CHECK_EQ(chmod(open.path, 0755), 0);
    gcx::hold_params params;
    params.folder = open.path;
    CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::hold(0, 8, params));
    CHECK(std::string(gcx::last_error_message()).find("mode 755") != std::string::npos);
    CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::live_holds(open.path));
    params.folder = "/no/such/folder";
    CHECK_THROWS(GCX_ERROR_OPERATING_SYSTEM, gcx::hold(0, 8, params));
    CHECK_THROWS(GCX_ERROR_OPERATING_SYSTEM, gcx::live_holds("/no/such/folder"));
}

// A file that a user removes: the hold says so, and ends without harm.
void a_file_is_removed() {
    gcx::hold hold(0, 24);
    CHECK_EQ(unlink(hold.token().c_str()), 0);
    CHECK_EQ(hold.info().lost, 1);
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, 0));
    CHECK_EQ(gcx::hold(0, gcx::rest).sm_count(), 132u);
    CHECK_EQ(hold.get_resource().sm_count(), 24u);
    hold.close();
}

// A forked child has no part in its parent's, and its end changes nothing for it.
void forked_with_a_hold() {
    gcx::hold hold(0, 24);
    const pid_t child = fork();
    if (child == 0) {
        bool refused = false;
        try {
            hold.info();
        } catch (const gcx::error& error) {
            refused = error.result() == GCX_ERROR_INVALID_HANDLE;
        }
        try {
            hold.close();
        } catch (const gcx::error&) {
            (void)hold.detach();
        }
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(hold.sm_count() == 24 && gcx::live_holds().size() == 1);
}

// No two of what threads take at the same time have an SM in common.
void holds_taken_in_threads() {
    std::atomic<int> wrong{0};
    std::atomic<uint32_t> held{0};
    const auto take = [&] {
        gcx::hold_params params;
        params.timeout = gcx::forever;
        for (int round = 0; round < 5; round++) {
            try {
                const gcx::hold hold(0, 64, params);
                held += 64;
                if (held.load() > 132)
                    wrong++;
                const gcx::lease lease(hold, gcx::rest);
                if ((lease.get_resource() - hold.get_resource()).sm_count() != 0)
                    wrong++;
                held -= 64;
            } catch (const gcx::error& error) {
                std::fprintf(stderr, "%s\n", error.what());
                wrong++;
            }
        }
    };
    std::vector<std::thread> running;
    running.reserve(4);
    for (int i = 0; i < 4; i++)
        running.emplace_back(take);
    for (std::thread& thread : running)
        thread.join();
    CHECK_EQ(wrong.load(), 0);
    CHECK(gcx::live_holds().empty());
}

// They end with the process, after the driver's own end.
void holds_left_to_the_end() {
    static const gcx::hold hold(0, 24);
    static const gcx::lease lease(hold, 8);
    // Never ended at all.
    CHECK(gcx::hold(0, 8).detach() != nullptr);
}

} // namespace

void test_hold_misuse() {
    const Folder folder("GCX_HOLD_FOLDER");
    on_each_driver([] {
        empty_holds();
        wrong_holds();
        hold_join_of_unset_variable_is_refused();
        unset_variable_as_folder_or_name_is_refused();
        names_and_folders_are_given_as_strings_are();
        wrong_folders();
        a_file_is_removed();
        forked_with_a_hold();
        holds_taken_in_threads();
        holds_left_to_the_end();
    });
    CHECK(gcx::live_holds().empty());
}
