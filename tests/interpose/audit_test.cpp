// The audit library, in programs that look for libcuda in every way. Runs itself under the audit
// library: audit_test AUDIT_LIBRARY SHIM DRIVER LINKED_PROGRAM.
#include "interpose/exec_plan.hpp"

#include "check.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>
#include <vector>

namespace {

constexpr int kShims = 501001; // what cuInit(1) of the shim returns
constexpr int kDrivers = 1001; // and that of the driver

std::string driver; // DRIVER's path

void* open_by(const std::string& name, int flags = RTLD_NOW | RTLD_LOCAL) {
    return dlopen(name.c_str(), flags);
}

int init_of(void* library) {
    if (!CHECK(library != nullptr)) {
        std::fprintf(stderr, "    %s\n", dlerror());
        return -1;
    }
    const auto function = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    return CHECK(function != nullptr) ? function(1) : -1;
}

void check_unknown_function(void* library) {
    const auto newest = reinterpret_cast<int (*)()>(dlsym(library, "cuFunctionOfTheYear2031"));
    if (CHECK(newest != nullptr))
        CHECK_EQ(newest(), 2031);
    CHECK(dlsym(library, "cuNobodyHasThis") == nullptr);
}

// All names of libcuda lead to the shim.
void by_all_names() {
    CHECK(open_by("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr);
    void* const library = open_by("libcuda.so.1");
    CHECK_EQ(init_of(library), kShims);
    check_unknown_function(library);
    const std::filesystem::path folder(std::getenv("FOLDER"));
    for (const std::string& name :
         {std::string("libcuda.so.1"), std::string("libcuda.so"), std::string("libcuda.so.1.1"),
          driver, std::filesystem::path(driver).parent_path().string() + "/./fake_driver.so",
          (folder / "libcuda.so").string(), (folder / "libcuda.so.1").string(),
          (folder / "other.so").string(), std::string("/nowhere/libcuda.so.1")}) {
        CHECK_EQ(init_of(open_by(name)), kShims);
        // One library under all names.
        CHECK(open_by(name) == library);
        CHECK(open_by(name, RTLD_NOW | RTLD_NOLOAD) == library);
        if (!check::sanitized) // sanitizers forbid it
            CHECK_EQ(init_of(open_by(name, RTLD_NOW | RTLD_DEEPBIND)), kShims);
    }
    // Names of no library.
    for (const char* name : {"libcudaother.so", "libcuda.so.x", "libcuda.so1", "xlibcuda.so.1"})
        CHECK(open_by(name) == nullptr);
}

void by_path_first() {
    CHECK_EQ(init_of(open_by(driver)), kShims);
    CHECK_EQ(init_of(open_by("libcuda.so.1")), kShims);
}

void in_another_namespace() {
    CHECK_EQ(init_of(open_by("libcuda.so.1")), kShims);
    CHECK_EQ(init_of(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL)), kShims);
}

// glibc does not ask audit libraries about a path given to dlmopen, so a message is printed.
void outside_by(const std::string& path) {
    CHECK_EQ(init_of(dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW | RTLD_LOCAL)), kDrivers);
}

void in_threads() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([i] {
            for (int round = 0; round < 20; round++)
                CHECK_EQ(init_of(open_by(i % 2 == 0 ? "libcuda.so.1" : driver)), kShims);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
}

void after_closing_everything() {
    CHECK_EQ(init_of(open_by("libcuda.so.1")), kShims);
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        close(descriptor);
    CHECK_EQ(init_of(open_by(driver)), kShims);
    // Another file gets each of the descriptors.
    for (int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC); descriptor < 1000;)
        descriptor = dup(descriptor);
    CHECK_EQ(init_of(open_by(std::string(std::getenv("FOLDER")) + "/other.so")), kShims);
}

void in_a_fork() {
    const pid_t child = fork();
    if (child == 0)
        _exit(init_of(open_by("libcuda.so.1")) == kShims ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

void unloaded_and_loaded_again() {
    for (int round = 0; round < 3; round++) {
        void* const library = open_by("libcuda.so.1");
        CHECK_EQ(init_of(library), kShims);
        CHECK_EQ(dlclose(library), 0);
    }
}

// A program without CUDA gets no additional descriptor.
void without_cuda() {
    CHECK(open_by("libm.so.6") != nullptr);
    for (int descriptor = 3; descriptor < 1024; descriptor++) {
        if (!CHECK_EQ(fcntl(descriptor, F_GETFD), -1))
            std::fprintf(stderr, "    descriptor %d\n", descriptor);
    }
}

void refused() {
    CHECK(open_by("libcuda.so.1") == nullptr);
    CHECK(std::string(dlerror()).find("/nonexistent/gcx-exec/") != std::string::npos);
}

void let_through() {
    CHECK_EQ(init_of(open_by((std::string(std::getenv("FOLDER")) + "/libcuda.so.1"))), kDrivers);
}

const std::map<std::string, std::function<void()>> kInside = {
    {"by all names", by_all_names},
    {"by path first", by_path_first},
    {"in another namespace", in_another_namespace},
    {"outside by a link", [] { outside_by(std::string(std::getenv("FOLDER")) + "/libcuda.so.1"); }},
    {"outside by a copy",
     [] { outside_by(std::string(std::getenv("FOLDER")) + "/copy/libcuda.so.1"); }},
    {"outside by the driver's path", [] { outside_by(driver); }},
    {"in threads", in_threads},
    {"after closing everything", after_closing_everything},
    {"in a fork", in_a_fork},
    {"unloaded and loaded again", unloaded_and_loaded_again},
    {"without CUDA", without_cuda},
    {"refused", refused},
    {"let through", let_through},
};

struct Result {
    int status = -1;
    std::string output;
};

// Runs a program with these variables and returns what it prints.
Result run(const std::vector<std::string>& words, const std::map<std::string, std::string>& more) {
    std::array<int, 2> ends{};
    CHECK_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        // Descriptors of the test are not inherited.
        for (int descriptor = 3; descriptor < 1024; descriptor++)
            close(descriptor);
        for (const auto& [name, value] : more)
            setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> arguments;
        for (const std::string& word : words)
            arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(ends[1]);
    Result result;
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; (got = read(ends[0], bytes.data(), bytes.size())) > 0;)
        result.output.append(bytes.data(), static_cast<std::size_t>(got));
    close(ends[0]);
    CHECK(waitpid(child, &result.status, 0) == child);
    return result;
}

class Outside {
  public:
    explicit Outside(char** arguments)
        : self_(absolute("/proc/self/exe")), audit_(absolute(arguments[1])),
          shim_(absolute(arguments[2])), linked_(absolute(arguments[4])), folder_(make_folder()) {
        std::filesystem::create_symlink(driver, folder_ + "/libcuda.so.1");
        std::filesystem::create_symlink("libcuda.so.1", folder_ + "/libcuda.so");
        std::filesystem::create_symlink(driver, folder_ + "/other.so");
        std::filesystem::create_directory(folder_ + "/copy");
        std::filesystem::copy_file(driver, folder_ + "/copy/libcuda.so.1");
    }
    ~Outside() { std::filesystem::remove_all(folder_); }

    void check_all() {
        for (const auto& [name, work] : kInside) {
            if (name.starts_with("outside by"))
                CHECK(inside(name, plan()).find("opened libcuda outside the partition") !=
                      std::string::npos);
            else if (name != "refused" && name != "let through")
                CHECK_EQ(inside(name, plan()), "");
        }
        check_linked();
        check_notices();
    }

    static std::string absolute(const char* path) { return std::filesystem::canonical(path); }

  private:
    static std::string make_folder() {
        std::string pattern = "/tmp/gcx-audit-XXXXXX";
        CHECK(mkdtemp(pattern.data()) != nullptr);
        return pattern;
    }

    std::string plan() const {
        return "gcx-exec-1 driver=" + driver + " shim=" + shim_ + " report=partition";
    }

    // Runs a case that must pass and returns what it printed.
    std::string inside(const std::string& name, const std::string& plan_text) {
        std::map<std::string, std::string> more = {{"LD_AUDIT", audit_}, {"FOLDER", folder_}};
        if (!plan_text.empty())
            more[gcx::interpose::kPlanVariable] = plan_text;
        const Result result = run({self_, "inside", name, driver}, more);
        if (!CHECK_EQ(result.status, 0))
            std::fprintf(stderr, "    %s: %s\n", name.c_str(), result.output.c_str());
        return result.output;
    }

    void check_linked() {
        std::map<std::string, std::string> more = {{"LD_AUDIT", audit_},
                                                   {gcx::interpose::kPlanVariable, plan()}};
        const std::string expected = "501001 2001 501001 501001\n";
        CHECK_EQ(run({linked_}, more).output, expected);
        CHECK_EQ(run({linked_, driver}, more).output, expected);
        more["LD_BIND_NOW"] = "1";
        CHECK_EQ(run({linked_}, more).output, expected);
        // The loader searches a folder with the driver first.
        more["LD_LIBRARY_PATH"] = folder_;
        CHECK_EQ(run({linked_, folder_ + "/libcuda.so"}, more).output, expected);
        more["LD_PRELOAD"] = folder_ + "/libcuda.so.1";
        CHECK_EQ(run({linked_}, more).output, expected);
        // Two audit libraries, as from two gcx exec.
        more["LD_AUDIT"] = audit_ + ":" + audit_;
        CHECK_EQ(run({linked_}, more).output, expected);
        CHECK_EQ(run({linked_}, {{"LD_LIBRARY_PATH", folder_}}).output, "1001 2001 1001 1001\n");
    }

    void check_notices() {
        CHECK(inside("let through", "").find("was removed from the environment") !=
              std::string::npos);
        for (const std::string& damaged :
             {std::string("nonsense"), std::string("gcx-exec-2 driver=/x shim=/y"),
              std::string("gcx-exec-1"), std::string("gcx-exec-1 driver=x shim=/y"),
              "gcx-exec-1 driver=/" + std::string(9000, 'x') + " shim=/y",
              std::string("gcx-exec-1 driver=/x shim=/%zz")})
            CHECK(inside("refused", damaged).find("is damaged") != std::string::npos);
        const std::string spaced = folder_ + "/a b%c.so";
        std::filesystem::copy_file(shim_, spaced);
        CHECK_EQ(inside("by path first",
                        "gcx-exec-1 driver=" + driver + " shim=" + folder_ + "/a%20b%25c.so"),
                 "");
    }

    std::string self_;
    std::string audit_;
    std::string shim_;
    std::string linked_;
    std::string folder_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "inside") == 0) {
        driver = argv[3];
        kInside.at(argv[2])();
        return check::failed.load() == 0 ? 0 : 1;
    }
    if (argc != 5)
        return 2;
    if (CHECK_SANITIZED == 2) {
        std::printf(
            "skipped: an audit library leaves too little static TLS for the thread sanitizer\n");
        return 77;
    }
    driver = Outside::absolute(argv[3]);
    Outside(argv).check_all();
    return check::summary("the audit library");
}
