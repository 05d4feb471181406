#include "harness.hpp"

// Included rather than linked, since the open library is private to this file.
#include "api/library.cpp"

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

// A private folder for published leases and reservations.
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
    static const Folder folder;
    set("GCX_RESERVATION_DIR", folder.path);
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

} // namespace fuzz
