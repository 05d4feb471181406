#include "harness.hpp"

// Included rather than linked, since the open library is private to this file.
#include "api/library.cpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace fuzz {
namespace {

std::vector<std::string> first_environment() {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; variable++)
        variables.emplace_back(*variable);
    return variables;
}

void set(const char* name, const std::string& value) {
    if (setenv(name, value.c_str(), 1) != 0)
        std::abort();
}

struct Folder {
    Folder() {
        if (mkdtemp(path.data()) == nullptr)
            std::abort();
    }
    ~Folder() {
        std::error_code error;
        std::filesystem::remove_all(path, error);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path = "/tmp/gcx-fuzz-XXXXXX";
};

} // namespace

const std::string& folder() {
    static const Folder made;
    return made.path;
}

void close_library() {
    delete gcx::instance.exchange(nullptr);
}

void begin_input(const std::string& driver) {
    static const std::vector<std::string> variables = first_environment();
    clearenv();
    for (const std::string& variable : variables) {
        const std::size_t sign = variable.find('=');
        if (sign != std::string::npos && !variable.starts_with("GCX_") &&
            !variable.starts_with("CUDA_"))
            set(variable.substr(0, sign).c_str(), variable.substr(sign + 1));
    }
    set("GCX_SIM_LIBRARY", FUZZ_SIM_LIBRARY);
    set("GCX_DRIVER", driver);
    set("GCX_RESERVATION_DIR", folder());
}

void violated(const char* what, const char* detail) {
    std::fprintf(stderr, "violated: %s %s\n    last error of gcx: %s\n", what, detail,
                 gcx_last_error_message());
    std::abort();
}

gcx_result checked(gcx_result result, const char* call) {
    if (result == GCX_SUCCESS)
        return result;
    must(result != GCX_ERROR_UNKNOWN, "a defect of gcx:", call);
    must(*gcx_result_string(result) != '\0', "a result without a text:", call);
    if (result != GCX_ERROR_NOT_READY)
        must(*gcx_last_error_message() != '\0', "a failure without a message:", call);
    return result;
}

uint32_t sm_count_of(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    must(gcx_resource_get_info(&resource, &info) == GCX_SUCCESS, "a resource without info");
    return info.sm_count;
}

void replace_contents(int file, const void* data, std::size_t size) {
    must(file >= 0 && ftruncate(file, 0) == 0 &&
             pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
         "a file can't be written");
}

HostileFile::HostileFile(const std::string& name, short lock_type)
    : path(name), file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    struct flock lock{};
    lock.l_type = lock_type;
    must(file >= 0 && fcntl(file, F_OFD_SETLK, &lock) == 0, "the file can't be made");
}

} // namespace fuzz
