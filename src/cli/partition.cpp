#include "cli/partition.hpp"

#include "cli/mps.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <iterator>

namespace gcx::cli {
namespace {

// Compute capability 9.x, see gcx_device_get_shared_sms.
constexpr uint32_t kSharedSms = 2;

bool may_share_sms(const Layout& layout) {
    return device_info(layout.device).compute_capability_major == 9;
}

bool has(const std::vector<uint32_t>& sms, uint32_t sm) {
    return std::ranges::binary_search(sms, sm);
}

// How many SMs a partition was seen on, those that all share aside where they are more than it has.
std::size_t count_seen(const Partition& partition, uint32_t promised,
                       const std::vector<uint32_t>& shared) {
    const std::size_t seen = partition.seen.size();
    if (seen <= promised)
        return seen;
    return seen - static_cast<std::size_t>(std::ranges::count_if(
                      partition.seen, [&](uint32_t sm) { return has(shared, sm); }));
}

void check_counts(std::vector<std::string>& problems, const Layout& layout, const Split& made,
                  std::size_t index, const Partition& partition,
                  const std::vector<uint32_t>& shared) {
    const std::string name = "partition " + partition_name(index);
    const uint32_t asked = layout.requests[index].sm_count;
    const uint32_t promised = made.sm_counts[index];
    if (asked != GCX_REST && (promised < asked || (layout.exact && promised != asked)))
        problems.push_back(
            format("%s: %u SMs were asked for, the split gives %u", name.c_str(), asked, promised));

    gcx_context_info context = GCX_CONTEXT_INFO_INIT;
    check(gcx_context_get_info(partition.context.get(), &context));
    if (context.sm_count != promised)
        problems.push_back(format("%s: the split gives %u SMs, its context has %u", name.c_str(),
                                  promised, context.sm_count));

    gcx_stream_info stream = GCX_STREAM_INFO_INIT;
    check(gcx_stream_get_info(partition.stream.get(), &stream));
    if (stream.sm_count != promised)
        problems.push_back(format("%s: the split gives %u SMs, its stream has %u", name.c_str(),
                                  promised, stream.sm_count));

    const std::size_t seen = count_seen(partition, promised, shared);
    if (seen < promised)
        problems.push_back(
            format("%s: its kernels were to run on %u SMs and were seen on %zu (%s); "
                   "if other work keeps the GPU busy, stop it and verify again",
                   name.c_str(), promised, partition.seen.size(), ranges(partition.seen).c_str()));
    if (seen > promised)
        problems.push_back(
            format("%s: its kernels were to run on %u SMs and were seen on %zu (%s)%s",
                   name.c_str(), promised, partition.seen.size(), ranges(partition.seen).c_str(),
                   may_share_sms(layout) && seen == promised + kSharedSms
                       ? "; so many more is what a loaded module with dynamic parallelism does"
                       : ""));
}

std::vector<std::string> find_overlaps(const std::vector<Partition>& partitions,
                                       const std::vector<uint32_t>& shared) {
    std::map<std::string, std::vector<uint32_t>> by_names;
    for (const auto& [sm, names] : shared_sms(partitions)) {
        if (!has(shared, sm))
            by_names[names].push_back(sm);
    }
    std::vector<std::string> overlaps;
    overlaps.reserve(by_names.size());
    for (const auto& [names, sms] : by_names)
        overlaps.push_back(format("partitions %s share %s: %s", names.c_str(),
                                  count_of(sms.size(), "SM").c_str(), ranges(sms).c_str()));
    return overlaps;
}

} // namespace

std::vector<uint32_t> probe(const Stream& stream) {
    std::vector<uint32_t> sms(GCX_MAX_SMS);
    uint32_t count = 0;
    check(gcx_stream_probe_sms(stream.get(), sms.data(), GCX_MAX_SMS, &count));
    sms.resize(count);
    return sms;
}

std::vector<uint32_t> shared_by_all(const Layout& layout, const Split& made,
                                    const std::vector<Partition>& partitions) {
    bool more = false;
    for (std::size_t i = 0; i < partitions.size(); i++)
        more = more || partitions[i].seen.size() > made.sm_counts[i];
    if (!more || virtual_sm_numbers(layout.device))
        return {};
    std::vector<uint32_t> sms(GCX_MAX_SMS);
    uint32_t count = 0;
    check(gcx_device_get_shared_sms(layout.device, sms.data(), GCX_MAX_SMS, &count));
    sms.resize(count);
    return sms;
}

std::vector<std::string> find_problems(const Layout& layout, const Split& made,
                                       const std::vector<Partition>& partitions,
                                       const std::vector<uint32_t>& shared) {
    std::vector<std::string> problems;
    if (!shared.empty())
        problems.push_back(format("SMs %s are shared by all partitions of this process: a module "
                                  "with dynamic parallelism is loaded",
                                  ranges(shared).c_str()));
    uint32_t sum = made.remainder_sm_count;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        check_counts(problems, layout, made, i, partitions[i], shared);
        sum += made.sm_counts[i];
    }
    if (!virtual_sm_numbers(layout.device))
        std::ranges::move(find_overlaps(partitions, shared), std::back_inserter(problems));
    // What was divided: a gcx exec around this process may report the device's count.
    const uint32_t device = resource_info(device_sms(layout.device)).sm_count;
    if (sum != device)
        problems.push_back(
            format("the partitions and the remainder have %u SMs together, device %d "
                   "has %u",
                   sum, layout.device, device));
    return problems;
}

std::map<uint32_t, std::string> shared_sms(const std::vector<Partition>& partitions) {
    std::map<uint32_t, std::string> names;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        for (const uint32_t sm : partitions[i].seen)
            (names[sm] += names[sm].empty() ? "" : " and ") += partition_name(i);
    }
    std::erase_if(names, [](const auto& sm) { return sm.second.find(' ') == std::string::npos; });
    return names;
}

} // namespace gcx::cli
