// CUDA_VISIBLE_DEVICES, as the CUDA Programming Guide describes it.
#include "support.hpp"

#include <cstdlib>

using namespace sim_test;

namespace {

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
    const Machine all = start(nullptr);
    CHECK_EQ(all.uuids.size(), std::size_t{4});
    numbers_select_devices(all);
    uuids_select_devices(all);
    device_listed_twice_hides_all(all);
    visible_devices_are_renumbered();
    return check::summary("visible devices");
}
