// Holds: what they get and give, in this process and among several.
#include "tests.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<gcx::hold>);
static_assert(!std::is_copy_assignable_v<gcx::hold>);
static_assert(std::is_nothrow_move_constructible_v<gcx::hold>);
static_assert(std::is_nothrow_move_assignable_v<gcx::hold>);
static_assert(sizeof(gcx::hold) == sizeof(gcx_hold));
static_assert(!std::is_constructible_v<gcx::hold, gcx::device, bool>);
static_assert(!std::is_convertible_v<gcx::hold, gcx::resource>);
static_assert(!std::is_convertible_v<std::string, gcx::hold>);

gcx::hold_params held_within(std::chrono::milliseconds timeout,
                             const gcx::cancel* cancel = nullptr) {
    gcx::hold_params params;
    params.timeout = timeout;
    params.cancel = cancel;
    return params;
}

void until_holds_are(std::size_t count) {
    while (gcx::live_holds().size() != count)
        std::this_thread::sleep_for(1ms);
}

void no_other_hold_has_them() {
    const gcx::hold one(0, 24, {"one"});
    const gcx::hold two(0, 22, {"two"});
    const gcx::hold there(1, gcx::rest);
    CHECK(one.sm_count() == 24 && two.sm_count() == 24 && there.sm_count() == 132);
    CHECK(one.name() == "one" && there.name().empty() && one.id() != two.id());
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 0u);
    CHECK(there.get_resource().device() == 1);
    const gcx_hold_info info = two.info();
    CHECK(info.family == gcx::family::coscheduled && info.simulated == 1 && info.joined == 0);
    CHECK(info.lost == 0 && info.device_sm_count == 132 && info.mps == gcx::mps_state::off);

    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::hold(0, 100));
    CHECK(std::string(gcx::last_error_message()).find("\"two\"") != std::string::npos);
    const std::vector<gcx_live_hold> live = gcx::live_holds();
    CHECK_EQ(live.size(), 3u);
    uint32_t sms = 0;
    bool found = false;
    for (const gcx_live_hold& hold : live) {
        CHECK(hold.pid == getpid() && hold.user == geteuid() && hold.waits == 0);
        sms += hold.sm_count;
        found |= hold.id == one.id() && std::string(hold.name) == "one" &&
                 hold.atoms[0] == one.info().atoms[0];
    }
    CHECK(found && sms == 24 + 24 + 132);
}

// More than the list has room for at first, in a folder that only its caller names.
void holds_of_a_named_folder() {
    const Folder other("GCX_HOLD_OTHER_FOLDER");
    gcx::hold_params params;
    params.folder = other.path;
    const gcx::hold usual(0, gcx::rest);
    std::vector<gcx::hold> holds;
    holds.reserve(20);
    for (int i = 0; i < 20; i++)
        holds.emplace_back(i % 2, 8, params);
    CHECK_EQ(gcx::live_holds(other.path).size(), 20u);
    CHECK_EQ(gcx::live_holds().size(), 1u);
    CHECK_EQ(holds[7].token().rfind(std::string(other.path) + "/", 0), std::size_t{0});
    std::swap(holds[3], holds[12]);
    holds.erase(holds.begin() + 5, holds.begin() + 9);
    CHECK_EQ(gcx::live_holds(std::string(other.path)).size(), 16u);
    holds.clear();
    CHECK(gcx::live_holds(other.path).empty());
}

// They keep to its SMs, and keep it.
void leases_of_a_hold() {
    std::optional<gcx::hold> held(std::in_place, 0, 40);
    const gcx::resource mine = held->get_resource();
    gcx::lease steps(*held, 16, {"steps"});
    const gcx::lease others(*held, gcx::rest);
    CHECK(steps.sm_count() == 16 && others.sm_count() == 24 && steps.name() == "steps");
    CHECK((steps.get_resource() | others.get_resource()) == mine);
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(*held, 8));
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, steps.resize(24));
    held.reset();
    CHECK_EQ(gcx::live_holds().size(), 1u);
    steps.resize(16);
    CHECK_EQ((steps.get_resource() - mine).sm_count(), 0u);
    steps.close();
    CHECK_EQ(gcx::live_holds().size(), 1u);
}

