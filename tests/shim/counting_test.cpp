// gcx_driver_report_partition_counts: what other libraries of a process that uses gcx are told.
#include "../api/support.hpp"
#include "asked_by.hpp"

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

// libcuda as any other library of the process finds it.
void* libcuda = nullptr;

template <class Function>
Function other(const char* name) {
    return reinterpret_cast<Function>(dlsym(libcuda, name));
}
#define OTHER(name) other<decltype(&::name)>(SUPPORT_NAME(name))

int told(CUdevice device = 0) {
    int count = -1;
    CHECK_EQ(OTHER(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
             CUDA_SUCCESS);
    return count;
}

// As cudart finds the function.
int told_by_address() {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    CHECK_EQ(OTHER(cuGetProcAddress)("cuDeviceGetAttribute", &address, 12000, 0, &status),
             CUDA_SUCCESS);
    int count = -1;
    const auto get = reinterpret_cast<decltype(&::cuDeviceGetAttribute)>(address);
    CHECK_EQ(get(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
    return count;
}

int is_reporting() {
    int32_t reporting = -1;
    CHECK_OK(gcx_driver_reports_partition_counts(&reporting));
    return reporting;
}

gcx_context make(uint32_t sms, int32_t device = 0) {
    gcx_resource whole{};
    gcx_resource part{};
    gcx_sm_request want{};
    want.sm_count = sms;
    gcx_context context = nullptr;
    CHECK_OK(gcx_device_get_resource(device, GCX_RESOURCE_SM, &whole));
    CHECK_OK(gcx_sm_split(&whole, &want, 1, 0, &part, nullptr));
    CHECK_OK(gcx_context_create(&part, 1, nullptr, &context));
    return context;
}

void start() {
    CHECK_EQ(is_reporting(), 0);
    CHECK_OK(gcx_driver_report_partition_counts());
    CHECK_OK(gcx_driver_report_partition_counts());
    CHECK_EQ(is_reporting(), 1);
    CHECK_EQ(support::sim::calls(), 0U); // nothing has started
    libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(libcuda != nullptr);
}

// Other libraries see the partition's count exactly while it is current in their thread.
void follow_the_current() {
    start();
    const gcx_context small = make(24);
    const gcx_context big = make(64);
    CHECK_EQ(told(), 132);
    CHECK_OK(gcx_context_push(small));
    CHECK_EQ(told(), 24);
    CHECK_EQ(told_by_address(), 24);
    CHECK_EQ(count_asked_by("OTHER", OTHER(cuDeviceGetAttribute)), 24);
    CHECK_EQ(count_asked_by("CUBLAS_NEW", OTHER(cuDeviceGetAttribute)), 24);
    CHECK_EQ(count_asked_by("CUBLAS_OLD", OTHER(cuDeviceGetAttribute)), 132);
    std::thread([&] {
        CHECK_EQ(told(), 132);
        CHECK_OK(gcx_context_push(big));
        CHECK_EQ(told(), 64);
        CHECK_OK(gcx_context_pop(nullptr));
        CHECK_EQ(told(), 132);
    }).join();
    CHECK_OK(gcx_context_push(big));
    CHECK_EQ(told(), 64);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_EQ(told(), 24);
    CHECK_OK(gcx_context_pop(nullptr));
    // A plain context, and none.
    CUcontext primary = nullptr;
    CHECK_EQ(OTHER(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
    CHECK_EQ(OTHER(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
    CHECK_EQ(told(), 132);
    // The handles are the driver's own: nothing is moved.
    CUcontext current = nullptr;
    CHECK_EQ(OTHER(cuCtxSetCurrent)(gcx_context_native(small)), CUDA_SUCCESS);
    CHECK_EQ(OTHER(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
    CHECK(current == gcx_context_native(small));
    CHECK_EQ(told(), 24);
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(0, &info)); // gcx's own answers stay
    CHECK_EQ(info.sm_count, 132U);
    CHECK_EQ(OTHER(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
    CHECK_OK(gcx_context_destroy(small));
    CHECK_OK(gcx_context_destroy(big));
}

void other_device() {
    start();
    const gcx_context part = make(24, 1);
    CHECK_OK(gcx_context_push(part));
    CHECK_EQ(told(0), 132);
    CHECK_EQ(told(1), 24);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_destroy(part));
}

void grids() {
    start();
    const gcx_context part = make(24);
    CHECK_OK(gcx_context_push(part));
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
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_destroy(part));
}

// A driver call of the answer that fails: the driver's own count, and no error.
void a_failing_call() {
    start();
    const gcx_context part = make(24);
    CHECK_OK(gcx_context_push(part));
    for (const char* const name : {"cuCtxGetDevResource", "cuCtxGetDevice", "cuCtxGetCurrent"}) {
        support::sim::fail(name, 1, CUDA_ERROR_UNKNOWN);
        CHECK_EQ(told(), 132);
        CHECK_EQ(told(), 24);
    }
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_destroy(part));
}

// gcx was, by its first call that opened the driver.
void after_gcx() {
    int32_t count = 0;
    CHECK_OK(gcx_device_get_count(&count));
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_NOT_PERMITTED);
    CHECK_EQ(is_reporting(), 0);
    const gcx_context part = make(16);
    CHECK_OK(gcx_context_destroy(part));
}

// Somebody was here before.
void too_late() {
    void* const first = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(first != nullptr);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_NOT_PERMITTED);
    CHECK(std::string(gcx_last_error_message()).find("loaded in this process already") !=
          std::string::npos);
    CHECK_EQ(is_reporting(), 0);
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == first);
}

// No driver chosen: the one that the loader finds by its name.
void by_name() {
    unsetenv("GCX_DRIVER");
    setenv("GCX_SIM", "h100@13.0", 1);
    start();
    const gcx_context part = make(24);
    CHECK_OK(gcx_context_push(part));
    CHECK_EQ(told(), 24);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_destroy(part));
    // It is the facade by this name, and gcx has the driver behind it.
    CHECK_OK(gcx_driver_open("libcuda.so.1"));
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&info));
    CHECK(std::string(info.library).find("libgcx-sim.so") != std::string::npos);
}

// Threads that load libraries hold the loader's locks at any moment, and a forked child would find
// them locked.
void loading_threads_do_not_block() {
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

void wrong_arguments() {
    CHECK_EQ(gcx_driver_reports_partition_counts(nullptr), GCX_ERROR_INVALID_VALUE);
    setenv("GCX_DRIVER", "/nowhere/libcuda.so.1", 1);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    CHECK_EQ(is_reporting(), 0);
    setenv("GCX_DRIVER", "libnobody-has-this.so", 1);
    CHECK_EQ(gcx_driver_report_partition_counts(), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    // What failed left nothing: asked rightly it works.
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
        in(driver, follow_the_current);
        in(driver, grids);
        in(driver, a_failing_call);
    }
    in("sim:2xh100@13.0", other_device);
    in("sim:h100@13.0", after_gcx);
    in("sim:h100@13.0", too_late);
    in("", by_name);
    for (int round = 0; round < 10; round++)
        in("", loading_threads_do_not_block);
    in("sim:h100@13.0", wrong_arguments);
    return check::summary("counts of partitions");
}
