// Publishing leases for the user's other processes, and listing what those publish.

#include "api/library.hpp"
#include "api/result.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "ipc/published_leases.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

using namespace gcx;

namespace {

published::Head head_of(Library& lib, const char* name) {
    published::Head head{};
    head.process = random_bits();
    head.since_ms = milliseconds_since_1970();
    head.pid = getpid();
    head.driver_version = lib.driver.version();
    head.simulated = lib.driver.simulated() ? 1 : 0;
    head.device_count = std::min(static_cast<uint32_t>(lib.device_count()), published::kMaxDevices);
    for (uint32_t i = 0; i < head.device_count; i++) {
        gcx_device_info info = GCX_DEVICE_INFO_INIT;
        lib.device(static_cast<int32_t>(i)).get_info(info);
        published::DeviceRow& device = head.devices[i];
        device.sm_count = info.sm_count;
        std::memcpy(device.uuid, info.uuid, sizeof device.uuid);
        std::memcpy(device.name, info.name, sizeof device.name);
    }
    const char* const given = name != nullptr ? name : program_invocation_short_name;
    std::memcpy(head.name, given, strnlen(given, sizeof head.name - 1));
    return head;
}

gcx_published_process describe(const published::Process& published) {
    const published::Head& head = published.head;
    const published::Counters& counters = published.counters;
    gcx_published_process process{};
    process.process = head.process;
    process.since_ms = head.since_ms;
    process.pid = head.pid;
    process.simulated = static_cast<int32_t>(head.simulated);
    process.driver_version = head.driver_version;
    process.device_count = head.device_count;
    process.lease_count = head.row_count;
    process.unlisted_count = head.unlisted_count;
    process.library = counters.library;
    process.context_count = counters.contexts;
    process.contexts_created = counters.contexts_created;
    process.contexts_evicted = counters.contexts_evicted;
    process.resize_count = counters.resizes;
    process.wait_count = counters.waits;
    process.waited_ns = counters.waited_ns;
    std::memcpy(process.name, head.name, sizeof process.name);
    return process;
}

gcx_published_lease describe(const published::Head& head, const published::Row& row) {
    gcx_published_lease lease{};
    const published::DeviceRow& device = head.devices[row.device];
    lease.process = head.process;
    lease.id = row.id;
    lease.changes = row.changes;
    lease.pid = head.pid;
    lease.simulated = static_cast<int32_t>(head.simulated);
    lease.device = row.device;
    // problem_of() checked the family.
    lease.family = static_cast<gcx_sm_family>(
        row.family); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
    lease.flags = row.flags;
    lease.waits = row.waits;
    lease.sm_count = row.sm_count;
    lease.exclusive_sm_count = row.exclusive_sm_count;
    lease.stream_count = row.stream_count;
    lease.device_sm_count = device.sm_count;
    lease.atom_count = row.unit_count + (row.remainder_size != 0 ? 1 : 0);
    lease.atom_sm_count = row.unit_size;
    lease.last_atom_sm_count = row.remainder_size != 0 ? row.remainder_size : row.unit_size;
    for (std::size_t word = 0; word < AtomSet::kWords; word++) {
        lease.exclusive_atoms[word] = row.exclusive[word];
        lease.shared_atoms[word] = row.shared[word];
    }
    std::memcpy(lease.name, row.name, sizeof lease.name);
    std::memcpy(lease.process_name, head.name, sizeof lease.process_name);
    std::memcpy(lease.device_name, device.name, sizeof lease.device_name);
    std::memcpy(lease.device_uuid, device.uuid, sizeof lease.device_uuid);
    return lease;
}

} // namespace

void gcx::publish_if_requested(Library& lib) noexcept {
    const char* const requested = secure_getenv("GCX_PUBLISH");
    if (requested == nullptr || *requested == '\0' || std::string_view(requested) == "0")
        return;
    try {
        lib.leases.publish(head_of(lib, std::string_view(requested) == "1" ? nullptr : requested));
    } catch (const Error& error) {
        log::write(GCX_LOG_WARNING,
                   "GCX_PUBLISH is set, and leases are not published: " + error.message);
    } catch (const std::exception& error) {
        log::write(GCX_LOG_WARNING,
                   std::string("GCX_PUBLISH is set, and leases are not published: ") +
                       error.what());
    }
}

gcx_result gcx_publish_start(const char* name) {
    GCX_BODY({
        if (name != nullptr && strnlen(name, GCX_MAX_PROCESS_NAME) == GCX_MAX_PROCESS_NAME)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("name has more than %u bytes", GCX_MAX_PROCESS_NAME - 1));
        Library& lib = library();
        lib.leases.publish(head_of(lib, name));
    });
}

gcx_result gcx_publish_stop(void) {
    GCX_BODY({
        if (library_answers())
            library().leases.publisher().stop();
    });
}

gcx_result gcx_published_process_list(gcx_published_process* processes, uint32_t capacity,
                                      uint32_t* count) {
    GCX_BODY({
        check_list(processes, "processes", capacity, count);
        std::vector<gcx_published_process> found;
        for (const published::Process& process : published::read_all())
            found.push_back(describe(process));
        give_list(found, "processes", processes, capacity, count);
    });
}

gcx_result gcx_published_lease_list(gcx_published_lease* leases, uint32_t capacity,
                                    uint32_t* count) {
    GCX_BODY({
        check_list(leases, "leases", capacity, count);
        std::vector<gcx_published_lease> found;
        for (const published::Process& process : published::read_all()) {
            for (const published::Row& row : process.rows)
                found.push_back(describe(process.head, row));
        }
        give_list(found, "leases", leases, capacity, count);
    });
}
