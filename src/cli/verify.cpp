// gcx verify: shows on which SMs each partition's kernels really run.
#include "cli/device.hpp"
#include "cli/sm_map.hpp"
#include "interpose/exec_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>

namespace gcx::cli {
namespace {

// The partition of a device that a gcx exec gives to this process.
struct OuterPartition {
    uint32_t planned_sm_count = 0;
    uint32_t visible_sm_count = 0; // SMs that this process can divide
    std::vector<uint32_t> seen;    // SMs that a kernel saw in all of it, ascending

    // Whether the process has more SMs than the plan in its environment names.
    bool left() const { return visible_sm_count > planned_sm_count; }

    std::string problem(int32_t device) const {
        if (left())
            return format(
                "%s gives this process %u SMs of device %d, and it has %u: it isn't in the "
                "partition of gcx exec. A program that gcx exec runs must leave LD_AUDIT in the "
                "environment of programs that it starts",
                interpose::kPlanVariable, planned_sm_count, device, visible_sm_count);
        if (seen.size() != visible_sm_count)
            return format("the partition of gcx exec has %u SMs of device %d, and kernels in it "
                          "were seen on %zu (%s)",
                          visible_sm_count, device, seen.size(), ranges(seen).c_str());
        return "";
    }

    // numbers: whether SM numbers are the device's.
    std::string text(bool numbers) const {
        if (left())
            return "";
        return format("inside gcx exec: this process has %s of the device%s%s\n",
                      count_of(visible_sm_count, "SM").c_str(), numbers ? ": " : "",
                      numbers ? ranges(seen).c_str() : "");
    }

