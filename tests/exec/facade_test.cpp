// The facade, as a process without an auditor opens it: facade_test SHIM DRIVER.
#include "interpose/stub_library.hpp"

#include "check.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

using gcx::interpose::make_stub_library;
using gcx::interpose::stub_library_path;

namespace {

template <class... Arguments>
int call(void* library, const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    return CHECK(function != nullptr) ? function(arguments...) : -1;
}

void check_lookups(void* library) {
    CHECK_EQ(call(library, "cuInit", 7u), 501007);
    CHECK_EQ(call(library, "cuLaunchKernel", 1), 2001);
    CHECK_EQ(call(library, "cuFunctionOfTheYear2031"), 2031);
    // The driver's own calls may come to the shim, once more.
    CHECK(call(library, "cuInitOfItsOwn", 1u) % 1000 == 1);
    CHECK(dlsym(library, "cuNobodyHasThis") == nullptr);
}

void check_opened(const char* shim, const char* driver) {
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr);
    const int descriptor = make_stub_library(shim, driver);
    if (!CHECK(descriptor >= 0))
        return;
    CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    void* const facade = dlopen(stub_library_path(descriptor).text, RTLD_NOW | RTLD_LOCAL);
    close(descriptor);
    if (facade == nullptr)
        std::fprintf(stderr, "%s\n", dlerror());
    if (!CHECK(facade != nullptr))
        return;
    check_lookups(facade);
    // From now on it is what libcuda.so.1 means in this process.
    void* const by_soname = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(by_soname == facade);
    if (!check::sanitized) // its runtime forbids it
        CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) == facade);
    check_lookups(by_soname);
    // Functions tell whose they are.
    Dl_info info{};
    CHECK(dladdr(dlsym(facade, "cuInit"), &info) != 0);
    CHECK_EQ(std::string(info.dli_fname), shim);
    CHECK(dladdr(dlsym(facade, "cuLaunchKernel"), &info) != 0);
    CHECK_EQ(std::string(info.dli_fname), std::string(gcx::interpose::kRealPrefix) + driver);
}

void check_errors(const char* shim, const char* driver) {
    const std::string long_path = "/" + std::string(20000, 'x');
    errno = 0;
    CHECK_EQ(make_stub_library(long_path.c_str(), driver), -1);
    CHECK_EQ(errno, ENAMETOOLONG);
    errno = 0;
    CHECK_EQ(make_stub_library(shim, long_path.c_str()), -1);
    CHECK_EQ(errno, ENAMETOOLONG);
    // What isn't there is an error of whoever opens the facade, which names it.
    const int descriptor = make_stub_library("/nowhere/libgcx-shim.so", driver);
    CHECK(descriptor >= 0);
    CHECK(dlopen(stub_library_path(descriptor).text, RTLD_NOW) == nullptr);
    CHECK(std::string(dlerror()).find("/nowhere/libgcx-shim.so") != std::string::npos);
    close(descriptor);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    CHECK_EQ(std::string(stub_library_path(0).text), "/proc/self/fd/0");
    CHECK_EQ(std::string(stub_library_path(1000).text), "/proc/self/fd/1000");
    CHECK_EQ(std::string(stub_library_path(2147483647).text), "/proc/self/fd/2147483647");
    const std::string shim = std::filesystem::canonical(argv[1]);
    const std::string driver = std::filesystem::canonical(argv[2]);
    check_errors(shim.c_str(), driver.c_str());
    check_opened(shim.c_str(), driver.c_str());
    return check::summary("the facade");
}
