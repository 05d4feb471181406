// Interprets an input as the file of published leases of a live process. The file is refused with a
// warning, or the listed leases are consistent. The first byte selects the raw bytes, or changes of
// a valid file, each an offset, a width and a number.

#include "bytes.hpp"
#include "harness.hpp"

#include "ipc/published_leases.hpp"

#include <gcx.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

using fuzz::Bytes;
using fuzz::must;
namespace published = gcx::published;

namespace {

constexpr uint32_t kMaxLeases = published::kMaxRows;

std::string leases_path() {
    const std::string user = fuzz::folder() + "/user-" + std::to_string(geteuid());
    must(mkdir(user.c_str(), 0700) == 0, "the folder can't be made");
    return user + "/leases-0123456789abcdef";
}

published::File valid_file() {
    published::File file{};
    file.head.magic = published::kMagic;
    file.head.version = published::kVersion;
    file.head.device_count = 2;
    for (published::DeviceRow& device : file.head.devices)
        device.sm_count = 132;
    file.head.row_count = 4;
    for (uint32_t i = 0; i < file.head.row_count; i++) {
        published::Row& row = file.rows[i];
        row.id = i + 1;
        row.family = GCX_SM_FAMILY_COSCHEDULED;
        row.unit_count = 15;
        row.unit_size = 8;
        row.remainder_size = 12;
        row.flags = i / 2;
        row.sm_count = 16;
        row.exclusive_sm_count = 16 - 8 * (i / 2);
        row.exclusive[0] = i < 2 ? uint64_t{3} << (2 * i) : uint64_t{1} << (4 + i);
        row.shared[0] = i < 2 ? 0 : 1U << 10;
    }
    return file;
}

std::string bytes_of(const uint8_t* data, std::size_t size) {
    if ((data[0] & 1) != 0)
        return {reinterpret_cast<const char*>(data + 1), size - 1};
    static const published::File valid = valid_file();
    std::string text(reinterpret_cast<const char*>(&valid), sizeof valid);
    Bytes bytes(data + 1, size - 1);
    while (!bytes.empty()) {
        const std::size_t width = std::size_t{1} << (bytes.next() & 3);
        const std::size_t row = bytes.next() % 6; // 5 means the header
        const std::size_t begin =
            row == 5 ? 0 : offsetof(published::File, rows) + row * sizeof(published::Row);
        const std::size_t at = begin + bytes.next();
        const uint64_t number = uint64_t{bytes.word()} << 32 | bytes.word();
        std::memcpy(&text[at], &number, width);
    }
    return text;
}

void check_listed(const std::vector<gcx_published_lease>& leases) {
    for (const gcx_published_lease& lease : leases) {
        must(std::memchr(lease.name, 0, sizeof lease.name) != nullptr,
             "a name without a terminator");
        must(lease.family >= GCX_SM_FAMILY_COSCHEDULED && lease.family <= GCX_SM_FAMILY_MAX_CLUSTER,
             "an unknown family");
        const uint32_t own = fuzz::count_sms(lease, lease.exclusive_atoms);
        const uint32_t all = own + fuzz::count_sms(lease, lease.shared_atoms);
        must(lease.waits <= 1 && (lease.waits == 1 ? all == 0 : all == lease.sm_count),
             "wrong SM count");
        must(own == lease.exclusive_sm_count && all <= lease.device_sm_count,
             "wrong exclusive SM count");
        for (const gcx_published_lease& other : leases) {
            const bool unrelated =
                &other == &lease || other.device != lease.device || other.family != lease.family;
            for (std::size_t word = 0; word < 8 && !unrelated; word++)
                must((lease.exclusive_atoms[word] &
                      (other.exclusive_atoms[word] | other.shared_atoms[word])) == 0,
                     "two leases with an atom in common");
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    if (size == 0)
        return -1;
    fuzz::begin_input("/nonexistent"); // no driver is needed
    static const fuzz::HostileFile file(leases_path(), F_WRLCK);
    const std::string bytes = bytes_of(data, size);
    fuzz::replace_contents(file.file, bytes.data(), bytes.size());
    std::vector<gcx_published_lease> leases(kMaxLeases);
    uint32_t count = 0;
    must(gcx_published_lease_list(leases.data(), kMaxLeases, &count) == GCX_SUCCESS, "no list");
    must(count <= kMaxLeases, "more leases than a process has");
    leases.resize(count);
    check_listed(leases);
    gcx_published_process process;
    must(gcx_published_process_list(&process, 1, &count) == GCX_SUCCESS && count <= 1, "no list");
    must(count == 1 || leases.empty(), "leases without a process");
    must(count == 0 || std::memchr(process.name, 0, sizeof process.name) != nullptr,
         "a name without a terminator");
    return 0;
}
