#include "sim/profiles/profile.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace gcx::sim {
namespace {

using Words = std::vector<std::string_view>;

Words split_words(std::string_view line) {
    Words words;
    while (true) {
        const auto begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos)
            return words;
        const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        line.remove_prefix(end);
    }
}

template <class Number>
bool to_number(std::string_view word, Number& number) {
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    return code == std::errc() && end == word.data() + word.size();
}

// Device attributes that a profile may set; everything else is an error, to catch misspellings.
const std::set<std::string_view>& number_fields() {
    static const auto* fields = new std::set<std::string_view>{
        "clock_khz",
        "memory_clock_khz",
        "memory_bus_bits",
        "l2_bytes",
        "threads_per_sm",
        "blocks_per_sm",
        "registers_per_sm",
        "shared_memory_per_sm",
        "shared_memory_per_block_optin",
        "max_cluster_size",
        "integrated",
        "pci_bus",
        "pageable_memory_access",
    };
    return *fields;
}

class Parser {
  public:
    Parser(Profile& profile, std::string& error) : profile_(profile), error_(error) {}

    bool run(std::string_view text) {
        while (!text.empty()) {
            const auto end = std::min(text.find('\n'), text.size());
            line_++;
            if (!read_line(text.substr(0, end)))
                return false;
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        return finish();
    }

  private:
    bool fail(const std::string& what) {
        error_ = profile_.key + ": line " + std::to_string(line_) + ": " + what;
        return false;
    }

    bool read_line(std::string_view line) {
        const Words words = split_words(line.substr(0, line.find('#')));
        if (words.empty())
            return true;
        const std::string field(words[0]);
        if (!header_) {
            if (field != "gcx-profile" || words.size() != 2 || words[1] != "1")
                return fail("a profile begins with \"gcx-profile 1\"");
            header_ = true;
            return true;
        }
        if (field == "name" || field == "description")
            return read_text(field, line);
        if (words.size() < 2 && field != "remainder")
            return fail("\"" + field + "\" has no value");
        if (field == "compute_capability" || field == "driver")
            return read_version(field, words);
        if (field == "family")
            return read_family(words);
        if (field == "group" || field == "remainder")
            return read_group(field, words);
        if (field == "gpc" || field == "gpc_sizes" || field == "locality_domain")
            return read_layout(field, words);
        return read_number(field, words);
    }

    bool read_text(const std::string& field, std::string_view line) {
        line.remove_prefix(line.find(field) + field.size());
        line = line.substr(0, line.find('#'));
        const auto begin = line.find_first_not_of(" \t");
        if (begin == std::string_view::npos)
            return fail("\"" + field + "\" has no value");
        const auto end = line.find_last_not_of(" \t\r");
        (field == "name" ? profile_.name : profile_.description) =
            std::string(line.substr(begin, end - begin + 1));
        return true;
    }

    bool read_version(const std::string& field, const Words& words) {
        const auto dot = words[1].find('.');
        int major = 0;
        int minor = 0;
        if (dot == std::string_view::npos || !to_number(words[1].substr(0, dot), major) ||
            !to_number(words[1].substr(dot + 1), minor) || major < 1 || minor < 0)
            return fail("\"" + field + "\" wants a number like 9.0");
        if (field == "driver") {
            profile_.driver_version = major * 1000 + minor * 10;
        } else {
            profile_.major = major;
            profile_.minor = minor;
        }
        return true;
    }

    bool read_family(const Words& words) {
        static constexpr std::string_view names[] = {"coscheduled", "fine", "max-cluster"};
        const auto* const name = std::find(std::begin(names), std::end(names), words[1]);
        if (name == std::end(names))
            return fail("the families are coscheduled, fine and max-cluster");
        family_ = &profile_.families[name - std::begin(names)];
        if (!family_->groups.empty() || !family_->remainder.empty())
            return fail("this family was given before");
        return true;
    }

    bool read_sms(const Words& words, std::size_t first, SmList& sms) {
        if (profile_.sm_count == 0)
            return fail("sm_count must come before lists of SMs");
        for (std::size_t i = first; i < words.size(); i++) {
            unsigned sm = 0;
            if (!to_number(words[i], sm) || sm >= profile_.sm_count)
                return fail("\"" + std::string(words[i]) + "\" is no SM of a device with " +
                            std::to_string(profile_.sm_count));
            sms.push_back(sm);
        }
        if (to_set(sms).count() != sms.size())
            return fail("an SM is listed twice");
        return true;
    }

    bool read_group(const std::string& field, const Words& words) {
        if (family_ == nullptr)
            return fail("\"" + field + "\" must follow \"family\"");
        SmList sms;
        if (!read_sms(words, 1, sms))
            return false;
        SmSet used = to_set(family_->remainder);
        for (const SmList& group : family_->groups)
            used |= to_set(group);
        if ((used & to_set(sms)).any())
            return fail("an SM is in two groups of the family");
        if (field == "group")
            family_->groups.push_back(std::move(sms));
        else
            family_->remainder.insert(family_->remainder.end(), sms.begin(), sms.end());
        return true;
    }

    bool read_layout(const std::string& field, const Words& words) {
        SmList sms;
        if (field == "gpc_sizes")
            return deal_gpcs(words);
        if (field == "gpc") {
            if (!read_sms(words, 1, sms))
                return false;
            profile_.gpcs.push_back(std::move(sms));
            return true;
        }
        if (words.size() < 3 || words[1] != std::to_string(profile_.locality_domains.size()))
            return fail("locality domains are numbered from 0, and hold SMs");
        if (!read_sms(words, 2, sms))
            return false;
        profile_.locality_domains.push_back(to_set(sms));
        return true;
    }

    // Numbers the SMs as the recorded GPUs do: TPC by TPC, each to the next GPC that has room.
    bool deal_gpcs(const Words& words) {
        if (!profile_.gpcs.empty())
            return fail("the GPCs were given before");
        std::vector<unsigned> sizes;
        unsigned total = 0;
        for (std::size_t i = 1; i < words.size(); i++) {
            unsigned size = 0;
            if (!to_number(words[i], size) || size == 0 || size % 2 != 0)
                return fail("a GPC's size is an even number of SMs");
            sizes.push_back(size);
            total += size;
        }
        if (total != profile_.sm_count)
            return fail("the GPCs hold " + std::to_string(total) + " SMs, not " +
                        std::to_string(profile_.sm_count));
        profile_.gpcs.resize(sizes.size());
        for (unsigned sm = 0; sm < total;) {
            for (std::size_t gpc = 0; gpc < sizes.size(); gpc++) {
                if (profile_.gpcs[gpc].size() == sizes[gpc])
                    continue;
                profile_.gpcs[gpc].push_back(sm++);
                profile_.gpcs[gpc].push_back(sm++);
            }
        }
        return true;
    }

    bool read_number(const std::string& field, const Words& words) {
        unsigned* const own = field == "sm_count"                ? &profile_.sm_count
                              : field == "min_partition_size"    ? &profile_.min_partition_size
                              : field == "coscheduled_alignment" ? &profile_.coscheduled_alignment
                              : field == "locality_domain_sm_count"
                                  ? &profile_.locality_domain_sm_count
                                  : nullptr;
        if (own == nullptr && field != "memory_bytes" && !number_fields().contains(field))
            return fail("unknown field \"" + field + "\"");
        long long value = 0;
        if (words.size() != 2 || !to_number(words[1], value) || value < 0)
            return fail("\"" + field + "\" wants one number");
        if (field == "memory_bytes") {
            profile_.memory_bytes = static_cast<uint64_t>(value);
        } else if (own == nullptr) {
            profile_.numbers[field] = value;
        } else {
            if (value < 2 || value > static_cast<long long>(kMaxSms))
                return fail("\"" + field + "\" must be 2 to " + std::to_string(kMaxSms));
            *own = static_cast<unsigned>(value);
        }
        return true;
    }

    bool finish() {
        if (!header_ || profile_.name.empty() || profile_.major == 0 || profile_.sm_count == 0 ||
            profile_.memory_bytes == 0)
            return fail("the file ends without name, compute_capability, sm_count or memory_bytes");
        // The rules that the header of CUDA 13.5 gives, and for 8.x the one of 12.4.
        const bool clusters = profile_.major >= 9;
        if (profile_.min_partition_size == 0)
            profile_.min_partition_size = clusters ? 8 : (profile_.major == 8 ? 4 : 2);
        if (profile_.coscheduled_alignment == 0)
            profile_.coscheduled_alignment = clusters ? 8 : 2;
        if (profile_.gpcs.empty() && profile_.families[kCoscheduled].groups.empty())
            return fail(
                "the file ends without a layout: give gpc, gpc_sizes or family coscheduled");
        derive_gpcs();
        if (!is_partition(profile_.gpcs, {}))
            return fail("the GPCs do not hold each SM once");
        derive_families();
        for (const Family& family : profile_.families)
            if (!is_partition(family.groups, family.remainder))
                return fail("a family does not hold each SM once");
        if (profile_.locality_domains.empty())
            profile_.locality_domains.push_back(profile_.all());
        if (profile_.locality_domain_sm_count == 0)
            profile_.locality_domain_sm_count =
                static_cast<unsigned>(profile_.locality_domains[0].count());
        return true;
    }

    bool is_partition(const std::vector<SmList>& groups, const SmList& remainder) const {
        std::size_t total = remainder.size();
        SmSet set = to_set(remainder);
        for (const SmList& group : groups) {
            total += group.size();
            set |= to_set(group);
        }
        return total == profile_.sm_count && set == profile_.all();
    }

    // A recording knows no GPCs: what is known to be coscheduled are its groups, and pairs.
    void derive_gpcs() {
        if (!profile_.gpcs.empty())
            return;
        const Family& known = profile_.families[kCoscheduled];
        profile_.gpcs = known.groups;
        for (std::size_t i = 0; i < known.remainder.size(); i += 2)
            profile_.gpcs.emplace_back(
                known.remainder.begin() + static_cast<long>(i),
                known.remainder.begin() +
                    static_cast<long>(std::min(i + 2, known.remainder.size())));
    }

    void derive_families() {
        if (profile_.families[kCoscheduled].groups.empty())
            profile_.families[kCoscheduled] = cut(profile_.min_partition_size);
        if (profile_.families[kFine].groups.empty())
            profile_.families[kFine] = cut(2);
        if (profile_.families[kMaxCluster].groups.empty())
            profile_.families[kMaxCluster] = profile_.families[kCoscheduled];
    }

    // Takes pieces of one size from each GPC in turn; what is too small is the remainder.
    Family cut(unsigned size) const {
        Family family;
        bool more = true;
        for (std::size_t at = 0; more; at += size) {
            more = false;
            for (const SmList& gpc : profile_.gpcs) {
                if (at >= gpc.size())
                    continue;
                more = true;
                const auto begin = gpc.begin() + static_cast<long>(at);
                if (at + size <= gpc.size())
                    family.groups.emplace_back(begin, begin + size);
                else
                    family.remainder.insert(family.remainder.end(), begin, gpc.end());
            }
        }
        // Where no clusters are at stake, pieces of two GPCs make a group as well.
        if (profile_.coscheduled_alignment == 2) {
            while (family.remainder.size() >= size) {
                const auto begin = family.remainder.begin();
                family.groups.emplace_back(begin, begin + size);
                family.remainder.erase(begin, begin + size);
            }
        }
        std::sort(family.remainder.begin(), family.remainder.end());
        return family;
    }

    Profile& profile_;
    std::string& error_;
    Family* family_ = nullptr;
    std::size_t line_ = 0;
    bool header_ = false;
};

} // namespace

long long Profile::number(std::string_view field, long long otherwise) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? otherwise : found->second;
}

SmSet Profile::all() const {
    SmSet set;
    for (unsigned sm = 0; sm < sm_count; sm++)
        set.set(sm);
    return set;
}

bool parse_profile(std::string_view text, const std::string& key, Profile& profile,
                   std::string& error) {
    profile = Profile{};
    profile.key = key;
    return Parser(profile, error).run(text);
}

} // namespace gcx::sim