void waits_for_holds() {
    const gcx::cancel cancel;
    std::optional<gcx::hold> held(std::in_place, 0, 100);
    gcx::hold large;
    std::thread first([&] {
        gcx::hold_params params = held_within(gcx::forever);
        params.name = "large";
        large = gcx::hold(0, 64, params);
    });
    until_holds_are(2);
    CHECK(gcx::live_holds()[1].waits == 1 && gcx::live_holds()[1].sm_count == 64);
    CHECK_EQ(std::string(gcx::live_holds()[1].name), "large");
    // 28 are free, for who came first.
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::hold(0, 8));
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::hold(0, 8, held_within(3ms)));
    CHECK(std::string(gcx::last_error_message()).find("timed out after 3 ms") != std::string::npos);
    std::thread given_up([&] {
        CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::hold(0, 8, held_within(gcx::forever, &cancel)));
    });
    until_holds_are(3);
    cancel.signal();
    given_up.join();
#ifdef __cpp_lib_jthread
    std::jthread stopped([](const std::stop_token& stop) {
        CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::hold(0, 8, stop, {.timeout = 1h}));
    });
    until_holds_are(3);
    stopped.request_stop();
    stopped.join();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::hold(0, 8, std::stop_token(), held_within(1ms, &cancel)));
    const gcx::hold there(1, 8, std::stop_token());
    CHECK_EQ(gcx::lease(there, 8, std::stop_token()).sm_count(), 8u);
#endif
    held.reset();
    first.join();
    CHECK_EQ(large.sm_count(), 64u);
    CHECK_EQ(gcx::hold(0, gcx::rest).sm_count(), 68u);
}

void holds_move() {
    gcx::hold hold(0, 24);
    const gcx_hold handle = hold.handle();
    gcx::hold moved = std::move(hold);
    CHECK(moved.handle() == handle && !hold); // NOLINT(bugprone-use-after-move)
    gcx::hold other(0, 32);
    other = std::move(moved);
    CHECK_EQ(gcx::live_holds().size(), 1u);
    gcx_hold const detached = other.detach();
    CHECK(!other && detached == handle && gcx::live_holds().size() == 1);
    gcx::hold adopted = gcx::hold::adopt(detached);
    CHECK_EQ(adopted.sm_count(), 24u);
    adopted.close();
    CHECK(!adopted && gcx::live_holds().empty());
}

// This program again, which joins by the token. It says when it has, and goes on when it is told.
class Joined {
  public:
    explicit Joined(const std::string& token) {
        const int version = gcx::driver_info().version;
        const std::string driver = "sim:2xh100@" + std::to_string(version / 1000) + "." +
                                   std::to_string(version % 1000 / 10);
        int in[2] = {-1, -1};
        int out[2] = {-1, -1};
        if (!CHECK(pipe(in) == 0 && pipe(out) == 0))
            return;
        pid_ = fork();
        if (pid_ == 0) {
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            for (const int end : {in[0], in[1], out[0], out[1]})
                ::close(end);
            execl("/proc/self/exe", "cpp-tests", "join", token.c_str(), driver.c_str(), nullptr);
            _exit(127);
        }
        ::close(in[0]);
        ::close(out[1]);
        char said = 0;
        CHECK(read(out[0], &said, 1) == 1 && said == 'j');
        ::close(out[0]);
        go_on_ = in[1];
    }
    ~Joined() {
        ::close(go_on_);
        int status = -1;
        CHECK(waitpid(pid_, &status, 0) == pid_ && status == 0);
    }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

  private:
    pid_t pid_ = -1;
    int go_on_ = -1;
};

