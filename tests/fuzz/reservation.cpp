// Interprets an input as the file of a reservation of a live process. The file is skipped with a
// warning, or the listed reservation is consistent and can be joined. Acquiring SMs next to it
// fails or yields disjoint ones. The first byte selects the raw bytes, or changes of a valid file,
// each an offset, a width and a number, with or without a new checksum.

#include "bytes.hpp"
#include "harness.hpp"

#include "ipc/reservation.hpp"

#include <gcx.h>

#include <fcntl.h>

#include <array>
#include <cstring>
#include <string>

using fuzz::Bytes;
using fuzz::must;
namespace reservations = gcx::reservations;

namespace {

constexpr uint8_t kRaw = 1;
constexpr uint8_t kSealed = 2;
constexpr uint8_t kAcquires = 4;

// A reservation of the first atoms of the simulated H100.
reservations::Record valid_record() {
    reservations::Record record{};
    static const gcx_device_info device = [] {
        gcx_device_info info = GCX_DEVICE_INFO_INIT;
        must(gcx_device_get_info(0, &info) == GCX_SUCCESS, "no device");
        return info;
    }();
    record.id = 0x0123456789abcdef;
    record.driver_version = 13000;
    record.simulated = 1;
    record.family = GCX_SM_FAMILY_COSCHEDULED;
    record.device_sm_count = 132;
    record.unit_count = 15;
    record.unit_size = 8;
    record.remainder_size = 12;
    record.mps = GCX_MPS_OFF;
    record.atoms[0] = 7;
    std::memcpy(record.uuid, device.uuid, sizeof record.uuid);
    reservations::seal(record);
    return record;
}

std::string bytes_of(const uint8_t* data, std::size_t size, const reservations::Record& valid) {
    if ((data[0] & kRaw) != 0)
        return {reinterpret_cast<const char*>(data + 1), size - 1};
    reservations::Record record = valid;
    auto* const text = reinterpret_cast<char*>(&record);
    Bytes bytes(data + 1, size - 1);
    while (!bytes.empty()) {
        const std::size_t width = std::size_t{1} << (bytes.next() & 3);
        const std::size_t at = (bytes.next() | (bytes.next() & 1U) << 8) % (sizeof record - width);
        const uint64_t number = uint64_t{bytes.word()} << 32 | bytes.word();
        std::memcpy(text + at, &number, width);
    }
    if ((data[0] & kSealed) != 0)
        reservations::seal(record);
    return std::string(record.bytes());
}

void check_listed(const gcx_live_reservation& reservation) {
    const uint32_t sms = fuzz::count_sms(reservation, reservation.atoms);
    must(reservation.waits <= 1 &&
             (reservation.waits == 1 ? sms == 0 : sms == reservation.sm_count),
         "wrong SM count");
    must(sms <= reservation.device_sm_count, "more SMs than the device has");
    must(reservation.family >= GCX_SM_FAMILY_COSCHEDULED &&
             reservation.family <= GCX_SM_FAMILY_MAX_CLUSTER &&
             reservation.mps >= GCX_MPS_UNKNOWN && reservation.mps <= GCX_MPS_ON,
         "an unknown family or MPS state");
    must(std::memchr(reservation.name, 0, sizeof reservation.name) != nullptr &&
             std::memchr(reservation.process_name, 0, sizeof reservation.process_name) != nullptr &&
             std::memchr(reservation.device_name, 0, sizeof reservation.device_name) != nullptr,
         "a name without a terminator");
}

void acquire_next_to(uint32_t listed, const gcx_live_reservation& other) {
    gcx_reservation reservation = nullptr;
    const gcx_result result = gcx_reservation_acquire(0, GCX_REST, nullptr, &reservation);
    if (listed == 0)
        must(result == GCX_ERROR_CORRUPT_FILE, "acquired next to a corrupt reservation");
    if (result != GCX_SUCCESS) {
        must(result == GCX_ERROR_CORRUPT_FILE || result == GCX_ERROR_ALREADY_ACQUIRED,
             "an unexpected error");
        return;
    }
    gcx_reservation_info info = GCX_RESERVATION_INFO_INIT;
    must(gcx_reservation_get_info(reservation, &info) == GCX_SUCCESS, "no info");
    for (std::size_t word = 0; word < 8; word++)
        must((info.atoms[word] & other.atoms[word]) == 0,
             "two reservations with an atom in common");
    // Requests within a reservation have a separate queue.
    must(other.waits == 0 || other.parent != 0, "acquired before a waiting request");
    must(gcx_reservation_release(reservation) == GCX_SUCCESS, "a reservation can't be released");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    if (size == 0)
        return -1;
    fuzz::begin_input("sim:h100@13.0");
    static const reservations::Record valid = valid_record();
    static const fuzz::HostileFile file(fuzz::folder() + "/" + reservations::file_name(valid),
                                        F_RDLCK);
    const std::string bytes = bytes_of(data, size, valid);
    fuzz::replace_contents(file.file, bytes.data(), bytes.size());
    std::array<gcx_live_reservation, 2> found{};
    uint32_t count = 0;
    must(gcx_reservation_list(nullptr, found.data(), 2, &count) == GCX_SUCCESS, "no list");
    must(count <= 1, "an unknown reservation");
    if (count == 1)
        check_listed(found[0]);
    gcx_reservation joined = nullptr;
    const gcx_result result = gcx_reservation_join(file.path.c_str(), &joined);
    must((result == GCX_SUCCESS) == (count == 1 && found[0].waits == 0),
         "a reservation that is not listed was joined");
    if (result == GCX_SUCCESS) {
        gcx_resource resource{};
        if (gcx_reservation_get_resource(joined, &resource) == GCX_SUCCESS) {
            gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
            must(gcx_resource_get_info(&resource, &info) == GCX_SUCCESS &&
                     info.sm_count == found[0].sm_count,
                 "a resource of other SMs");
        }
        must(gcx_reservation_release(joined) == GCX_SUCCESS, "a reservation can't be released");
    }
    if ((data[0] & kAcquires) != 0)
        acquire_next_to(count, found[0]);
    fuzz::close_library();
    return 0;
}
