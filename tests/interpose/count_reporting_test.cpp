// gcx_driver_report_partition_counts: the SM counts that other libraries of the process see.
#include "../api/support.hpp"
#include "caller.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

// libcuda as other libraries of the process find it.
void* libcuda = nullptr;

template <class Function>
Function other(const char* name) {
    return reinterpret_cast<Function>(dlsym(libcuda, name));
}
#define OTHER(name) other<decltype(&::name)>(SUPPORT_NAME(name))

int reported(CUdevice device = 0) {
    int count = -1;
    CHECK_EQ(OTHER(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
             CUDA_SUCCESS);
    return count;
}

// cudart finds the function this way.
int reported_by_address() {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    CHECK_EQ(OTHER(cuGetProcAddress)("cuDeviceGetAttribute", &address, 12000, 0, &status),
             CUDA_SUCCESS);
    int count = -1;
    const auto get = reinterpret_cast<decltype(&::cuDeviceGetAttribute)>(address);
    CHECK_EQ(get(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
    return count;
}

gcx_context make(uint32_t sms, int32_t device = 0) {
    return support::make_context(support::split(support::whole_device(device), {sms}).groups[0]);
}

// Runs the body while a new context is current.
void within(uint32_t sms, int32_t device, const std::function<void()>& body) {
    const gcx_context part = make(sms, device);
    CHECK_OK(gcx_context_push(part));
    body();
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_destroy(part));
}

void start() {
    CHECK_OK(gcx_driver_report_partition_counts());
    CHECK_OK(gcx_driver_report_partition_counts());
    CHECK_EQ(support::sim::calls(), 0U); // nothing has started
    libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(libcuda != nullptr);
}

// Other libraries see the partition's count while it is current in their thread.
void count_follows_current_context() {
    start();
    const gcx_context small = make(24);
    const gcx_context big = make(64);
    CHECK_EQ(reported(), 132);
    CHECK_OK(gcx_context_push(small));
    CHECK_EQ(reported(), 24);
    CHECK_EQ(reported_by_address(), 24);
    CHECK_EQ(count_seen_by("OTHER", OTHER(cuDeviceGetAttribute)), 24);
    CHECK_EQ(count_seen_by("CUBLAS_NEW", OTHER(cuDeviceGetAttribute)), 24);
    CHECK_EQ(count_seen_by("CUBLAS_OLD", OTHER(cuDeviceGetAttribute)), 132);
    std::thread([&] {
        CHECK_EQ(reported(), 132);
        CHECK_OK(gcx_context_push(big));
        CHECK_EQ(reported(), 64);
        CHECK_OK(gcx_context_pop(nullptr));
        CHECK_EQ(reported(), 132);
    }).join();
    CHECK_OK(gcx_context_push(big));
    CHECK_EQ(reported(), 64);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_EQ(reported(), 24);
    CHECK_OK(gcx_context_pop(nullptr));
    // The primary context.
    CUcontext primary = nullptr;
    CHECK_EQ(OTHER(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
    CHECK_EQ(OTHER(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
    CHECK_EQ(reported(), 132);
    // Handles are the driver's: contexts have no hooks here.
    CUcontext current = nullptr;
    CHECK_EQ(OTHER(cuCtxSetCurrent)(gcx_context_native(small)), CUDA_SUCCESS);
    CHECK_EQ(OTHER(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
    CHECK(current == gcx_context_native(small));
    CHECK_EQ(reported(), 24);
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(0, &info)); // gcx still reports the device
    CHECK_EQ(info.sm_count, 132U);
    CHECK_EQ(OTHER(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
    CHECK_OK(gcx_context_destroy(small));
    CHECK_OK(gcx_context_destroy(big));
}

void count_of_other_device_is_unchanged() {
    start();
    within(24, 1, [&] {
        CHECK_EQ(reported(0), 132);
        CHECK_EQ(reported(1), 24);
    });
}

void occupancy_fills_partition() {
    start();
    within(24, 0, [&] {
        const char* const ptx = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                ".visible .entry work()\n{ ret; }\n";
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        CHECK_EQ(OTHER(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
        CHECK_EQ(OTHER(cuModuleGetFunction)(&function, module, "work"), CUDA_SUCCESS);
        int grid = 0;
        int block = 0;
        int blocks = 0;
        CHECK_EQ(OTHER(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, nullptr, 0, 0),
                 CUDA_SUCCESS);
        CHECK_EQ(OTHER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, block, 0),
                 CUDA_SUCCESS);
        CHECK_EQ(grid, 24 * blocks);
        CHECK_EQ(OTHER(cuModuleUnload)(module), CUDA_SUCCESS);
    });
}

// If a driver call of the hook fails, it reports the driver's count and no error.
void count_on_driver_error_is_the_devices() {
    start();
    within(24, 0, [&] {
        for (const char* const name :
             {"cuCtxGetDevResource", "cuCtxGetDevice", "cuCtxGetCurrent"}) {
            support::sim::fail(name, 1, CUDA_ERROR_UNKNOWN);
            CHECK_EQ(reported(), 132);
            CHECK_EQ(reported(), 24);
        }
    });
}

// gcx has opened the driver before.
void reporting_after_driver_open_fails() {
    int32_t count = 0;
    CHECK_OK(gcx_device_get_count(&count));
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_TOO_LATE);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_TOO_LATE); // not yet reporting
    const gcx_context part = make(16);
    CHECK_OK(gcx_context_destroy(part));
}

// The program has loaded libcuda before.
void reporting_after_libcuda_load_fails() {
    void* const first = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(first != nullptr);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_TOO_LATE);
    CHECK(std::string(gcx_last_error_message()).find("loaded in this process already") !=
          std::string::npos);
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == first);
}

// Without a chosen driver, the one that the loader finds is used.
void reporting_without_driver_choice_finds_libcuda() {
    unsetenv("GCX_DRIVER");
    setenv("GCX_SIM", "h100@13.0", 1);
    start();
    within(24, 0, [&] { CHECK_EQ(reported(), 24); });
    // The name means the stub library. gcx uses the real driver.
    CHECK_OK(gcx_driver_open("libcuda.so.1"));
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&info));
    CHECK(std::string(info.library).find("libgcx-sim.so") != std::string::npos);
}

// No fork happens: threads that load libraries hold the loader's locks, and a child would find them
// locked.
void reporting_during_loads_does_not_block() {
    unsetenv("GCX_DRIVER");
    setenv("GCX_SIM", "h100@13.0", 1);
    static std::atomic<int> forks{0};
    CHECK_EQ(pthread_atfork([] { forks++; }, nullptr, nullptr), 0);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (const char* const name : {"libanl.so.1", "libBrokenLocale.so.1", "libthread_db.so.1"}) {
        threads.emplace_back([&done, name] {
            while (!done) {
                if (void* const library = dlopen(name, RTLD_NOW); library != nullptr)
                    dlclose(library);
            }
        });
    }
    CHECK_OK(gcx_driver_report_partition_counts());
    done = true;
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(forks.load(), 0);
}

void reporting_with_wrong_driver_fails() {
    setenv("GCX_DRIVER", "/nowhere/libcuda.so.1", 1);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    setenv("GCX_DRIVER", "libnobody-has-this.so", 1);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    // A failed call has no effect: the next one works.
    setenv("GCX_DRIVER", "sim:h100@13.0", 1);
    start();
}

} // namespace

int main() {
    const auto in = [](const char* driver, const std::function<void()>& body) {
        support::in_child(driver, [&] {
            setenv("GCX_DRIVER", driver, 1);
            body();
        });
    };
    for (const char* const driver : {"sim:h100@12.4", "sim:h100@13.0", "sim:h100@13.5"}) {
        in(driver, count_follows_current_context);
        in(driver, occupancy_fills_partition);
        in(driver, count_on_driver_error_is_the_devices);
    }
    in("sim:2xh100@13.0", count_of_other_device_is_unchanged);
    in("sim:h100@13.0", reporting_after_driver_open_fails);
    in("sim:h100@13.0", reporting_after_libcuda_load_fails);
    in("", reporting_without_driver_choice_finds_libcuda);
    for (int round = 0; round < 10; round++)
        in("", reporting_during_loads_does_not_block);
    in("sim:h100@13.0", reporting_with_wrong_driver_fails);
    return check::summary("counts of partitions");
}
