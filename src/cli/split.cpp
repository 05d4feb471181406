// gcx plan shows what a split would give; gcx split creates the partitions, runs kernels in them
// and destroys them.
#include "cli/device.hpp"

#include <utility>

namespace gcx::cli {
namespace {

class Stopwatch {
  public:
    // Returns the microseconds since the start, or since the last call.
    double lap() {
        const double now = host_us();
        return now - std::exchange(start_, now);
    }

  private:
    double start_ = host_us();
};

// Microseconds.
struct Times {
    double context = 0;
    double stream = 0;
};

std::vector<Times> create(Partitions& partitions) {
    std::vector<Times> times;
    Stopwatch watch;
    for (std::size_t i = 0; i < partitions.list.size(); i++) {
        Partition& partition = partitions.list[i];
        partition.context = gcx::context(partitions.groups[i]);
        const double context = watch.lap();
        partition.stream = gcx::stream(partition.context);
        times.push_back({context, watch.lap()});
    }
    return times;
}

void add_groups(Report& report, const Layout& layout, const Partitions& partitions,
                const std::vector<Times>& times) {
    report.text += "partition  requested  SMs  seen  cluster    context us   stream us\n";
    std::vector<Json> groups;
    for (std::size_t i = 0; i < partitions.list.size(); i++) {
        const Partition& partition = partitions.list[i];
        const uint32_t cluster = partitions.groups[i].max_cluster_size();
        groups.push_back(Json::object()
                             .set("requested", layout.shares[i].json())
                             .set("sm_count", partition.sm_count)
                             .set("seen", partition.seen)
                             .set("max_cluster_size", cluster)
                             .set("context_us", times[i].context)
                             .set("stream_us", times[i].stream));
        report.text +=
            format("%-9s  %9s  %3u  %4zu  %7u  %12.1f %11.1f\n", partition_name(i).c_str(),
                   layout.shares[i].text.c_str(), partition.sm_count, partition.seen.size(),
                   cluster, times[i].context, times[i].stream);
    }
    report.text += format("remainder             %3u\n", partitions.remainder);
    report.text += "the first context's time includes creating the device's primary context\n";
    report.json.set("groups", Json::array(groups)).set("remainder", partitions.remainder);
}

// Destroys the handles, then the green contexts that gcx caches.
void destroy(Report& report, Partitions& partitions) {
    Stopwatch watch;
    for (Partition& partition : partitions.list) {
        partition.stream.close();
        partition.context.close();
    }
    set_cache_limit(0);
    const gcx_cache_stats stats = cache_stats();
    const double time = watch.lap();
    const bool released = stats.in_use == 0 && stats.cached == 0;
    if (!released)
        report.problems.push_back(
            format("%u green contexts are still in use and %u are cached after "
                   "all handles were destroyed",
                   stats.in_use, stats.cached));
    report.text +=
        format("%s in %.1f us; green contexts: %llu created, %llu destroyed, %u in use, %u "
               "cached\n",
               released ? "everything taken down" : "taken down in part", time,
               static_cast<unsigned long long>(stats.misses),
               static_cast<unsigned long long>(stats.evicted), stats.in_use, stats.cached);
    report.json.set("take_down_us", time)
        .set("released", released)
        .set("cache", Json::object()
                          .set("in_use", stats.in_use)
                          .set("cached", stats.cached)
                          .set("hits", stats.hits)
                          .set("misses", stats.misses)
                          .set("evicted", stats.evicted)
                          .set("lost", stats.lost));
}

} // namespace

Report run_plan(const Arguments& arguments) {
    const Layout layout = open_layout(arguments);
    const auto [sm_counts, remainder] =
        gcx::device(layout.device).sms().plan(layout.requests, layout.flags());

    Report report;
    report.text = banner(layout.driver) + layout.line() + "partition  requested  SMs\n";
    std::vector<Json> groups;
    for (std::size_t i = 0; i < sm_counts.size(); i++) {
        const uint32_t requested = layout.requests[i].sm_count;
        groups.push_back(
            Json::object().set("requested", layout.shares[i].json()).set("sm_count", sm_counts[i]));
        report.text += format("%-9s  %9s  %3u%s\n", partition_name(i).c_str(),
                              layout.shares[i].text.c_str(), sm_counts[i],
                              requested != rest && sm_counts[i] != requested ? "  rounded up" : "");
    }
    report.text += format("remainder             %3u\n", remainder);
    report.json = layout.json().set("groups", Json::array(groups)).set("remainder", remainder);
    return report;
}

Report run_split(const Arguments& arguments) {
    const Layout layout = open_layout(arguments);
    static_cast<void>(gcx::device(layout.device).sms()); // starts the driver

    Stopwatch watch;
    Partitions partitions = split_device(layout);
    const double split_us = watch.lap();
    const std::vector<Times> times = create(partitions);
    watch.lap();
    Report report;
    report.problems = verify_partitions(layout, partitions).problems;
    const double kernels_us = watch.lap();

    report.json = layout.json().set("split_us", split_us).set("kernels_us", kernels_us);
    report.text =
        banner(layout.driver) + layout.line() +
        format("split in %.1f us, kernels in all partitions in %.1f us\n", split_us, kernels_us);
    add_groups(report, layout, partitions, times);
    destroy(report, partitions);
    if (layout.driver.simulated != 0)
        report.text += std::string(simulated_times) + "\n";
    return report;
}

} // namespace gcx::cli
