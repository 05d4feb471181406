// Tests that a function that only reads has no side effect: it creates no context, no stream and no
// event, and changes no file.

#include "calls.hpp"
#include "leases.hpp"
#include "publish.hpp"
#include "reservations.hpp"

#include <csignal>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace support;

namespace {

// The folder's files with their times, those of the processes that have ended too.
std::map<std::string, publish::fs::file_time_type> files(const publish::Folder& folder) {
    std::map<std::string, publish::fs::file_time_type> found;
    for (const auto& file : folder.files())
        found[file.string()] = publish::fs::last_write_time(file);
    return found;
}

// Leaves the files of a process that was killed.
void leave_dead_files() {
    const pid_t child = fork();
    if (child == 0) {
        publish::open_machine("h100@13.0");
        ::reservations::reserve(8);
        CHECK_OK(gcx_publish_start("killed"));
        raise(SIGKILL);
    }
    CHECK_EQ(waitpid(child, nullptr, 0), child);
}

// Calls the functions of these types that only read.
void read(const Objects& objects, unsigned uses) {
    const gcx_sim_counts before = sim::counts();
    Outputs out;
    for (const Call& call : all_calls()) {
        const std::string name = call.name;
        if ((call.uses & uses) == 0 || (call.uses & kEffects) != 0 ||
            (name.find("_get_") == name.npos && name.find("_list") == name.npos))
            continue;
        const gcx_result result = call.run(objects, out);
        if (!CHECK_OK(result) || !CHECK_EQ(left_behind(before, sim::counts()), std::string()))
            std::fprintf(stderr, "    in %s\n", call.name);
    }
}

void getters_change_nothing(const publish::Folder& folder) {
    const auto files_before = files(folder);
    CHECK_EQ(files_before.size(), 2U);
    const gcx_resource whole = whole_device();
    read({whole, whole}, kNothing | kResource);
    const gcx_sim_counts before = sim::counts();
    uint32_t count = 0;
    auto queue = sized<gcx_queue_info>();
    CHECK_OK(gcx_queue_get_info(&queue));
    CHECK_OK(gcx_lease_list(-1, nullptr, 0, &count));
    CHECK_OK(gcx_reservation_list(nullptr, nullptr, 0, &count));
    CHECK_OK(gcx_published_process_list(nullptr, 0, &count));
    CHECK_OK(gcx_published_lease_list(nullptr, 0, &count));
    CHECK_EQ(left_behind(before, sim::counts()), std::string());

    const Objects objects = Objects::make();
    read(objects, kContext | kStream | kEvent);
    objects.destroy();

    const gcx_lease lease = acquire(24);
    const gcx_sim_counts with_lease = sim::counts();
    CHECK_EQ(info_of(lease).sm_count, 24U);
    CHECK_EQ(sms(resource_of(lease)), 24U);
    const gcx_lease_size larger = {lease, 64, 0};
    gcx_resource planned{};
    gcx_resource remainder{};
    CHECK_OK(gcx_lease_get_layout(&larger, 1, &planned, &remainder));
    CHECK_EQ(left_behind(with_lease, sim::counts()), std::string());
    CHECK_OK(gcx_lease_release(lease));
    CHECK(files(folder) == files_before);
}

// What a killed process left is removed by the next one that acquires or publishes.
void dead_files_are_removed_by_writers(const publish::Folder& folder) {
    CHECK_EQ(files(folder).size(), 2U);
    ::reservations::release(::reservations::reserve(8));
    CHECK_EQ(files(folder).size(), 1U);
    CHECK_OK(gcx_publish_start("living"));
    CHECK_OK(gcx_publish_stop());
    CHECK_EQ(files(folder).size(), 0U);
}

} // namespace

int main() {
    for (const char* driver : {"12.4", "13.0", "13.1"}) {
        const publish::Folder folder;
        leave_dead_files();
        on_machine(std::string("h100@") + driver, [&] {
            getters_change_nothing(folder);
            dead_files_are_removed_by_writers(folder);
        });
    }
    return check::summary("getters");
}
