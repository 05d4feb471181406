#include "fresh.hpp"

// Not linked but included: the open library is this file's own affair, in the product.
#include "api/library.cpp"

#include <unistd.h>

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

// Where leases are published: not among those of who runs this.
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
    delete gcx::open.exchange(nullptr);
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

} // namespace fuzz
