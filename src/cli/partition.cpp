#include "cli/partition.hpp"

#include "cli/text.hpp"

#include <string_view>

namespace gcx::cli {
namespace {

template <std::size_t kWords>
std::vector<uint32_t> numbers(const uint64_t (&words)[kWords]) {
    std::vector<uint32_t> sms;
    for (uint32_t sm = 0; sm < kWords * 64; sm++) {
        if ((words[sm / 64] >> (sm % 64) & 1) != 0)
            sms.push_back(sm);
    }
    return sms;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

void check_counts(Proof& proof, const Layout& layout, const Split& made, std::size_t index,
                  uint32_t of_stream) {
    const std::string name = "partition " + partition_name(index);
    const uint32_t asked = layout.requests[index].sm_count;
    const uint32_t given = made.sm_counts[index];
    if (asked != GCX_REST && (given < asked || (layout.exact && given != asked)))
        proof.add(
            format("%s: %u SMs were asked for, the split gives %u", name.c_str(), asked, given));
    if (of_stream != given)
        proof.add(format("%s: the split gives %u SMs, its stream has %u", name.c_str(), given,
                         of_stream));
}

} // namespace

std::vector<uint32_t> probe(const Stream& stream) {
    std::vector<uint32_t> sms(GCX_MAX_SMS);
    uint32_t count = 0;
    check(gcx_stream_probe_sms(stream.get(), sms.data(), GCX_MAX_SMS, &count));
    sms.resize(count);
    return sms;
}

Proof verify(const Layout& layout, const Split& made, std::vector<Partition>& partitions) {
    std::vector<gcx_stream> streams;
    streams.reserve(partitions.size());
    for (const Partition& partition : partitions)
        streams.push_back(partition.stream.get());
    std::vector<gcx_verified_stream> verified(streams.size());
    gcx_verification found = GCX_VERIFICATION_INIT;
    check(
        gcx_verify(streams.data(), static_cast<uint32_t>(streams.size()), verified.data(), &found));

    Proof proof;
    proof.problem_count = found.problem_count;
    proof.problems = lines_of(found.problems);
    proof.overlap_count = found.overlap_count;
    proof.shared_by_all = numbers(found.shared_by_all);
    proof.virtual_sm_numbers = found.virtual_sm_numbers != 0;
    uint32_t sum = made.remainder_sm_count;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        partitions[i].seen = numbers(verified[i].seen);
        check_counts(proof, layout, made, i, verified[i].sm_count);
        sum += made.sm_counts[i];
    }
    // What was divided: a gcx exec around this process may report the device's count.
    const uint32_t device = resource_info(device_sms(layout.device)).sm_count;
    if (sum != device)
        proof.add(format("the partitions and the remainder have %u SMs together, device %d has %u",
                         sum, layout.device, device));
    return proof;
}

} // namespace gcx::cli
