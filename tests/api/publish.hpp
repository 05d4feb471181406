// Shared by the tests of published leases and reservations: a private folder, child processes, and
// the checks of lists.
#pragma once

#include "support.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace publish {

namespace fs = std::filesystem;

// A private folder, which replaces that of the user.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    fs::path path() const { return path_; }
    fs::path inner() const { return path_ / "gcx"; } // for reservations
    fs::path published() const;                      // for the published leases of this user
    std::vector<fs::path> files() const;             // in both

  private:
    fs::path path_;
};

// Both return the whole list.
std::vector<gcx_published_process> processes();
std::vector<gcx_published_lease> leases();
// Returns the number of SMs of a set of atoms. Row is a published lease or a live reservation.
template <class Row>
uint32_t sms_of(const Row& row, const uint64_t (&atoms)[8]) {
    uint32_t sms = 0;
    for (const uint32_t atom : support::sm_ids(atoms)) {
        CHECK(atom < row.atom_count);
        sms += atom + 1 == row.atom_count ? row.last_atom_sm_count : row.atom_sm_count;
    }
    return sms;
}
// Checks that the listed leases are consistent.
void check_listed(const std::vector<gcx_published_lease>& found);

void open_machine(const std::string& spec = "h100@13.0");

// A child process that runs from point to point, when its parent calls next().
class Other {
  public:
    explicit Other(const std::function<void(Other&)>& body);
    ~Other();
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

    // In the child: reports its arrival and waits for next().
    void point() const;
    void say_arrived() const;
    // In the parent: waits until the child is at a point.
    void arrived() const;
    void next() const;
    void proceed() const; // to its next point
    void ended();
    void kill(int signal);
    pid_t pid() const { return pid_; }

  private:
    int ends_[2] = {-1, -1};
    pid_t pid_ = 0;
};

// A callback for gcx_log_set_callback that stores the warnings.
extern std::vector<std::string> warnings;
void note_warning(gcx_log_level level, const char* message, void* user_data);
// Returns whether a stored warning contains the text.
bool warned(const std::string& text);

// Returns the content of a file.
std::string bytes_of(const fs::path& path);

// A file with a lock, as the files of live processes have. It gets its name after the lock, because
// files without an owner are removed.
class OwnedFile {
  public:
    explicit OwnedFile(const fs::path& path, const std::string& bytes = "", off_t size = -1);
    ~OwnedFile();
    OwnedFile(const OwnedFile&) = delete;
    OwnedFile& operator=(const OwnedFile&) = delete;

  private:
    fs::path path_;
    int file_;
};

} // namespace publish