    Json json() const {
        return Json::object()
            .set("planned", planned_sm_count)
            .set("sm_count", visible_sm_count)
            .set("seen", seen);
    }
};

// Returns the partition that this process runs in, and runs a kernel in it. Returns nothing if no
// gcx exec divides the device.
std::optional<OuterPartition> outer_partition(int32_t device) {
    const char* const text = std::getenv(interpose::kPlanVariable);
    if (text == nullptr)
        return std::nullopt;
    interpose::Plan plan;
    try {
        plan = interpose::read_plan(text);
    } catch (const interpose::PlanError&) {
        return std::nullopt; // inside gcx exec, no driver opens with such a plan
    }
    const interpose::DevicePart* const part = plan.find(gcx::device(device).info().uuid);
    if (part == nullptr)
        return std::nullopt;
    const resource all = gcx::device(device).sms();
    OuterPartition outer;
    outer.planned_sm_count = part->sm_count;
    outer.visible_sm_count = all.sm_count();
    if (!outer.left())
        outer.seen = stream(context(all)).sm_ids();
    return outer;
}

SmMap map_of(const Layout& layout, const Partitions& partitions,
             const std::optional<OuterPartition>& outer, bool ok) {
    SmMap map;
    map.title = count_of(partitions.list.size(), "partition") + " of " +
                count_of(partitions.available, "SM") + (ok ? ": as promised" : ": NOT as promised");
    map.device =
        gcx::device(layout.device).name() + ", CUDA " + version_text(layout.driver.version);
    if (outer && !outer->left())
        map.within = outer->seen;
    else
        map.sm_count = partitions.available;
    for (std::size_t i = 0; i < partitions.list.size(); i++) {
        const Partition& partition = partitions.list[i];
        map.partitions.push_back(
            {partition_name(i), partition.requested, partition.sm_count, partition.seen});
    }
    return map;
}

// Adds what contradicts the gcx exec around this process.
void compare_with_outer(Verification& found, const OuterPartition& outer, const Layout& layout,
                        const Partitions& partitions) {
    if (std::string problem = outer.problem(layout.device); !problem.empty())
        return found.add(std::move(problem));
    for (std::size_t i = 0; i < partitions.list.size() && !found.virtual_sm_numbers; i++) {
        std::vector<uint32_t> outside;
        std::ranges::set_difference(partitions.list[i].seen, outer.seen,
                                    std::back_inserter(outside));
        if (!outside.empty())
            found.add(format("partition %s: its kernels were seen outside of the partition of gcx "
                             "exec: %s",
                             partition_name(i).c_str(), ranges(outside).c_str()));
    }
}

// Names what has higher SM numbers than SMs: programs see the count, and kernels the numbers. Under
// MPS the numbers begin with 0, so there are none.
std::string numbers_beyond_counts(const Partitions& partitions,
                                  const std::optional<OuterPartition>& outer) {
    std::string text;
    const auto add = [&](const std::string& name, uint32_t sm_count, const auto& seen) {
        if (!seen.empty() && seen.back() >= sm_count)
            text += format("%s%u in %s", text.empty() ? "" : ", ", seen.back(), name.c_str());
    };
    if (outer && !outer->left())
        add("this process", outer->visible_sm_count, outer->seen);
    for (std::size_t i = 0; i < partitions.list.size(); i++)
        add(partition_name(i), partitions.list[i].sm_count, partitions.list[i].seen);
    return text.empty() ? ""
                        : "%smid goes up to " + text +
                              ": kernels must not index an array of a partition's SM count by it\n";
}

std::string conclusion(const Verification& found, bool inside) {
    if (found.problem_count != 0)
        return "FAILED: " + count_of(found.problem_count, "problem") + "\n";
    if (found.virtual_sm_numbers)
        return "ok, as far as can be seen: each partition ran on as many SMs as promised. Under "
               "MPS SM numbers\nare virtual, each partition's from 0: they don't tell which SMs "
               "those are, nor whether another\npartition or process has them\n";
    if (inside)
        return "ok: each partition ran on as many SMs as promised, no SM is in two, and all are of "
               "the\npartition of gcx exec\n";
    return "ok: each partition ran on as many SMs as promised, and no SM is in two\n";
}

// Replaces the map where SM numbers are virtual.
std::string legends(const SmMap& map) {
    std::string text;
    for (const MapPartition& partition : map.partitions)
        text += "  " + partition.name + "  " + SmMap::legend(partition) + "\n";
    return text;
}

Json json_of(const Layout& layout, const Partitions& partitions, const Verification& found,
             const std::optional<OuterPartition>& outer) {
    const auto group = [&](const Partition& partition) {
        const auto index = static_cast<std::size_t>(&partition - partitions.list.data());
        return Json::object()
            .set("requested", layout.shares[index].json())
            .set("sm_count", partition.sm_count)
            .set("seen", partition.seen);
    };
    return layout.json()
        .set("ok", found.problems.empty())
        .set("groups", Json::array(partitions.list, group))
        .set("overlap", found.virtual_sm_numbers ? Json() : Json(found.overlap_count))
        .set("remainder", partitions.remainder)
        .set("problems", found.problems)
        .set("virtual_sm_numbers", found.virtual_sm_numbers)
        .set("shared_by_all", found.shared_by_all)
        .set("inside_exec", outer ? outer->json() : Json());
}

} // namespace

Report run_verify(const Arguments& arguments) {
    const auto svg = arguments.file("--svg", "sms.svg");
    const Layout layout = open_layout(arguments);
    if (svg && gcx::device(layout.device).info().mps == mps_state::on)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      "--svg: under MPS SM numbers are virtual, so there is no map of SMs to draw; "
                      "gcx verify without it counts them");
    const std::optional<OuterPartition> outer = outer_partition(layout.device);
    Partitions partitions = split_device(layout);
    for (std::size_t i = 0; i < partitions.list.size(); i++) {
        partitions.list[i].context = gcx::context(partitions.groups[i]);
        partitions.list[i].stream = gcx::stream(partitions.list[i].context);
    }
    Verification found = verify_partitions(layout, partitions);
    // SMs that all partitions of the process share are a problem that is named already.
    if (outer && found.shared_by_all.empty())
        compare_with_outer(found, *outer, layout, partitions);

    Report report;
    report.problems = found.problems;
    const SmMap map = map_of(layout, partitions, outer, found.problem_count == 0);
    report.json = json_of(layout, partitions, found, outer);
    report.text = banner(layout.driver) + layout.line();
    if (outer)
        report.text += outer->text(!found.virtual_sm_numbers);
    report.text += found.virtual_sm_numbers ? legends(map) : terminal_map(map, wants_colours());
    report.text += numbers_beyond_counts(partitions, outer);
    report.text += conclusion(found, outer.has_value());
    if (svg) {
        write_file(*svg, svg_map(map));
        report.text += "wrote " + visible(*svg) + "\n";
        report.json.set("svg", *svg);
    }
    return report;
}

} // namespace gcx::cli
