#include "ipc/reservation_record.hpp"

#include "base/error.hpp"

#include <cstring>

namespace gcx::reservations {
namespace {

constexpr std::size_t kUuidDigits = 32;
constexpr std::size_t kIdDigits = 16;

// FNV-1a detects damage; it does not prevent forgery.
uint64_t checksum_of(const Record& record) {
    constexpr std::size_t kFirst = offsetof(Record, version);
    uint64_t sum = 0xcbf29ce484222325;
    for (const char byte : record.bytes().substr(kFirst))
        sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return sum;
}

template <std::size_t size>
bool is_terminated(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

bool is_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string problem_of_atoms(const Record& record) {
    if (record.unit_count == 0 || record.unit_count >= AtomSet::kCapacity ||
        record.unit_size == 0 || record.unit_size > GCX_MAX_SMS ||
        record.remainder_size > GCX_MAX_SMS || record.device_sm_count > GCX_MAX_SMS)
        return "corrupt record: impossible atoms";
    const AtomShape shape = record.shape();
    if (shape.sm_count(shape.all()) > record.device_sm_count)
        return "corrupt record: its atoms have more SMs than the device";
    if (!(record.set() - shape.all()).empty() || record.set().empty() != (record.waits != 0))
        return "corrupt record: its atoms are not those of the family";
    return "";
}

} // namespace

void seal(Record& record) {
    record.magic = kMagic;
    record.version = kVersion;
    record.checksum = checksum_of(record);
}

std::string problem_of(const Record& record, std::string_view name) {
    if (record.magic != kMagic)
        return "it is no reservation of gcx";
    if (record.version != kVersion)
        return format("another version of gcx wrote it: its layout is %u, this version reads %u",
                      record.version, kVersion);
    if (record.checksum != checksum_of(record))
        return "corrupt record: checksum mismatch";
    if (record.waits > 1 || record.simulated > 1 || record.mps > GCX_MPS_ON ||
        !(record.mps_thread_percentage >= 0 && record.mps_thread_percentage <= 100) ||
        (record.requested > GCX_MAX_SMS && record.requested != GCX_REST) || record.inherit > 1 ||
        record.parent == record.id || !is_terminated(record.name) ||
        !is_terminated(record.process_name) || !is_terminated(record.device_name))
        return "corrupt record: values out of range";
    if (record.family < GCX_SM_FAMILY_COSCHEDULED || record.family > GCX_SM_FAMILY_MAX_CLUSTER)
        return "corrupt record: it is of no family that has reservations";
    if (file_name(record) != name)
        return "it was renamed or copied: it says that it is " + file_name(record);
    return problem_of_atoms(record);
}

std::string prefix_of(const uint8_t (&uuid)[16], bool simulated) {
    std::string text = simulated ? kSimulatedPrefix : kPrefix;
    for (const uint8_t byte : uuid)
        text += format("%02x", byte);
    return text + "-";
}

std::string file_name(const Record& record) {
    return prefix_of(record.uuid, record.simulated != 0) +
           format("%016llx", static_cast<unsigned long long>(record.id));
}

bool is_file_name(std::string_view name) {
    if (name.starts_with(kSimulatedPrefix))
        name.remove_prefix(std::strlen(kSimulatedPrefix));
    else if (name.starts_with(kPrefix))
        name.remove_prefix(std::strlen(kPrefix));
    else
        return false;
    return name.size() == kUuidDigits + 1 + kIdDigits && is_hex(name.substr(0, kUuidDigits)) &&
           name[kUuidDigits] == '-' && is_hex(name.substr(kUuidDigits + 1));
}

} // namespace gcx::reservations
