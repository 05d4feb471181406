// Tests that a function that only reads has no side effect: it creates no context, no stream and no
// event, and changes no file.

#include "publish.hpp"
#include "reservations.hpp"

#include <csignal>
#include <functional>
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

void getters_change_nothing(const publish::Folder& folder) {
    uint32_t count = 0;
    int32_t least = 0;
    int32_t greatest = 0;
    gcx_resource whole{};
    auto device = sized<gcx_device_info>();
    auto driver = sized<gcx_driver_info>();
    auto queue = sized<gcx_queue_info>();
    auto resource = sized<gcx_resource_info>();
    auto stats = sized<gcx_cache_stats>();
    // Those that need an object are called below.
    const std::pair<const char*, std::function<gcx_result()>> getters[] = {
        {"device_get_count", [&] { return gcx_device_get_count(&least); }},
        {"device_get_info", [&] { return gcx_device_get_info(0, &device); }},
        {"device_get_resource",
         [&] { return gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole); }},
        {"device_get_stream_priority_range",
         [&] { return gcx_device_get_stream_priority_range(0, &least, &greatest); }},
        {"resource_get_info", [&] { return gcx_resource_get_info(&whole, &resource); }},
        {"resource_get_overlap", [&] { return gcx_resource_get_overlap(&whole, &whole, &count); }},
        {"resource_get_atom", [&] { return gcx_resource_get_atom(&whole, 0, &whole); }},
        {"driver_get_info", [&] { return gcx_driver_get_info(&driver); }},
        {"queue_get_info", [&] { return gcx_queue_get_info(&queue); }},
        {"cache_get_stats", [&] { return gcx_cache_get_stats(&stats); }},
        {"context_list", [&] { return gcx_context_list(-1, nullptr, 0, &count); }},
        {"lease_list", [&] { return gcx_lease_list(-1, nullptr, 0, &count); }},
        {"reservation_list", [&] { return gcx_reservation_list(nullptr, nullptr, 0, &count); }},
        {"published_process_list", [&] { return gcx_published_process_list(nullptr, 0, &count); }},
        {"published_lease_list", [&] { return gcx_published_lease_list(nullptr, 0, &count); }},
    };
    const gcx_sim_counts before = sim::counts();
    const auto files_before = files(folder);
    CHECK_EQ(files_before.size(), 2U);
    for (const auto& [name, call] : getters) {
        const int failed = check::failed;
        CHECK_OK(call());
        CHECK_EQ(left_behind(before, sim::counts()), std::string());
        CHECK(files(folder) == files_before);
        if (check::failed != failed)
            std::fprintf(stderr, "    in gcx_%s\n", name);
    }

    const Partition part(split(whole, {8}).groups[0]);
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(0, 24, nullptr, &lease));
    const gcx_sim_counts with_objects = sim::counts();
    auto context = sized<gcx_context_info>();
    auto stream = sized<gcx_stream_info>();
    auto leased = sized<gcx_lease_info>();
    CHECK_OK(gcx_context_get_info(part.context, &context));
    CHECK_OK(gcx_context_get_resource(part.context, GCX_RESOURCE_SM, &whole));
    CHECK_OK(gcx_stream_get_info(part.stream, &stream));
    CHECK_OK(gcx_stream_get_resource(part.stream, GCX_RESOURCE_SM, &whole));
    CHECK_OK(gcx_lease_get_info(lease, &leased));
    CHECK_OK(gcx_lease_get_resource(lease, &whole));
    const gcx_lease_size larger = {lease, 64, 0};
    gcx_resource planned{};
    CHECK_OK(gcx_lease_get_layout(&larger, 1, &planned, &whole));
    CHECK_EQ(left_behind(with_objects, sim::counts()), std::string());
    CHECK_OK(gcx_lease_release(lease));
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
