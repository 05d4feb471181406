// Threads, fork, and the environment: the machine and the visible devices.
#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

using namespace sim_test;

namespace {

// Runs the body in a child process and returns its exit status.
template <class Body>
int in_child(const Body& body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void one_thread(CUcontext primary, const CUdevResource& group, CUfunction spinner) {
    CHECK_OK(cuCtxSetCurrent(primary));
    for (int round = 0; round < 25; round++) {
        const Partition part({group});
        uint64_t nanoseconds = 1000;
        void* arguments[] = {&nanoseconds};
        for (int i = 0; i < 4; i++)
            CHECK_OK(cuLaunchKernel(spinner, 1, 1, 1, 1, 1, 1, 0, part.stream, arguments, nullptr));
        CHECK_OK(cuStreamSynchronize(part.stream));
        CUdeviceptr memory = 0;
        CHECK_OK(cuMemAllocAsync(&memory, 4096, part.stream));
        CHECK_OK(cuMemsetD8Async(memory, 1, 4096, part.stream));
        CHECK_OK(cuMemFreeAsync(memory, part.stream));
    }
    CHECK_OK(cuCtxSetCurrent(nullptr));
}

void threads_create_and_destroy_partitions() {
    simulate("h100@13.0");
    {
        const Primary primary;
        const Split made = split(query(), 15, 0, 8);
        std::vector<std::thread> all;
        all.reserve(16);
        for (std::size_t i = 0; i < 16; i++)
            all.emplace_back(one_thread, primary.context, made.groups[i % made.groups.size()],
                             primary.spinner);
        for (std::thread& thread : all)
            thread.join();
    }
    gcx_sim_counts now = counts_now();
    CHECK_EQ(now.green_contexts + now.streams + now.allocations + now.primary_retains, uint64_t{0});
    CHECK_EQ(now.device_bytes_lost, uint64_t{400} * (4U << 20));
}

void fork_after_init_is_refused() {
    // The child of a process that has not initialised the driver may do so.
    CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
    CHECK_EQ(in_child([] { return static_cast<int>(cuInit(0)); }), 0);
    CHECK_OK(cuInit(0));
    CHECK_EQ(in_child([] {
                 int count = 0;
                 const bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                                      cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED;
                 return refused ? 0 : 1;
             }),
             0);
    int count = 0;
    CHECK_OK(cuDeviceGetCount(&count));
}

// The environment selects the machine that the first call creates.
void environment_selects_machine() {
    const auto sms_of = [](const char* specification) {
        return in_child([specification] {
            setenv("GCX_SIM", specification, 1);
            const int result = cuInit(0);
            return result == CUDA_SUCCESS ? static_cast<int>(sm_count(query())) : result;
        });
    };
    CHECK_EQ(sms_of("a100@13.1"), 108);
    CHECK_EQ(sms_of("no_such_gpu"), int{CUDA_ERROR_INVALID_VALUE});
}

// CUDA_VISIBLE_DEVICES, as the CUDA Programming Guide describes it.

std::string uuid(CUdevice device) {
    CUuuid value;
    CHECK_OK(cuDeviceGetUuid_v2(&value, device));
    std::string text = "GPU-";
    for (std::size_t i = 0; i < sizeof value.bytes; i++) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(value.bytes[i]));
        text += i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        text += digits;
    }
    return text;
}

std::string bus(CUdevice device) {
    char text[16];
    CHECK_OK(cuDeviceGetPCIBusId(text, sizeof text, device));
    return text;
}

int device_count() {
    int count = 0;
    CHECK_OK(cuDeviceGetCount(&count));
    return count;
}

struct Machine {
    std::vector<std::string> uuids;
    std::vector<std::string> buses;
};

Machine start(const char* visible, CUresult result = CUDA_SUCCESS) {
    if (visible == nullptr)
        CHECK_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    else
        CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", visible, 1), 0);
    CHECK_EQ(gcx_sim_configure("3xh100,a100"), 0);
    if (!CHECK_EQ(cuInit(0), result))
        std::fprintf(stderr, "  CUDA_VISIBLE_DEVICES=%s\n", visible == nullptr ? "" : visible);
    Machine machine;
    for (int i = 0; result == CUDA_SUCCESS && i < device_count(); i++) {
        machine.uuids.push_back(uuid(i));
        machine.buses.push_back(bus(i));
    }
    return machine;
}

