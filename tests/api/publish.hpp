// What the tests of published leases share: a folder of their own, processes that publish, and what
// must hold of whatever is listed.
#pragma once

#include "support.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace publish {

namespace fs = std::filesystem;

// A folder of the test's own, in the place of the user's.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    fs::path path() const { return path_; }
    fs::path inner() const { return path_ / "gcx"; } // of reservations
    fs::path published() const;                      // of the leases that this user publishes
    std::vector<fs::path> files() const;             // in both

  private:
    fs::path path_;
};

// All that is listed.
std::vector<gcx_published_process> processes();
std::vector<gcx_published_lease> leases();
// Counts one check: that it can be believed.
void check_listed(const std::vector<gcx_published_lease>& found);

// A lease of device 0; with cancel one that waits, until it is given up.
gcx_lease acquire(uint32_t sm_count, const char* name, uint32_t flags = 0, uint32_t own = 0,
                  gcx_cancel cancel = nullptr);
void open_machine(const std::string& spec = "h100@13.0");

// A child process that goes on from point to point, as its parent says.
class Other {
  public:
    explicit Other(const std::function<void(Other&)>& body);
    ~Other();
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

    // In the child: says that it is there, and waits for next().
    void point() const;
    void say_arrived() const;
    // In the parent: waits until the child is at a point.
    void arrived() const;
    void next() const;
    void ended();
    void kill(int signal);
    pid_t pid() const { return pid_; }

  private:
    int ends_[2] = {-1, -1};
    pid_t pid_ = 0;
};

// Keeps the log's warnings. To be given to gcx_log_set_callback.
extern std::vector<std::string> warnings;
void note_warning(gcx_log_level level, const char* message, void* user_data);

} // namespace publish
