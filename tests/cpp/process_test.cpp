// Tests a process's queues, SM counts of its libraries, and published leases.
#include "tests.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";

void queue_request_before_cuda_succeeds() {
    support::in_child("requested in time", [] {
        unsetenv(kVariable);
        const gcx_queue_info before = gcx::queue_info();
        CHECK(before.connections == 8 && before.source == gcx::queue_source::by_default);
        CHECK(before.started == 0 && before.certain == 1 && before.too_few == 0);
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::request_connections(0));
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::request_connections(gcx::max_connections + 1));
        gcx::request_connections(16);
        gcx::request_connections();
        gcx::open_driver("sim:h100@13.0");
        const gcx_queue_info after = gcx::queue_info();
        CHECK(after.connections == 32 && after.source == gcx::queue_source::environment);
        CHECK_EQ(after.started, 1);
    });
    support::in_child("too late, and too few", [] {
        setenv(kVariable, "1", 1);
        gcx::open_driver("sim:h100@13.0");
        CHECK_THROWS(GCX_ERROR_TOO_LATE, gcx::request_connections());
        CHECK_EQ(gcx::queue_info().too_few, 1);
        std::string said;
        gcx::set_log(gcx::log_level::warning,
                     [&](gcx_log_level, std::string_view message) { said = message; });
        const gcx::context context(part(24));
        gcx::reset_log();
        CHECK(said.find(kVariable) != std::string::npos);
    });
}

// Returns the SMs of device 0 as a library counts them that does not use gcx.
int counted() {
    int sms = 0;
    void* const libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto get = libcuda != nullptr ? reinterpret_cast<decltype(&cuDeviceGetAttribute)>(
                                              dlsym(libcuda, "cuDeviceGetAttribute"))
                                        : nullptr;
    CHECK(get != nullptr && get(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) == CUDA_SUCCESS);
    return sms;
}

void report_partition_counts_before_cuda_succeeds() {
    support::in_child("requested in time", [] {
        setenv("GCX_DRIVER", "sim:h100@13.0", 1);
        gcx::report_partition_counts();
        gcx::report_partition_counts();
        const gcx::context context(part(24));
        CHECK_EQ(counted(), 132);
        {
            const gcx::current_guard current(context);
            CHECK_EQ(counted(), 24);
            std::thread([] { CHECK_EQ(counted(), 132); }).join();
        }
        CHECK_EQ(counted(), 132);
    });
    support::in_child("of a driver that isn't there", [] {
        setenv("GCX_DRIVER", "/no/such/libcuda.so.1", 1);
        CHECK_THROWS(GCX_ERROR_SHARED_OBJECT_INIT_FAILED, gcx::report_partition_counts());
    });
}

void published_leases_are_listed() {
    const Folder folder("GCX_RESERVATION_DIR");
    CHECK(gcx::published_processes().empty() && gcx::published_leases().empty());
    support::on_machine("2xh100@13.0", [] {
        gcx::publish_stop();
        const gcx::lease before(0, 32, {"before"});
        gcx::publish_start("engine");
        const auto processes = gcx::published_processes();
        CHECK(processes.size() == 1 && std::string(processes[0].name) == "engine");
        CHECK(processes[0].simulated == 1 && processes[0].lease_count == 1);
        const gcx::lease there(1, 24, {"there"});
        const auto leases = gcx::published_leases();
        CHECK(leases.size() == 2 && std::string(leases[0].name) == "before");
        CHECK(leases[0].sm_count == 32 && leases[1].device == 1);
        CHECK(leases[1].id == there.id() && leases[1].process == processes[0].process);
        // More leases are published than the list has room for at first.
        std::vector<gcx::lease> more;
        more.reserve(24);
        for (int i = 0; i < 12; i++)
            more.emplace_back(0, 8);
        for (int i = 0; i < 12; i++)
            more.emplace_back(1, 8);
        CHECK_EQ(gcx::published_leases().size(), 26u);
        more.clear();
        CHECK_EQ(gcx::published_leases().size(), 2u);

        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::publish_start(std::string(64, 'n').c_str()));
        CHECK_EQ(std::string(gcx::published_processes()[0].name), "engine");
        gcx::publish_start();
        CHECK_EQ(std::string(gcx::published_processes()[0].name), program_invocation_short_name);
        gcx::publish_stop();
        CHECK(gcx::published_processes().empty() && gcx::published_leases().empty());
        gcx::publish_stop();
    });
    support::in_child("a folder that isn't there", [] {
        setenv("GCX_RESERVATION_DIR", "/no/such/folder", 1);
        setenv("GCX_DRIVER", "sim:h100@13.0", 1);
        CHECK_THROWS(GCX_ERROR_OPERATING_SYSTEM, gcx::publish_start());
    });
}

} // namespace

void test_process() {
    queue_request_before_cuda_succeeds();
    report_partition_counts_before_cuda_succeeds();
    published_leases_are_listed();
}
