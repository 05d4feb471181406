// The files of published leases: invalid files, and folders in which nothing can be published.
#include "leases.hpp"
#include "publish.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using namespace publish;
using namespace support;

namespace {

// Starts a process that publishes one lease until next() is called.
Other publisher() {
    return Other([](Other& self) {
        open_machine();
        acquire(32, "right");
        CHECK_OK(gcx_publish_start("right"));
        self.point();
    });
}

// Lists the leases, of which one is valid, and returns whether a warning contains the text.
bool is_warned_of(const std::string& what) {
    warnings.clear();
    CHECK_EQ(leases().size(), 1U);
    const bool found = warned(what);
    if (!found) {
        for (const std::string& warning : warnings)
            std::fprintf(stderr, "    warned: %s\n", warning.c_str());
    }
    return found;
}

void invalid_file_is_skipped_with_warning() {
    const Folder folder;
    Other other = publisher();
    other.arrived();
    CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
    const fs::path real = folder.files().at(0);
    const std::string right = bytes_of(real);
    const fs::path bad = folder.published() / "leases-00000000deadbeef";
    CHECK(right.size() > 100000);

    CHECK_EQ(symlink(real.c_str(), bad.c_str()), 0);
    CHECK(is_warned_of("link"));
    unlink(bad.c_str());
    CHECK_EQ(mkfifo(bad.c_str(), 0600), 0);
    CHECK(is_warned_of("no plain file"));
    unlink(bad.c_str());
    CHECK_EQ(mkdir(bad.c_str(), 0700), 0);
    CHECK(is_warned_of("no plain file"));
    rmdir(bad.c_str());
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", bad.c_str());
    CHECK_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    CHECK(is_warned_of("deadbeef"));
    close(listening);
    unlink(bad.c_str());

    {
        const OwnedFile owned(bad, right, off_t{1} << 40);
        CHECK(is_warned_of("bytes"));
    }
    const std::pair<std::string, const char*> invalid[] = {
        {right.substr(0, 5000), "too short"},
        {"", "too short"},
        {"hello" + right.substr(5), "no file of gcx"},
        {right.substr(0, 8) + "\x7f" + right.substr(9), "another version"}};
    for (const auto& [bytes, why] : invalid) {
        const OwnedFile owned(bad, bytes);
        CHECK(is_warned_of(why));
    }
    // The file is not complete yet, which is no reason for a warning.
    {
        const OwnedFile owned(bad, std::string(right.size(), '\0'));
        warnings.clear();
        CHECK_EQ(leases().size(), 1U);
        CHECK(warnings.empty());
    }
    // The publisher was stopped in the middle of a change. Readers wait only briefly.
    {
        std::string odd = right;
        odd[12] = static_cast<char>(odd[12] | 1);
        const OwnedFile owned(bad, odd);
        const auto begin = std::chrono::steady_clock::now();
        CHECK(is_warned_of("stopped"));
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    }
    if (geteuid() == 0) {
        const OwnedFile owned(bad, right);
        CHECK_EQ(chown(bad.c_str(), 12345, 12345), 0);
        CHECK(is_warned_of("belongs to user 12345"));
    }
    // The file has no owner: its process has ended.
    std::ofstream(bad) << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK(fs::exists(bad)); // the next process that publishes removes it
    fs::remove(bad);
    // Files with other names are left alone.
    std::ofstream(folder.published() / "leases-") << right;
    std::ofstream(folder.published() / "leases-00000000DEADBEEF") << right;
    std::ofstream(folder.published() / "notes") << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK_EQ(folder.files().size(), 4U);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    other.next();
    other.ended();
}

// A publisher removes what killed ones left, but not while another process changes the folder.
void leftover_files_are_removed_by_next_publisher() {
    const Folder folder;
    CHECK_EQ(mkdir(folder.published().c_str(), 0700), 0);
    const fs::path unfinished = folder.published() / "leases-00000000deadbeef.new";
    const fs::path dead = folder.published() / "leases-00000000deadbeef";
    const fs::path other = folder.published() / "leases-notes.new";
    const auto publish = [] {
        open_machine();
        CHECK_OK(gcx_publish_start("x"));
        CHECK_EQ(processes().size(), 1U);
    };
    for (const fs::path& path : {unfinished, dead, other})
        std::ofstream(path) << "left";
    const int locked = open(folder.published().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(locked, LOCK_EX), 0);
    in_child("the folder is locked", publish);
    CHECK(fs::exists(unfinished));
    close(locked);
    std::ofstream(dead) << "left";
    in_child("the folder is free", publish);
    CHECK(!fs::exists(unfinished) && !fs::exists(dead) && fs::exists(other));
}

void many_publishers_are_all_listed() {
    const Folder folder;
    Other other = publisher();
    other.arrived();
    const std::string right = bytes_of(folder.files().at(0));
    // Almost as many files as descriptors: gcx needs a few itself.
    rlimit most{};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
    most.rlim_cur = std::min<rlim_t>(most.rlim_max, 1100);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
    std::vector<std::unique_ptr<OwnedFile>> owned;
    const std::size_t count = most.rlim_cur - 100;
    for (std::size_t i = 0; i < count; i++) {
        char name[32];
        std::snprintf(name, sizeof name, "leases-%016zx", i);
        owned.push_back(
            std::make_unique<OwnedFile>(folder.published() / name, right.substr(0, 12000)));
    }
    CHECK_EQ(processes().size(), count + 1);
    CHECK_EQ(leases().size(), count + 1);
    uint32_t needed = 0;
    CHECK_EQ(gcx_published_lease_list(nullptr, 0, &needed), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(needed, count + 1);
    other.next();
    other.ended();
}

void refused_start(gcx_result expected) {
    in_child("a folder that can't be", [&] {
        open_machine();
        const gcx_lease lease = acquire(32, "goes on");
        CHECK_REFUSED(gcx_publish_start("x"), expected);
        CHECK_OK(gcx_lease_release(lease));
    });
}

void unusable_folder_is_refused() {
    const Folder folder;
    const std::string inner = folder.published().string();
    CHECK_EQ(mkdir(inner.c_str(), 0755), 0);
    CHECK_EQ(chmod(inner.c_str(), 0755), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    uint32_t count = 0;
    CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), GCX_ERROR_UNSAFE_FOLDER);
    CHECK_EQ(rmdir(inner.c_str()), 0);

    CHECK_EQ(symlink("/tmp", inner.c_str()), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    CHECK_REFUSED(gcx_published_process_list(nullptr, 0, &count), GCX_ERROR_UNSAFE_FOLDER);
    unlink(inner.c_str());
    std::ofstream(inner) << "a file";
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    unlink(inner.c_str());

    struct Wrong {
        const char* path;
        gcx_result result;
    };
    const Wrong wrong_ones[] = {{"not/absolute", GCX_ERROR_INVALID_VALUE},
                                {"/nonexistent/folder", GCX_ERROR_OPERATING_SYSTEM},
                                {"/dev/null", GCX_ERROR_OPERATING_SYSTEM}};
    for (const Wrong& wrong : wrong_ones) {
        setenv("GCX_RESERVATION_DIR", wrong.path, 1);
        refused_start(wrong.result);
        CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), wrong.result);
    }
    setenv("GCX_RESERVATION_DIR", folder.inner().c_str(), 1);
    // A folder that others can enter is refused, even if the private one in it is not.
    CHECK_EQ(chmod(folder.inner().c_str(), 0755), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    CHECK_EQ(chmod(folder.inner().c_str(), 0700), 0);
    if (geteuid() == 0) {
        CHECK_EQ(mkdir(inner.c_str(), 0700), 0);
        CHECK_EQ(chown(inner.c_str(), 12345, 12345), 0);
        refused_start(GCX_ERROR_UNSAFE_FOLDER);
        CHECK_EQ(rmdir(inner.c_str()), 0);
    } else {
        CHECK_EQ(chmod(folder.inner().c_str(), 0500), 0);
        refused_start(GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(chmod(folder.inner().c_str(), 0700), 0);
    }
    // Reaching this limit would end the process by a signal.
    in_child("a small limit", [&] {
        open_machine();
        const rlimit least{4096, 4096};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
        CHECK_EQ(gcx_publish_start("x"), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("too large"));
        CHECK_EQ(folder.files().size(), 0U);
    });
}

// All atoms of a large device are listed, with the right device.
void many_atoms_are_listed_completely() {
    const Folder folder;
    in_child("many atoms", [] {
        open_machine("2xh100@13.0");
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        params.family = GCX_SM_FAMILY_FINE;
        gcx_lease lease = nullptr;
        CHECK_OK(gcx_lease_acquire(1, GCX_REST, &params, &lease));
        CHECK_OK(gcx_publish_start("fine"));
        const auto found = leases();
        if (CHECK_EQ(found.size(), 1U)) {
            check_listed(found);
            CHECK_EQ(found[0].device, 1);
            CHECK_EQ(found[0].atom_count, 66U);
            CHECK_EQ(found[0].exclusive_atoms[0], UINT64_MAX);
            CHECK_EQ(found[0].exclusive_atoms[1], 3U);
            gcx_device_info info = GCX_DEVICE_INFO_INIT;
            CHECK_OK(gcx_device_get_info(1, &info));
            CHECK_EQ(std::memcmp(found[0].device_uuid, info.uuid, sizeof info.uuid), 0);
        }
        CHECK_OK(gcx_lease_release(lease));
    });
}

void environment_variable_starts_publishing() {
    const Folder folder;
    const auto name_with = [&](const char* value) {
        setenv("GCX_PUBLISH", value, 1);
        std::string name;
        in_child(value, [&] {
            open_machine();
            const auto found = processes();
            const std::string expected = std::string(value) == "1"
                                             ? program_invocation_short_name
                                             : std::string(value).substr(0, 63);
            const bool none = std::string(value).empty() || std::string(value) == "0";
            CHECK_EQ(found.size(), none ? 0U : 1U);
            if (found.size() == 1)
                CHECK_EQ(std::string(found[0].name), expected);
        });
    };
    for (const char* value : {"1", "0", "", "engine of mine"})
        name_with(value);
    name_with(std::string(100, 'y').c_str());
    setenv("GCX_PUBLISH", "1", 1);
    setenv("GCX_RESERVATION_DIR", "/nonexistent", 1);
    in_child("publishing that fails", [] {
        warnings.clear();
        CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
        open_machine();
        CHECK_EQ(warnings.size(), 1U);
        CHECK(warnings.at(0).starts_with("GCX_PUBLISH is set, and leases are not published"));
        CHECK_OK(gcx_lease_release(acquire(32, "works")));
    });
    unsetenv("GCX_PUBLISH");
}

} // namespace

int main() {
    invalid_file_is_skipped_with_warning();
    leftover_files_are_removed_by_next_publisher();
    many_publishers_are_all_listed();
    unusable_folder_is_refused();
    many_atoms_are_listed_completely();
    environment_variable_starts_publishing();
    return summary("publish-files");
}
