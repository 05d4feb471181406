#include "runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

namespace conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Group = std::vector<const Check*>;

// For the preparation, and for each check.
constexpr std::chrono::seconds kLimit(20);
// Ends the preparation, and each answer.
constexpr char kEnd = '\0';
// The status of a process in which a check stopped early: what it left would disturb others.
constexpr int kStopped = 4;

struct Child {
    Group checks;
    pid_t pid = -1;
    int answers = -1; // kEnd after the preparation, then the answers
    int go = -1;      // written once; closed when the process may end
    bool in_time = true;
    bool ended = false;
};

[[noreturn]] void become_child(const Group& checks, int answers, int go) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(answers, F_SETFD, 0);
    fcntl(go, F_SETFD, 0);
    std::vector<std::string> words = {"driver-conformance", "--child", std::to_string(answers),
                                      std::to_string(go)};
    for (const Check* check : checks)
        words.push_back(check->name);
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    _exit(127);
}

Child start(const Group& checks) {
    int answers[2];
    int go[2];
    if (pipe2(answers, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0)
        std::abort();
    const pid_t pid = fork();
    if (pid == 0)
        become_child(checks, answers[1], go[0]);
    close(answers[1]);
    close(go[0]);
    return {checks, pid, answers[0], go[1]};
}

// Reads until kEnd. Returns false if the process ended before, or did not go on in time.
bool read_answer(Child& child, std::string& text) {
    const auto end = Clock::now() + kLimit;
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd waiting = {child.answers, POLLIN, 0};
        if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
            child.in_time = false;
            return false;
        }
        char byte = kEnd;
        if (read(child.answers, &byte, 1) != 1)
            return false;
        if (byte == kEnd)
            return true;
        text += byte;
    }
}

// Waits for the end, and returns how it was.
std::string end(Child& child) {
    if (!child.in_time)
        kill(child.pid, SIGKILL);
    close(child.go);
    int status = 0;
    waitpid(child.pid, &status, 0);
    close(child.answers);
    child.ended = true;
    if (!child.in_time)
        return "did not end";
    if (WIFEXITED(status) && WEXITSTATUS(status) == kStopped)
        return "";
    if (WIFSIGNALED(status))
        return "ended by signal " + std::to_string(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

// Returns the checks that the process did not come to.
Group finish(Child& child, bool ready,
             const std::function<void(const Check&, const std::string&)>& report) {
    if (!ready) {
        const std::string how = end(child);
        for (const Check* check : child.checks)
            report(*check, how);
        return {};
    }
    std::size_t done = 0;
    if (write(child.go, &kEnd, 1) == 1)
        for (std::string text; done < child.checks.size() && read_answer(child, text); text.clear())
            report(*child.checks[done++], text);
    if (done == child.checks.size())
        return {}; // the process waits until the others of its time have run
    const std::string how = end(child);
    if (!how.empty() || done == 0)
        report(*child.checks[done++], how);
    return {child.checks.begin() + static_cast<std::ptrdiff_t>(done), child.checks.end()};
}

std::vector<Group> group(const std::vector<const Check*>& checks) {
    std::vector<Group> groups;
    std::map<std::string, std::size_t> families;
    for (const Check* check : checks) {
        const auto [found, is_new] = families.emplace(check->family, groups.size());
        if (check->family.empty() || is_new)
            groups.push_back({check});
        else
            groups[found->second].push_back(check);
    }
    return groups;
}

void run_groups(std::span<const Group> groups,
                const std::function<void(const Check&, const std::string&)>& report) {
    std::vector<Child> children;
    for (const Group& checks : groups)
        children.push_back(start(checks));
    std::vector<bool> ready;
    for (Child& child : children) {
        std::string text;
        ready.push_back(read_answer(child, text));
    }
    for (std::size_t i = 0; i < children.size(); i++) {
        Group left = finish(children[i], ready[i], report);
        while (!left.empty()) {
            Child child = start(left);
            std::string text;
            const bool is_ready = read_answer(child, text);
            left = finish(child, is_ready, report);
            if (!child.ended)
                end(child);
        }
    }
    for (Child& child : children)
        if (!child.ended)
            end(child);
}

const Check* find(const Checks& checks, const std::string& name) {
    for (const Check* check : {&name_of_gpu, &version_of_driver})
        if (check->name == name)
            return check;
    for (const Check& check : checks.all())
        if (check.name == name)
            return &check;
    _exit(2);
}

void write_answer(int answers, const std::string& text) {
    const std::size_t size = text.size() + 1;
    if (write(answers, text.c_str(), size) != static_cast<ssize_t>(size))
        _exit(3);
}

// What a check left running would disturb the next one.
void let_work_end() {
    if (gpu.primary == nullptr)
        return;
    const Attempt ended(gpu.primary, [] { return CU(cuCtxSynchronize)(); });
    ended.ends_within(std::chrono::seconds(1));
}

// Returns whether the check came to its end.
bool answer(int answers, const Check& check) {
    std::string text;
    bool complete = true;
    try {
        if (check.current != nullptr)
            make_current(gpu.*check.current);
        text = check.body();
    } catch (const Stop& stop) {
        text = stop.what();
        complete = false;
    }
    let_work_end();
    write_answer(answers, text);
    return complete;
}

} // namespace

void run_checks(const std::vector<const Check*>& checks, std::size_t jobs,
                const std::function<void(const Check&, const std::string&)>& report) {
    std::signal(SIGPIPE, SIG_IGN);
    const std::vector<Group> groups = group(checks);
    for (std::size_t first = 0; first < groups.size(); first += jobs)
        run_groups(std::span(groups).subspan(first, std::min(jobs, groups.size() - first)), report);
}

bool is_child(int argc, char** argv) {
    return argc > 4 && std::strcmp(argv[1], "--child") == 0;
}

void run_child(const Checks& checks, int argc, char** argv) {
    const int answers = std::atoi(argv[2]);
    const int go = std::atoi(argv[3]);
    fcntl(answers, F_SETFD, FD_CLOEXEC);
    fcntl(go, F_SETFD, FD_CLOEXEC);
    std::string failure;
    try {
        prepare(find(checks, argv[4])->needs);
    } catch (const Stop& stop) {
        failure = stop.what();
    }
    write_answer(answers, "");
    char byte = 0;
    if (read(go, &byte, 1) != 1)
        _exit(3);
    for (int i = 4; i < argc; i++) {
        if (!failure.empty())
            write_answer(answers, failure);
        else if (!answer(answers, *find(checks, argv[i])) && i + 1 < argc)
            _exit(kStopped);
    }
    // Processes end together. Not by exit(): threads may be blocked in the driver.
    while (read(go, &byte, 1) == 1) {
    }
    _exit(0);
}

const Check name_of_gpu = {"GPU", Needs::kNothing, nullptr,
                           [] {
                               char name[256] = {};
                               start_driver();
                               MUST(cuDeviceGetName, name, sizeof name, gpu.device);
                               return std::string(name);
                           },
                           ""};
const Check version_of_driver = {"driver", Needs::kNothing, nullptr,
                                 [] {
                                     int version = 0;
                                     MUST(cuDriverGetVersion, &version);
                                     return "CUDA " + std::to_string(version / 1000) + "." +
                                            std::to_string(version % 1000 / 10);
                                 },
                                 ""};

} // namespace conformance