void joined_by_another_process() {
    gcx::hold held(0, 24, {"engine"});
    const std::string token = held.token();
    {
        const Joined other(token);
        held.close();
        const std::vector<gcx_live_hold> live = gcx::live_holds();
        CHECK(live.size() == 1 && std::string(live[0].name) == "engine");
        gcx::hold_params more;
        more.min_sm_count = 8;
        CHECK_EQ(gcx::hold(0, gcx::rest, more).sm_count(), 132u - 24);
        held = gcx::hold::join(token);
        CHECK(held.info().joined == 1 && held.token() == token);
    }
    CHECK_EQ(gcx::lease(held, gcx::rest).sm_count(), 24u);
    held.close();
    CHECK(gcx::live_holds().empty());
    CHECK_THROWS(GCX_ERROR_NOT_FOUND, gcx::hold::join(token));
}

// Ended in any order, also with the leases that they gave, they leave nothing.
void holds_end_in_any_order(const Folder& folder) {
    gcx::set_cache_limit(0);
    const auto before = support::sim::counts();
    {
        std::optional<gcx::lease> outlives;
        std::vector<gcx::hold> holds;
        holds.reserve(8);
        for (int i = 0; i < 8; i++)
            holds.emplace_back(0, 8);
        outlives.emplace(holds[2], gcx::rest);
        const gcx::context context(holds[3].get_resource());
        const gcx::stream stream(context);
        holds.erase(holds.begin() + 1, holds.begin() + 5);
        CHECK_EQ(stream.sm_ids().size(), 8u);
        CHECK_EQ(gcx::live_holds().size(), 5u);
    }
    CHECK(gcx::live_holds().empty() && gcx::live_leases().empty());
    CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
        CHECK(entry.path().filename().string().find("hold-") == std::string::npos);
}

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
    refused([](auto& params) { params.timeout = -1ms; });
    refused([](auto& params) { params.name = std::string("de\0code", 7); });
    refused([](auto& params) { params.folder = ""; });
    refused([](auto& params) { params.folder = std::string("/tmp\0/x", 7); });
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::hold(2, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::hold(-1, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, -8));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold(0, 1L << 40));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, gcx::hold(0, 140));
    const gcx::hold there(0, 8, {std::string(63, 'n')});
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::hold::join(there.token() + '\0'));
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

// They end with the process, after the driver's own end.
void holds_left_to_the_end() {
    static const gcx::hold hold(0, 24);
    static const gcx::lease lease(hold, 8);
    // Never ended at all.
    CHECK(gcx::hold(0, 8).detach() != nullptr);
}

} // namespace

int join_hold(const char* token, const char* driver) {
    const gcx::hold held = gcx::hold::join(token);
    CHECK(held.info().joined == 1 && held.sm_count() == 24 && held.name() == "engine");
    CHECK(gcx::live_holds().size() == 1 && gcx::live_holds()[0].id == held.id());
    CHECK(write(STDOUT_FILENO, "j", 1) == 1);
    char none = 0;
    CHECK_EQ(read(STDIN_FILENO, &none, 1), 0);
    gcx::open_driver(driver);
    const gcx::lease lease(held, gcx::rest);
    CHECK_EQ(gcx::stream(lease).sm_ids().size(), 24u);
    return check::failed == 0 ? 0 : 1;
}

void test_holds() {
    const Folder folder("GCX_HOLD_FOLDER");
    on_each_driver([&] {
        no_other_hold_has_them();
        holds_of_a_named_folder();
        leases_of_a_hold();
        waits_for_holds();
        holds_move();
        joined_by_another_process();
        holds_end_in_any_order(folder);
        empty_holds();
        wrong_holds();
        hold_join_of_unset_variable_is_refused();
        unset_variable_as_folder_or_name_is_refused();
        names_and_folders_are_given_as_strings_are();
        holds_left_to_the_end();
    });
    CHECK(gcx::live_holds().empty());
}
