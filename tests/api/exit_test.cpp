// Destroys objects late: in the destructor of a static object, in a handler of atexit, at the end
// of a library, when the driver may have ended before. All calls succeed. Built twice, linked with
// libgcx and without, and once more as a library that opens libgcx by dlopen.
//
// Usage: exit LIBGCX PLUGIN. The program starts itself for each case.

#include "../own_program.hpp"

#include <gcx.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// Has one object of each type, created by make() and destroyed by its owner.
struct Objects {
    void* library = nullptr;
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;

    template <class Function>
    Function find(const char* name) const {
        return reinterpret_cast<Function>(dlsym(library, name));
    }

    bool make(const char* path) {
#ifdef EXIT_TEST_LINKED
        if (gcx_version() != GCX_VERSION)
            return false;
#endif
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return false;
        gcx_resource resource;
        return find<decltype(&gcx_driver_open)>("gcx_driver_open")("sim:h100@13.0") ==
                   GCX_SUCCESS &&
               find<decltype(&gcx_device_get_resource)>("gcx_device_get_resource")(
                   0, GCX_RESOURCE_SM, &resource) == GCX_SUCCESS &&
               find<decltype(&gcx_context_create)>("gcx_context_create")(&resource, 1, nullptr,
                                                                         &context) == GCX_SUCCESS &&
               find<decltype(&gcx_stream_create)>("gcx_stream_create")(context, nullptr, &stream) ==
                   GCX_SUCCESS &&
               find<decltype(&gcx_event_create)>("gcx_event_create")(0, 0, &event) == GCX_SUCCESS;
    }

    // Ends the process with status 3 if an object isn't destroyed.
    void destroy() const {
        if (context == nullptr)
            return;
        const gcx_result results[] = {
            find<decltype(&gcx_stream_destroy)>("gcx_stream_destroy")(stream),
            find<decltype(&gcx_event_destroy)>("gcx_event_destroy")(event),
            find<decltype(&gcx_context_destroy)>("gcx_context_destroy")(context)};
        for (const gcx_result result : results) {
            if (result == GCX_SUCCESS)
                continue;
            std::fprintf(stderr, "%d: %s\n", result,
                         find<const char* (*)()>("gcx_last_error_message")());
            _exit(3);
        }
    }
};

} // namespace

#ifdef EXIT_TEST_PLUGIN

namespace {
Objects objects;
// Runs after the destructor of libgcx, which is loaded later.
[[gnu::destructor]] void end() {
    objects.destroy();
    if (objects.library == nullptr)
        return;
    // libgcx is still open if the program is linked to it; otherwise it has ended.
    const gcx_result opened =
        objects.find<decltype(&gcx_driver_open)>("gcx_driver_open")("sim:h100@13.0");
    if (opened != GCX_SUCCESS && opened != GCX_ERROR_DEINITIALIZED)
        _exit(4);
}
} // namespace

extern "C" [[gnu::visibility("default")]] int make_objects(const char* path);
int make_objects(const char* path) {
    return objects.make(path) ? 0 : 1;
}

#else

namespace {

// Is constructed before the driver is opened, so that its destructor runs after the driver's end.
struct Static {
    Objects objects;
    ~Static() { objects.destroy(); }
} before;

Objects handled;

int run(const std::string& how, const char* libgcx, const char* plugin) {
    if (how == "static object")
        return before.objects.make(libgcx) ? 0 : 1;
    if (how == "handler")
        return handled.make(libgcx) && std::atexit([] { handled.destroy(); }) == 0 ? 0 : 1;
    if (how == "later static object") {
        Objects objects;
        if (!objects.make(libgcx))
            return 1;
        static const Static later{objects};
        return 0;
    }
    void* const module = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr)
        return 1;
    return reinterpret_cast<int (*)(const char*)>(dlsym(module, "make_objects"))(libgcx);
}

// A library that was opened by a relative path finds the simulated driver from any working folder.
int run_elsewhere(const std::string& libgcx) {
    const std::size_t slash = libgcx.rfind('/');
    unsetenv("GCX_SIM_LIBRARY");
    Objects objects;
    if (chdir(libgcx.substr(0, slash).c_str()) != 0)
        return 1;
    objects.library = dlopen(("./" + libgcx.substr(slash + 1)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (objects.library == nullptr || chdir("/") != 0)
        return 1;
    const char* const path = objects.find<decltype(&gcx_simulator_path)>("gcx_simulator_path")();
    return path != nullptr && *path == '/' &&
                   objects.find<decltype(&gcx_driver_open)>("gcx_driver_open")("sim:h100@13.0") ==
                       GCX_SUCCESS
               ? 0
               : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3)
        return 2;
    if (argc == 4)
        return std::strcmp(argv[3], "elsewhere") == 0 ? run_elsewhere(argv[1])
                                                      : run(argv[3], argv[1], argv[2]);
    int failed = 0;
    for (const char* how :
         {"static object", "handler", "later static object", "end of a library", "elsewhere"}) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            become_own_program(argv[0], {argv[1], argv[2], how});
            _exit(2);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0) {
            std::fprintf(stderr, "%s: status %#x\n", how, static_cast<unsigned>(status));
            failed++;
        }
    }
    std::printf("exit: %d failed\n", failed);
    return failed;
}

#endif
