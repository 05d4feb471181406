// The stub library, opened without the audit library: stub_library_test SHIM DRIVER.
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

void check_hooked_and_driver_functions(void* library) {
    CHECK_EQ(call(library, "cuInit", 7u), 501007);
    CHECK_EQ(call(library, "cuLaunchKernel", 1), 2001);
    CHECK_EQ(call(library, "cuFunctionOfTheYear2031"), 2031);
    // The driver's internal calls can reach the hook again.
    CHECK(call(library, "cuInitOfItsOwn", 1u) % 1000 == 1);
    CHECK(dlsym(library, "cuNobodyHasThis") == nullptr);
}

void stub_library_opened_is_libcuda(const char* shim, const char* driver) {
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr);
    const int descriptor = make_stub_library(shim, driver);
    if (!CHECK(descriptor >= 0))
        return;
    CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    void* const stub = dlopen(stub_library_path(descriptor).text, RTLD_NOW | RTLD_LOCAL);
    close(descriptor);
    if (stub == nullptr)
        std::fprintf(stderr, "%s\n", dlerror());
    if (!CHECK(stub != nullptr))
        return;
    check_hooked_and_driver_functions(stub);
    // libcuda.so.1 now means the stub library in this process.
    void* const by_soname = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(by_soname == stub);
    if (!check::sanitized) // sanitizers forbid it
        CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) == stub);
    check_hooked_and_driver_functions(by_soname);
    // dladdr names the library of each function.
    Dl_info info{};
    CHECK(dladdr(dlsym(stub, "cuInit"), &info) != 0);
    CHECK_EQ(std::string(info.dli_fname), shim);
    CHECK(dladdr(dlsym(stub, "cuLaunchKernel"), &info) != 0);
    CHECK_EQ(std::string(info.dli_fname), std::string(gcx::interpose::kRealPrefix) + driver);
}

void stub_library_with_bad_path_fails(const char* shim, const char* driver) {
    const std::string long_path = "/" + std::string(20000, 'x');
    errno = 0;
    CHECK_EQ(make_stub_library(long_path.c_str(), driver), -1);
    CHECK_EQ(errno, ENAMETOOLONG);
    errno = 0;
    CHECK_EQ(make_stub_library(shim, long_path.c_str()), -1);
    CHECK_EQ(errno, ENAMETOOLONG);
    // Opening a stub library reports which of its dependencies is missing.
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
    stub_library_with_bad_path_fails(shim.c_str(), driver.c_str());
    stub_library_opened_is_libcuda(shim.c_str(), driver.c_str());
    return check::summary("the stub library");
}