// Returns the indices of the visible devices, such as "2 0".
std::string visible(const Machine& all, const std::string& variable) {
    const Machine now = start(variable.c_str());
    std::string list;
    for (std::size_t i = 0; i < now.uuids.size(); i++) {
        for (std::size_t index = 0; index < all.uuids.size(); index++) {
            if (all.uuids[index] != now.uuids[i])
                continue;
            list += (list.empty() ? "" : " ") + std::to_string(index);
            CHECK_EQ(now.buses[i], all.buses[index]);
        }
    }
    return list;
}

void numbers_select_devices(const Machine& all) {
    CHECK_EQ(visible(all, "0,1,2,3"), "0 1 2 3");
    CHECK_EQ(visible(all, "2,1"), "2 1");
    CHECK_EQ(visible(all, "3"), "3");
    CHECK_EQ(visible(all, " 1, 2 "), "1 2");
    CHECK_EQ(visible(all, "0,2,-1,1"), "0 2");
    CHECK_EQ(visible(all, "0,4,1"), "0");
    CHECK_EQ(visible(all, "1,"), "1");
    CHECK_EQ(visible(all, "1,x,2"), "1");
    CHECK_EQ(visible(all, "1,99999999999999999999,2"), "1");
    for (const char* none : {"", " ", "-1", "-1,0", "x", ",0", "4", "NoDevFiles"})
        start(none, CUDA_ERROR_NO_DEVICE);
}

void uuids_select_devices(const Machine& all) {
    const std::string& first = all.uuids[0];
    const std::string& last = all.uuids[3];
    CHECK_EQ(visible(all, last + "," + first), "3 0");
    CHECK_EQ(visible(all, last.substr(0, 12)), "3");
    CHECK_EQ(visible(all, last.substr(0, 12) + ",1," + first), "3 1 0");
    CHECK_EQ(visible(all, first + ",GPU-00000000-0000-0000-0000-000000000000,1"), "0");
    // No simulated GPU has MIG instances.
    CHECK_EQ(visible(all, "2,MIG-" + first + "/1/0,1"), "2");
    for (const std::string& none :
         {std::string("GPU-"), std::string("GPU"), "MIG-" + first, first + "00"})
        start(none.c_str(), CUDA_ERROR_NO_DEVICE);
}

void device_listed_twice_hides_all(const Machine& all) {
    start("0,1,0", CUDA_ERROR_NO_DEVICE);
    start(("0," + all.uuids[0]).c_str(), CUDA_ERROR_NO_DEVICE);
    CHECK_EQ(visible(all, "0,-1,0"), "0"); // entries behind an invalid one are not read
}

// Devices are addressed by their new numbers.
void visible_devices_are_renumbered() {
    start("3,1");
    char name[64];
    CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK_EQ(std::string(name).find("SIMULATED NVIDIA A100"), std::size_t{0});
    CHECK_EQ(sm_count(query(0)), 108U);
    CHECK_EQ(sm_count(query(1)), 132U);
    CUdevice device = -1;
    CHECK_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    CHECK_OK(cuDeviceGetByPCIBusId(&device, bus(1).c_str()));
    CHECK_EQ(device, 1);
    Primary primary;
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    CHECK_EQ(primary.sms(part.stream).size(), std::size_t{24});
    // The variable is read once.
    CHECK_EQ(setenv("CUDA_VISIBLE_DEVICES", "0", 1), 0);
    CHECK_OK(cuInit(0));
    CHECK_EQ(device_count(), 2);
}

} // namespace

int main() {
    environment_selects_machine(); // first, before a machine exists
    fork_after_init_is_refused();
    threads_create_and_destroy_partitions();
    const Machine all = start(nullptr);
    CHECK_EQ(all.uuids.size(), std::size_t{4});
    numbers_select_devices(all);
    uuids_select_devices(all);
    device_listed_twice_hides_all(all);
    visible_devices_are_renumbered();
    return check::summary("processes");
}
