// gcx split: makes the partitions, runs a kernel in each, and takes everything down again.
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/layout.hpp"
#include "cli/partition.hpp"
#include "cli/report.hpp"
#include "cli/stopwatch.hpp"
#include "cli/text.hpp"

namespace gcx::cli {
namespace {

// Of a partition; times in microseconds.
struct Measured {
    double context = 0;
    double stream = 0;
    double kernel = 0;
    uint32_t max_cluster_size = 0; // blocks
};

std::vector<Measured> make_and_run(const Split& made, std::vector<Partition>& partitions) {
    std::vector<Measured> measured(partitions.size());
    Stopwatch watch;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        watch.lap();
        check(gcx_context_create(&made.groups[i], 1, nullptr, partitions[i].context.out()));
        measured[i].context = watch.lap();
        check(gcx_stream_create(partitions[i].context.get(), nullptr, partitions[i].stream.out()));
        measured[i].stream = watch.lap();
    }
    for (std::size_t i = 0; i < partitions.size(); i++) {
        watch.lap();
        probe(partitions[i].stream);
        measured[i].kernel = watch.lap();
        check(gcx_stream_get_max_cluster_size(partitions[i].stream.get(),
                                              &measured[i].max_cluster_size));
    }
    return measured;
}

// Destroys the handles, then the green contexts that gcx would keep for the next user.
gcx_cache_stats take_down(std::vector<Partition>& partitions) {
    for (Partition& partition : partitions) {
        partition.stream.destroy();
        partition.context.destroy();
    }
    check(gcx_cache_set_limit(0));
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    check(gcx_cache_get_stats(&stats));
    return stats;
}

void add_groups(Report& report, const Layout& layout, const Split& made,
                const std::vector<Partition>& partitions, const std::vector<Measured>& measured) {
    report.text += "partition  asked  SMs  seen  cluster    context us   stream us   kernel us\n";
    Json groups = Json::array();
    for (std::size_t i = 0; i < partitions.size(); i++) {
        groups.add(Json::object()
                       .set("requested", count_json(layout.requests[i].sm_count))
                       .set("sm_count", made.sm_counts[i])
                       .set("seen", partitions[i].seen)
                       .set("max_cluster_size", measured[i].max_cluster_size)
                       .set("context_us", measured[i].context)
                       .set("stream_us", measured[i].stream)
                       .set("kernel_us", measured[i].kernel));
        report.text +=
            format("%-9s  %5s  %3u  %4zu  %7u  %12.1f %11.1f %11.1f\n", partition_name(i).c_str(),
                   count_text(layout.requests[i].sm_count).c_str(), made.sm_counts[i],
                   partitions[i].seen.size(), measured[i].max_cluster_size, measured[i].context,
                   measured[i].stream, measured[i].kernel);
    }
    report.text += format("remainder         %3u\n", made.remainder_sm_count);
    report.text += "the first context's time includes making the device's primary context\n";
    report.json.set("groups", std::move(groups)).set("remainder", made.remainder_sm_count);
}

void add_take_down(Report& report, const gcx_cache_stats& stats, double microseconds) {
    const bool released = stats.in_use == 0 && stats.kept == 0;
    if (!released)
        report.problems.push_back(format("%u green contexts are still in use and %u are kept after "
                                         "all handles were destroyed",
                                         stats.in_use, stats.kept));
    report.text += format("%s in %.1f us; green contexts: %llu made, %llu destroyed, %u in use, %u "
                          "kept\n",
                          released ? "everything taken down" : "taken down in part", microseconds,
                          static_cast<unsigned long long>(stats.misses),
                          static_cast<unsigned long long>(stats.evicted), stats.in_use, stats.kept);
    report.json.set("take_down_us", microseconds)
        .set("released", released)
        .set("cache", Json::object()
                          .set("in_use", stats.in_use)
                          .set("kept", stats.kept)
                          .set("hits", stats.hits)
                          .set("misses", stats.misses)
                          .set("evicted", stats.evicted)
                          .set("lost", stats.lost));
}

} // namespace

Report run_split(const Arguments& arguments) {
    const Layout layout = read_layout(arguments);
    const gcx_driver_info driver = open_driver(arguments);
    const gcx_resource whole = device_sms(layout.device);

    Stopwatch watch;
    const Split made = split(whole, layout);
    const double split_us = watch.lap();
    std::vector<Partition> partitions(made.groups.size());
    const std::vector<Measured> measured = make_and_run(made, partitions);

    Report report;
    report.problems = verify(layout, made, partitions).problems;
    report.json = report_start(driver);
    set_layout(report.json, layout);
    report.json.set("split_us", split_us);
    report.text = banner(driver) + layout_line(layout) + format("split in %.1f us\n", split_us);
    add_groups(report, layout, made, partitions, measured);
    watch.lap();
    const gcx_cache_stats stats = take_down(partitions);
    add_take_down(report, stats, watch.lap());
    report.text += times_note(driver);
    return report;
}

} // namespace gcx::cli
