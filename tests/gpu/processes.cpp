// Tests fork, unloading, and exit with live objects, each in a child that was forked before CUDA
// was used.

#include "tests.hpp"

#include "check.hpp"

#include <gcx.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Runs the body in a child and returns its exit status, or 128 and the signal that ended it.
template <class Body>
int in_child(Body body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        body();
        std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void must(bool holds) {
    if (!holds)
        std::exit(1);
}

gcx_stream make_stream() {
    gcx_resource device{};
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    const gcx_sm_request want = {.sm_count = 24};
    gcx_resource part{};
    must(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device) == GCX_SUCCESS);
    must(gcx_sm_split(&device, &want, 1, 0, &part, nullptr, nullptr, nullptr) == GCX_SUCCESS);
    must(gcx_context_create(&part, 1, nullptr, &context) == GCX_SUCCESS);
    must(gcx_stream_create(context, nullptr, &stream) == GCX_SUCCESS);
    return stream;
}

} // namespace

void test_processes(const char* libgcx) {
    section("exit with live objects is quiet");
    CHECK_EQ(in_child([] { make_stream(); }), 0);

    section("the child of a fork gets an error");
    CHECK_EQ(in_child([] {
                 const gcx_stream stream = make_stream();
                 must(in_child([&] {
                          int32_t count = 0;
                          must(gcx_device_get_count(&count) == GCX_ERROR_NOT_INITIALIZED);
                          must(gcx_stream_synchronize(stream) == GCX_ERROR_NOT_INITIALIZED);
                          must(gcx_stream_destroy(stream) == GCX_ERROR_NOT_INITIALIZED);
                      }) == 0);
                 must(gcx_stream_synchronize(stream) == GCX_SUCCESS);
             }),
             0);

    section("unloading, and loading again");
    CHECK_EQ(in_child([&] {
                 for (int round = 0; round < 3; round++) {
                     void* const library = dlopen(libgcx, RTLD_NOW | RTLD_LOCAL);
                     must(library != nullptr);
                     const auto count_devices = reinterpret_cast<gcx_result (*)(int32_t*)>(
                         dlsym(library, "gcx_device_get_count"));
                     int32_t count = 0;
                     must(count_devices != nullptr && count_devices(&count) == GCX_SUCCESS);
                     must(dlclose(library) == 0);
                 }
             }),
             0);
}
