// gcx verify: shows on which SMs each partition's kernels really run.
#include "cli/around.hpp"
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/files.hpp"
#include "cli/layout.hpp"
#include "cli/mps.hpp"
#include "cli/partition.hpp"
#include "cli/report.hpp"
#include "cli/sm_map.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace gcx::cli {
namespace {

// All contexts are alive before the first probe, as they would be in use.
std::vector<Partition> make(const Split& made) {
    std::vector<Partition> partitions(made.groups.size());
    for (std::size_t i = 0; i < partitions.size(); i++) {
        check(gcx_context_create(&made.groups[i], 1, nullptr, partitions[i].context.out()));
        check(gcx_stream_create(partitions[i].context.get(), nullptr, partitions[i].stream.out()));
    }
    return partitions;
}

SmMap map_of(const gcx_driver_info& driver, const Layout& layout, const Split& made,
             const std::vector<Partition>& partitions, const std::optional<AroundPartition>& around,
             bool ok) {
    const gcx_device_info device = device_info(layout.device);
    const uint32_t sm_count = resource_info(device_sms(layout.device)).sm_count;
    SmMap map;
    map.title = count_of(partitions.size(), "partition") + " of " + count_of(sm_count, "SM") +
                (ok ? ": as promised" : ": NOT as promised");
    map.device = std::string(device.name) + ", CUDA " + version_text(driver.version);
    if (around && !around->left())
        map.within = around->seen;
    else
        map.sm_count = sm_count;
    for (std::size_t i = 0; i < partitions.size(); i++)
        map.partitions.push_back({partition_name(i), layout.requests[i].sm_count, made.sm_counts[i],
                                  partitions[i].seen});
    return map;
}

void fill_json(Report& report, const Layout& layout, const Split& made,
               const std::vector<Partition>& partitions, const Proof& proof) {
    Json groups = Json::array();
    for (std::size_t i = 0; i < partitions.size(); i++)
        groups.add(Json::object()
                       .set("requested", count_json(layout.requests[i].sm_count))
                       .set("sm_count", made.sm_counts[i])
                       .set("seen", partitions[i].seen));
    Json problems = Json::array();
    for (const std::string& problem : report.problems)
        problems.add(problem);
    report.json.set("ok", report.problems.empty());
    set_layout(report.json, layout);
    report.json.set("groups", std::move(groups))
        .set("overlap", proof.virtual_sm_numbers ? Json() : Json(proof.overlap_count))
        .set("remainder", made.remainder_sm_count)
        .set("problems", std::move(problems))
        .set("virtual_sm_numbers", proof.virtual_sm_numbers)
        .set("shared_by_all", proof.shared_by_all);
}

// SMs that partitions were seen on, and the gcx exec around this process was not.
std::vector<std::string> problems_outside(const AroundPartition& around,
                                          const std::vector<Partition>& partitions) {
    std::vector<std::string> problems;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        std::vector<uint32_t> outside;
        std::ranges::set_difference(partitions[i].seen, around.seen, std::back_inserter(outside));
        if (!outside.empty())
            problems.push_back(
                format("partition %s: its kernels were seen outside of the partition "
                       "of gcx exec: %s",
                       partition_name(i).c_str(), ranges(outside).c_str()));
    }
    return problems;
}

std::vector<std::string> around_problems(const std::optional<AroundPartition>& around,
                                         const Layout& layout,
                                         const std::vector<Partition>& partitions,
                                         bool virtual_numbers) {
    if (!around)
        return {};
    if (std::string problem = around_problem(*around, layout.device); !problem.empty())
        return {std::move(problem)};
    return virtual_numbers ? std::vector<std::string>() : problems_outside(*around, partitions);
}

std::string conclusion(std::size_t problems, bool inside, bool virtual_numbers) {
    if (problems != 0)
        return "FAILED: " + count_of(problems, "problem") + "\n";
    if (virtual_numbers)
        return "ok, as far as can be seen: each partition ran on as many SMs as promised. Under "
               "MPS "
               "SM numbers\nare virtual, each partition's from 0: they don't tell which SMs those "
               "are, nor whether another\npartition or process has them\n";
    if (inside)
        return "ok: each partition ran on as many SMs as promised, no SM is in two, and all are of "
               "the\npartition of gcx exec\n";
    return "ok: each partition ran on as many SMs as promised, and no SM is in two\n";
}

// In the place of a map, which virtual numbers can't fill.
std::string legends(const SmMap& map) {
    std::string text;
    for (const MapPartition& partition : map.partitions)
        text += "  " + partition.name + "  " + SmMap::legend(partition) + "\n";
    return text;
}

} // namespace

Report run_verify(const Arguments& arguments) {
    const Layout layout = read_layout(arguments);
    const auto svg = arguments.get("--svg");
    if (svg && svg->empty())
        throw UsageError("--svg is empty; give the file to write, e.g. --svg sms.svg");
    const gcx_driver_info driver = open_driver(arguments);
    if (svg && virtual_sm_numbers(layout.device))
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      "--svg: under MPS SM numbers are virtual, so there is no map of SMs to draw; "
                      "gcx verify without it counts them");
    const std::optional<AroundPartition> around = partition_around(layout.device);
    const Split made = split(device_sms(layout.device), layout);
    std::vector<Partition> partitions = make(made);
    Proof proof = verify(layout, made, partitions);
    const bool virtual_numbers = proof.virtual_sm_numbers;
    // SMs that all partitions of the process share are named already.
    if (proof.shared_by_all.empty()) {
        for (std::string& problem : around_problems(around, layout, partitions, virtual_numbers))
            proof.add(std::move(problem));
    }

    Report report;
    report.problems = proof.problems;
    const SmMap map = map_of(driver, layout, made, partitions, around, proof.problem_count == 0);
    report.json = report_start(driver);
    fill_json(report, layout, made, partitions, proof);
    report.json.set("inside_exec", around_json(around));
    report.text = banner(driver) + layout_line(layout) +
                  (around ? around_text(*around, !virtual_numbers) : "") +
                  (virtual_numbers ? legends(map) : terminal_map(map, wants_colours()));
    report.text += conclusion(proof.problem_count, around.has_value(), virtual_numbers);
    if (svg) {
        write_file(*svg, svg_map(map));
        report.text += "wrote " + visible(*svg) + "\n";
        report.json.set("svg", *svg);
    }
    return report;
}

} // namespace gcx::cli
