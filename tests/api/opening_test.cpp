// Tests opening a driver: by name, twice, with a failure, before a fork; and its messages.

#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

using namespace support;

namespace {

void open_driver_is_opened_again() {
    in_child("opened again", [] {
        for (const char* driver : {"sim:h100@13.0", "sim:h100@13.0", "", "sim:h100@13.0"})
            CHECK_OK(gcx_driver_open(driver));
        CHECK_OK(gcx_driver_open(nullptr));
        for (const char* other : {"sim:h200@13.0", "libcuda.so.1", gcx_simulator_path()}) {
            CHECK_REFUSED(gcx_driver_open(other), GCX_ERROR_DRIVER_ALREADY_OPEN);
            CHECK(message_has("sim:h100@13.0") && message_has(other));
        }
        int32_t count = 0;
        CHECK_OK(gcx_device_get_count(&count));
        CHECK_EQ(count, 1);
    });
    in_child("opened by a path, then by another one", [] {
        const std::string path = gcx_simulator_path();
        const std::string same = "/." + path;
        CHECK_OK(gcx_driver_open(path.c_str()));
        CHECK_OK(gcx_driver_open(path.c_str()));
        CHECK_OK(gcx_driver_open(same.c_str()));
        CHECK_REFUSED(gcx_driver_open("sim:h100@13.0"), GCX_ERROR_DRIVER_ALREADY_OPEN);
    });
    in_child("opened by a first call", [] {
        setenv("GCX_DRIVER", "sim:a100@12.8", 1);
        int32_t count = 0;
        CHECK_OK(gcx_device_get_count(&count));
        CHECK_OK(gcx_driver_open("sim:a100@12.8"));
        unsetenv("GCX_DRIVER"); // the driver that is open is acceptable
        CHECK_OK(gcx_driver_open(nullptr));
    });
}

int status_of_a_fork(const std::function<bool()>& body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(body() ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

void failed_opening_does_not_affect_a_child() {
    const auto works = [] {
        int32_t count = 0;
        return gcx_driver_open("sim:h100@13.0") == GCX_SUCCESS &&
               gcx_device_get_count(&count) == GCX_SUCCESS && count == 1;
    };
    in_child("no driver", [&] {
        CHECK(gcx_driver_open("libno-such-cuda.so.1") != GCX_SUCCESS);
        CHECK_EQ(status_of_a_fork(works), 0);
        CHECK(gcx_driver_open("libc.so.6") != GCX_SUCCESS);
        CHECK(gcx_driver_open("sim:none@13.0") != GCX_SUCCESS);
        CHECK_EQ(status_of_a_fork(works), 0);
        CHECK(works());
        CHECK_EQ(status_of_a_fork(
                     [] { return gcx_driver_open("sim:h100@13.0") == GCX_ERROR_NOT_INITIALIZED; }),
                 0);
    });
}

// The message about a driver without devices mentions the environment as a cause.
void missing_device_message_names_the_cause() {
    in_child("nothing is hidden", [] {
        unsetenv("CUDA_VISIBLE_DEVICES");
        CHECK_REFUSED(gcx_driver_open("sim:none@13.0"), GCX_ERROR_NO_DEVICE);
        CHECK(!message_has("CUDA_VISIBLE_DEVICES"));
    });
    in_child("everything is hidden", [] {
        setenv("CUDA_VISIBLE_DEVICES", "7", 1);
        CHECK_REFUSED(gcx_driver_open("sim:none@13.0"), GCX_ERROR_NO_DEVICE);
        CHECK(message_has("CUDA_VISIBLE_DEVICES=7"));
    });
}

// The first thread opens the driver, and the others find it open.
void threads_open_one_driver() {
    in_child("threads open", [] {
        setenv("GCX_DRIVER", "sim:h100@13.0", 1);
        in_threads(16, [](unsigned i) {
            int32_t count = 0;
            if (i % 2 == 0)
                CHECK_OK(gcx_driver_open("sim:h100@13.0"));
            CHECK_OK(gcx_device_get_count(&count));
            CHECK_EQ(count, 1);
        });
        // It was opened once, by name or by the environment.
        CHECK_EQ(sim::calls("cuInit"), 1U);
    });
}

// The path of the simulated driver may be long.
void simulator_path_may_be_long() {
    in_child("a long path", [] {
        char folder[] = "/tmp/gcx-opening-XXXXXX";
        CHECK(mkdtemp(folder) != nullptr);
        std::filesystem::path deep = folder;
        for (int i = 0; i < 8; i++)
            deep /= std::string(250, 'x');
        std::filesystem::create_directories(deep);
        const std::filesystem::path link = deep / "libgcx-sim.so";
        std::filesystem::create_symlink(gcx_simulator_path(), link);
        setenv("GCX_SIM_LIBRARY", link.c_str(), 1);
        const char* const path = gcx_simulator_path();
        if (CHECK(path != nullptr))
            CHECK_EQ(std::string(path), link.string());
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        std::filesystem::remove_all(folder);
    });
}

// A driver has every function of its version, and is not asked for those of newer ones.
void incomplete_driver_is_refused(const char* driver) {
    in_child("a function is missing", [driver] {
        setenv("GCX_SIM", "h100@13.0", 1);
        setenv("DRIVER_WRAPPER_LACKS", "cuGreenCtxCreate", 1);
        CHECK_REFUSED(gcx_driver_open(driver), GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
        CHECK(message_has(driver) && message_has("CUDA 13.0, but lacks cuGreenCtxCreate of CUDA"));
    });
    in_child("a function of a newer driver is missing", [driver] {
        setenv("GCX_SIM", "h100@13.0", 1);
        setenv("DRIVER_WRAPPER_LACKS", "cuDevSmResourceSplit", 1); // of CUDA 13.1
        CHECK_OK(gcx_driver_open(driver));
    });
}

void failed_call_is_described() {
    const Partition partition(split(whole_device(), {24}).groups[0]);
    const char* name = nullptr;
    const char* text = nullptr;
    CHECK_NATIVE(cuGetErrorName, CUDA_ERROR_ILLEGAL_ADDRESS, &name);
    CHECK_NATIVE(cuGetErrorString, CUDA_ERROR_ILLEGAL_ADDRESS, &text);
    sim::fail("cuStreamSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_REFUSED(gcx_stream_synchronize(partition.stream), GCX_ERROR_ILLEGAL_ADDRESS);
    CHECK(message_has("cuStreamSynchronize") && message_has(name) && message_has(text));
    CHECK(message_has("700"));
}

// The beginning of a message says what failed, and the end what to do.
void long_message_keeps_both_ends() {
    for (const std::size_t length : {2000U, 4000U, 4096U, 5000U, 60000U}) {
        in_child("a name of " + std::to_string(length), [length] {
            const std::string name = "lib" + std::string(length, 'x');
            CHECK(gcx_driver_open(name.c_str()) != GCX_SUCCESS);
            const std::string message = gcx_last_error_message();
            CHECK(message.rfind("gcx_driver_open: no CUDA driver: libxxx", 0) == 0);
            const std::string end = "to run on the simulated one";
            CHECK(message.size() > end.size() &&
                  message.compare(message.size() - end.size(), end.size(), end) == 0);
            const bool cut = length >= 4000;
            CHECK_EQ(message.find(" ... ") != std::string::npos, cut);
            CHECK(cut ? message.size() == 4095 : message.size() > 2000);
        });
    }
}

} // namespace

int main(int argc, char** argv) {
    CHECK(argc == 2); // the library of driver_wrapper.hpp
    open_driver_is_opened_again();
    failed_opening_does_not_affect_a_child();
    missing_device_message_names_the_cause();
    threads_open_one_driver();
    simulator_path_may_be_long();
    incomplete_driver_is_refused(argv[argc - 1]);
    on_machine("h100@13.0", failed_call_is_described);
    long_message_keeps_both_ends();
    return support::summary("opening");
}
