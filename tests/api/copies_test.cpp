// Two copies of the library in one process, of which only one can acquire leases. This program is
// linked with one copy and opens others by dlopen.
//
// Usage: copies LIBGCX PLUGIN, where PLUGIN is a library that contains a copy of gcx.
#include "support.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace support;

namespace {

namespace fs = std::filesystem;

std::string libgcx;
std::string plugin;

class Copy {
  public:
    explicit Copy(const std::string& path) : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!CHECK(library_ != nullptr))
            std::fprintf(stderr, "    %s\n", dlerror());
    }

    template <class Function>
    Function find(const char* name) const {
        return reinterpret_cast<Function>(dlsym(library_, name));
    }
    gcx_result acquire(gcx_lease* lease) const {
        return find<decltype(&gcx_lease_acquire)>("gcx_lease_acquire")(0, 8, nullptr, lease);
    }
    gcx_result release(gcx_lease lease) const {
        return find<decltype(&gcx_lease_release)>("gcx_lease_release")(lease);
    }
    std::string message() const {
        return find<decltype(&gcx_last_error_message)>("gcx_last_error_message")();
    }
    void close() { CHECK_EQ(dlclose(library_), 0); }

  private:
    void* library_;
};

// A copy of the library file, which the loader considers another library.
class CopiedFile {
  public:
    CopiedFile() {
        char path[] = "/tmp/gcx-copy-XXXXXX";
        CHECK(mkdtemp(path) != nullptr);
        folder_ = path;
        fs::copy_file(libgcx, this->path());
    }
    ~CopiedFile() {
        std::error_code error;
        fs::remove_all(folder_, error);
    }
    CopiedFile(const CopiedFile&) = delete;
    CopiedFile& operator=(const CopiedFile&) = delete;
    std::string path() const { return folder_ / "libgcx.so.9"; }

  private:
    fs::path folder_;
};

bool refused_as_copy(const Copy& copy, const std::string& first, const std::string& second) {
    gcx_lease lease = nullptr;
    const gcx_result result = copy.acquire(&lease);
    const std::string message = copy.message();
    return CHECK_EQ(result, GCX_ERROR_DUPLICATE_LIBRARY) && CHECK(lease == nullptr) &&
           CHECK(message.find("two copies of gcx") != message.npos) &&
           CHECK(message.find(fs::canonical(first).string() + " acquires") != message.npos) &&
           CHECK(message.find("copy is " + fs::canonical(second).string()) != message.npos);
}

void second_copy_acquire_is_refused(const std::string& second) {
    gcx_lease mine = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &mine));
    const Copy other(second);
    refused_as_copy(other, libgcx, second);
    CHECK_OK(gcx_lease_release(mine)); // the first stays the first
    refused_as_copy(other, libgcx, second);
    // Everything else works in the second copy.
    gcx_resource whole{};
    CHECK_OK(other.find<decltype(&gcx_device_get_resource)>("gcx_device_get_resource")(
        0, GCX_RESOURCE_SM, &whole));
    CHECK_OK(gcx_lease_acquire(0, GCX_REST, nullptr, &mine));
    CHECK_OK(gcx_lease_release(mine));
}

void first_lease_decides() {
    const CopiedFile file;
    const Copy other(file.path());
    int32_t count = 0;
    CHECK_OK(gcx_device_get_count(&count)); // opens the driver, which decides nothing
    gcx_lease lease = nullptr;
    CHECK_OK(other.acquire(&lease));
    gcx_lease mine = nullptr;
    CHECK_EQ(gcx_lease_acquire(0, 8, nullptr, &mine), GCX_ERROR_DUPLICATE_LIBRARY);
    CHECK(message_has(fs::canonical(file.path()).string() + " acquires"));
    CHECK_OK(other.release(lease));
}

void copy_closed_without_leases_leaves_them_to_another() {
    const CopiedFile file;
    Copy other(file.path());
    gcx_lease lease = nullptr;
    CHECK_OK(other.acquire(&lease));
    CHECK_OK(other.release(lease));
    other.close();
    CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &lease));
    CHECK_OK(gcx_lease_release(lease));
}

void copy_closed_with_leases_keeps_them() {
    const CopiedFile file;
    Copy other(file.path());
    gcx_lease lease = nullptr;
    CHECK_OK(other.acquire(&lease));
    other.close();
    CHECK_EQ(gcx_lease_acquire(0, 8, nullptr, &lease), GCX_ERROR_DUPLICATE_LIBRARY);
    CHECK(message_has("two copies of gcx"));
}

void copies_acquire_at_once_one_has_leases() {
    const CopiedFile file;
    const Copy other(file.path());
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&info));
    CHECK_OK(other.find<decltype(&gcx_driver_open)>("gcx_driver_open")(nullptr));
    std::atomic<int> ready{0};
    gcx_result results[2];
    gcx_lease leases[2] = {};
    const auto together = [&] {
        ready++;
        while (ready != 2) {
        }
    };
    std::thread thread([&] {
        together();
        results[1] = other.acquire(&leases[1]);
    });
    together();
    results[0] = gcx_lease_acquire(0, 8, nullptr, &leases[0]);
    thread.join();
    CHECK(results[0] != GCX_SUCCESS || results[1] != GCX_SUCCESS);
    for (const gcx_result result : results)
        CHECK(result == GCX_SUCCESS || result == GCX_ERROR_DUPLICATE_LIBRARY);
    if (results[0] == GCX_SUCCESS)
        CHECK_OK(gcx_lease_release(leases[0]));
    if (results[1] == GCX_SUCCESS)
        CHECK_OK(other.release(leases[1]));
}

// The mapping by which copies find each other.
std::size_t count_claims() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find("gcx-leases-") != std::string::npos ? 1 : 0;
    return count;
}

void threads_that_acquire_first_claim_once() {
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&info));
    CHECK_EQ(count_claims(), 0U);
    support::in_threads(8, [](unsigned) {
        gcx_lease lease = nullptr;
        CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &lease));
        CHECK_OK(gcx_lease_release(lease));
    });
    CHECK_EQ(count_claims(), 1U);
}

// A child has no leases of its parent, so another copy can acquire leases in it.
void forked_child_has_no_claim() {
    const CopiedFile file;
    const Copy other(file.path());
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &lease));
    const pid_t child = fork();
    if (child == 0) {
        gcx_lease own = nullptr;
        other.acquire(&own);
        _exit(other.message().find("two copies") == std::string::npos ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_OK(gcx_lease_release(lease));
}

} // namespace

int main(int count, char** words) {
    if (count != 3)
        return 2;
    libgcx = words[1];
    plugin = words[2];
    // Opened by path: "sim:h100@13.0" would reset the simulated machine in each copy.
    setenv("GCX_DRIVER", gcx_simulator_path(), 1);
    setenv("GCX_SIM", "h100@13.0", 1);
    in_child("a copied file", [] {
        const CopiedFile file;
        second_copy_acquire_is_refused(file.path());
    });
    in_child("a plugin", [] { second_copy_acquire_is_refused(plugin); });
    in_child("first_lease_decides", first_lease_decides);
    in_child("copy_closed_without_leases", copy_closed_without_leases_leaves_them_to_another);
    in_child("copy_closed_with_leases", copy_closed_with_leases_keeps_them);
    for (int round = 0; round < 5; round++)
        in_child("copies_acquire_at_once", copies_acquire_at_once_one_has_leases);
    for (int round = 0; round < 5; round++)
        in_child("threads_that_acquire_first", threads_that_acquire_first_claim_once);
    in_child("forked_child", forked_child_has_no_claim);
    return check::summary("copies");
}
