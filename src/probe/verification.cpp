#include "probe/verification.hpp"

#include "base/error.hpp"
#include "core/device.hpp"

#include <algorithm>
#include <map>

namespace gcx {
namespace {

// Returns A to Z, then AA, AB, ...
std::string letters(std::size_t index) {
    const std::string last(1, static_cast<char>('A' + index % 26));
    return index < 26 ? last : letters(index / 26 - 1) + last;
}

// Returns "0-2 5" for 0, 1, 2, 5.
std::string ranges(const std::vector<uint32_t>& ids) {
    std::string text;
    for (std::size_t i = 0; i < ids.size();) {
        std::size_t end = i + 1;
        while (end < ids.size() && ids[end] == ids[end - 1] + 1)
            end++;
        text += (text.empty() ? "" : " ") + std::to_string(ids[i]);
        if (end - i > 1)
            text += "-" + std::to_string(ids[end - 1]);
        i = end;
    }
    return text.empty() ? "none" : text;
}

class Comparison {
  public:
    Comparison(const std::vector<ProbedStream>& streams, const std::vector<uint32_t>& shared_by_all)
        : streams_(streams), shared_by_all_(shared_by_all) {
        result_.fine.assign(streams.size(), 1);
    }

    void compare_counts(bool may_share) {
        for (std::size_t i = 0; i < streams_.size(); i++) {
            const ProbedStream& stream = streams_[i];
            const std::size_t seen = stream.seen.size();
            if (without_shared(stream) == stream.promised)
                continue;
            std::string problem =
                format("partition %s: its kernels were to run on %u SMs and were seen on %zu (%s)",
                       letters(i).c_str(), stream.promised, seen, ranges(stream.seen).c_str());
            if (seen < stream.promised)
                problem += "; if other work keeps the GPU busy, stop it and verify again";
            else if (may_share && seen == stream.promised + Device::kSharedSms)
                problem += "; a loaded module with dynamic parallelism adds as many";
            result_.problems.push_back(std::move(problem));
            result_.fine[i] = 0;
        }
    }

    void compare_sms() {
        std::map<uint32_t, std::vector<std::size_t>> owners;
        for (std::size_t i = 0; i < streams_.size(); i++) {
            for (const uint32_t sm : streams_[i].seen)
                owners[sm].push_back(i);
        }
        std::map<std::vector<std::size_t>, std::vector<uint32_t>> conflicts;
        for (const auto& [sm, its_owners] : owners) {
            if (its_owners.size() == 1)
                continue;
            result_.overlap.push_back(sm);
            const bool allowed = std::ranges::all_of(
                its_owners, [&](std::size_t owner) { return streams_[owner].of_shared_lease; });
            if (!allowed && !is_shared_by_all(sm))
                conflicts[its_owners].push_back(sm);
        }
        for (const auto& [its_owners, sms] : conflicts) {
            std::string names;
            for (const std::size_t owner : its_owners) {
                names += (names.empty() ? "" : " and ") + letters(owner);
                result_.fine[owner] = 0;
            }
            result_.problems.push_back(format("partitions %s share %zu SM%s: %s", names.c_str(),
                                              sms.size(), sms.size() == 1 ? "" : "s",
                                              ranges(sms).c_str()));
        }
    }

    void name_shared() {
        if (shared_by_all_.empty())
            return;
        result_.problems.push_back(
            format("SMs %s are shared by all partitions of this process: a module with dynamic "
                   "parallelism is loaded",
                   ranges(shared_by_all_).c_str()));
        for (std::size_t i = 0; i < streams_.size(); i++) {
            if (without_shared(streams_[i]) != streams_[i].seen.size())
                result_.fine[i] = 0;
        }
    }

    Verification result() { return std::move(result_); }

  private:
    bool is_shared_by_all(uint32_t sm) const {
        return std::ranges::binary_search(shared_by_all_, sm);
    }

    // Returns on how many SMs a stream was seen. Does not count those that all partitions share if
    // there are more than it was promised.
    std::size_t without_shared(const ProbedStream& stream) const {
        if (stream.seen.size() <= stream.promised)
            return stream.seen.size();
        return static_cast<std::size_t>(
            std::ranges::count_if(stream.seen, [&](uint32_t sm) { return !is_shared_by_all(sm); }));
    }

    const std::vector<ProbedStream>& streams_;
    const std::vector<uint32_t>& shared_by_all_;
    Verification result_;
};

} // namespace

Verification verify(const std::vector<ProbedStream>& streams, bool virtual_numbers,
                    const std::vector<uint32_t>& shared_by_all, bool may_share) {
    Comparison comparison(streams, shared_by_all);
    comparison.name_shared();
    comparison.compare_counts(may_share);
    if (!virtual_numbers)
        comparison.compare_sms();
    return comparison.result();
}

} // namespace gcx
