// Profiles: the fields of the format, the layout that a file leaves out, and the parser.
#include "sim/profiles/profile.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace gcx::sim {

namespace {

constexpr long long kMaxInt = std::numeric_limits<int>::max(); // of a device attribute

// The minima allow blocks of 1024 threads with 32 registers each and 48 KiB of shared memory.
constexpr NumberField kNumberFields[] = {
    {"clock_khz", 1'500'000, 0, kMaxInt},
    {"memory_clock_khz", 1'500'000, 0, kMaxInt},
    {"memory_bus_bits", 384, 0, kMaxInt},
    {"l2_bytes", 33'554'432, 0, kMaxInt},
    {"threads_per_sm", 2048, 1024, 65'536},
    {"blocks_per_sm", 32, 1, 1024},
    {"registers_per_sm", 65'536, 32'768, 16'777'216},
    {"shared_memory_per_sm", 102'400, 65'536, 16'777'216},
    {"shared_memory_per_block_optin", 101'376, 49'152, 16'777'216},
    {"max_cluster_size", 8, 1, 32},
    {"integrated", 0, 0, 1},
    {"pci_bus", -1, 0, 255}, // -1: derived from the index of the device
    {"pageable_memory_access", 0, 0, 1},
};

} // namespace

const NumberField* find_number_field(std::string_view name) {
    const auto* const found = std::ranges::find(kNumberFields, name, &NumberField::name);
    return found == std::end(kNumberFields) ? nullptr : found;
}

long long Profile::number(std::string_view field) const {
    const auto found = given.find(field);
    if (found != given.end())
        return found->second;
    const NumberField* const known = find_number_field(field);
    assert(known != nullptr);
    return known->default_value;
}

SmSet Profile::all() const {
    SmSet set;
    for (unsigned sm = 0; sm < sm_count; sm++)
        set.set(sm);
    return set;
}

namespace {

void append_pairs(const SmList& sms, std::vector<SmList>& pieces) {
    for (std::size_t i = 0; i < sms.size(); i += kPair) {
        const auto begin = sms.begin() + static_cast<long>(i);
        pieces.emplace_back(
            begin, begin + static_cast<long>(std::min<std::size_t>(kPair, sms.size() - i)));
    }
}

// A recording has no GPCs: its groups and pairs are known to be coscheduled. The recording of a
// device with fewer SMs than a group has only the fine family.
std::vector<SmList> known_gpcs(const Profile& profile) {
    const Family& coscheduled = profile.families[kCoscheduled];
    const Family& known = coscheduled.groups.empty() ? profile.families[kFine] : coscheduled;
    std::vector<SmList> gpcs = known.groups;
    append_pairs(known.remainder, gpcs);
    return gpcs;
}

// Joins pieces of several GPCs into groups.
void join_pieces(Family& family, unsigned size) {
    while (family.remainder.size() >= size) {
        const auto begin = family.remainder.begin();
        family.groups.emplace_back(begin, begin + size);
        family.remainder.erase(begin, begin + size);
    }
}

// Takes pieces of one size from each GPC in turn. Smaller pieces become the remainder.
Family cut(const Profile& profile, unsigned size) {
    Family family;
    bool more = true;
    for (std::size_t at = 0; more; at += size) {
        more = false;
        for (const SmList& gpc : profile.gpcs) {
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
    // Groups may span GPCs if there are no clusters, or (assumed) if no GPC has room for a group.
    if (profile.coscheduled_alignment == kPair || family.groups.empty())
        join_pieces(family, size);
    std::ranges::sort(family.remainder);
    return family;
}

// Returns whether the groups and the remainder hold each SM of the profile once.
bool is_partition(const Profile& profile, const std::vector<SmList>& groups,
                  const SmList& remainder) {
    std::size_t total = remainder.size();
    SmSet set = to_set(remainder);
    for (const SmList& group : groups) {
        total += group.size();
        set |= to_set(group);
    }
    return total == profile.sm_count && set == profile.all();
}

// Numbers SMs as the recorded GPUs do: by TPC, each to the next GPC that has room.
std::vector<SmList> number_gpcs(const std::vector<unsigned>& sizes) {
    std::vector<SmList> gpcs(sizes.size());
    const unsigned total = std::accumulate(sizes.begin(), sizes.end(), 0U);
    for (unsigned sm = 0; sm < total;) {
        for (std::size_t gpc = 0; gpc < sizes.size(); gpc++) {
            if (gpcs[gpc].size() == sizes[gpc])
                continue;
            gpcs[gpc].push_back(sm++);
            gpcs[gpc].push_back(sm++);
        }
    }
    return gpcs;
}

unsigned smallest_domain(const Profile& profile) {
    std::size_t smallest = profile.sm_count;
    for (const SmSet& domain : profile.locality_domains)
        smallest = std::min(smallest, domain.count());
    return static_cast<unsigned>(smallest);
}

// Derives the parts of the layout that the file leaves out.
void derive_layout(Profile& profile) {
    if (profile.gpcs.empty())
        profile.gpcs = known_gpcs(profile);
    if (profile.families[kCoscheduled].groups.empty())
        profile.families[kCoscheduled] = cut(profile, profile.min_partition_size);
    if (profile.families[kFine].groups.empty())
        profile.families[kFine] = cut(profile, kPair);
    if (profile.families[kMaxCluster].groups.empty())
        profile.families[kMaxCluster] = profile.families[kCoscheduled];
    if (profile.locality_domains.empty())
        profile.locality_domains.push_back(profile.all());
    if (profile.locality_domain_sm_count == 0)
        profile.locality_domain_sm_count = smallest_domain(profile);
}

using Words = std::vector<std::string_view>;

constexpr std::string_view kFamilyNames[kFamilyCount] = {"coscheduled", "fine", "max-cluster"};
constexpr std::size_t kMaxNameBytes = 200;
constexpr long long kMinMemory = 1LL << 30; // the memory of contexts must fit
constexpr long long kMaxMemory = 1LL << 50;
constexpr unsigned kMaxAlignment = 32; // by the header text of the structured split
constexpr int kMaxMajor = 99;
constexpr int kOldestDriver = 12020; // that can be simulated

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

bool is_printable(char c) {
    return c >= 0x20 && c < 0x7f;
}

// Quotes a word of the file, which may contain anything, for a message.
std::string in_quotes(std::string_view word) {
    constexpr std::size_t kMaxBytes = 40;
    std::string text(word.substr(0, kMaxBytes));
    std::ranges::replace_if(text, [](char c) { return !is_printable(c); }, '?');
    return "\"" + text + (word.size() > kMaxBytes ? "...\"" : "\"");
}

std::string range_text(long long minimum, long long maximum) {
    return std::to_string(minimum) + " to " + std::to_string(maximum);
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
    using Reader = bool (Parser::*)(const Words&);
    struct Field {
        std::string_view name;
        Reader reader;
        bool once;
    };
    static const Field* find_field(std::string_view name);

    bool fail(const std::string& what) { return fail_at(line_, what); }

    bool fail_at(std::size_t line, const std::string& what) {
        error_ = profile_.key + ": line " + std::to_string(line) + ": " + what;
        return false;
    }

    bool read_line(std::string_view line) {
        if (std::ranges::any_of(line, [](unsigned char c) {
                return (c < 0x20 && c != '\t' && c != '\r') || c == 0x7f;
            }))
            return fail("this is not text; a profile begins with \"gcx-profile 1\"");
        const Words words = split_words(line.substr(0, line.find('#')));
        if (words.empty())
            return true;
        if (!header_)
            return read_header(words);
        const Field* const field = find_field(words[0]);
        if (field == nullptr && find_number_field(words[0]) == nullptr)
            return fail("unknown field " + in_quotes(words[0]));
        const std::string name(words[0]);
        if (words.size() < 2 && name != "remainder")
            return fail("\"" + name + "\" has no value");
        if ((field == nullptr || field->once) && !seen_.insert(name).second)
            return fail("\"" + name + "\" was given before");
        return field != nullptr ? (this->*field->reader)(words) : read_attribute(words);
    }

    bool read_header(const Words& words) {
        if (words[0] != "gcx-profile" || words.size() != 2)
            return fail("a profile begins with \"gcx-profile 1\"");
        if (words[1] != "1")
            return fail("the format's version is 1, not " + in_quotes(words[1]));
        header_ = true;
        return true;
    }

    bool read_name(const Words& words) { return read_text(words, profile_.name); }

    bool read_description(const Words& words) { return read_text(words, profile_.description); }

    bool read_text(const Words& words, std::string& out) {
        const std::string name(words[0]);
        out = std::string(&words[1].front(), &words.back().back() + 1);
        if (out.size() > kMaxNameBytes || !std::ranges::all_of(out, is_printable))
            return fail("\"" + name + "\" must have at most " + std::to_string(kMaxNameBytes) +
                        " printable ASCII characters");
        return true;
    }

    bool read_version(const Words& words, int& major, int& minor) {
        const auto dot = words[1].find('.');
        const bool is_version = words.size() == 2 && dot != std::string_view::npos &&
                                to_number(words[1].substr(0, dot), major) &&
                                to_number(words[1].substr(dot + 1), minor);
        if (!is_version || major < 1 || major > kMaxMajor || minor < 0 || minor > 9)
            return fail("\"" + std::string(words[0]) + "\" must be a version from 1.0 to " +
                        std::to_string(kMaxMajor) + ".9, e.g. 9.0, not " + in_quotes(words[1]));
        return true;
    }

    bool read_capability(const Words& words) {
        if (!read_version(words, profile_.major, profile_.minor))
            return false;
        if (profile_.major < 7)
            return fail("compute capabilities from 7.0 on can be simulated, not " +
                        in_quotes(words[1]));
        return true;
    }

    bool read_driver(const Words& words) {
        int major = 0;
        int minor = 0;
        if (!read_version(words, major, minor))
            return false;
        profile_.driver_version = major * 1000 + minor * 10;
        if (profile_.driver_version < kOldestDriver)
            return fail("drivers from 12.2 on can be simulated, not " + in_quotes(words[1]));
        return true;
    }

    bool read_value(const Words& words, long long minimum, long long maximum, long long& value) {
        if (words.size() == 2 && to_number(words[1], value) && value >= minimum && value <= maximum)
            return true;
        return fail("\"" + std::string(words[0]) + "\" must be one number, " +
                    range_text(minimum, maximum) + ", not " + in_quotes(words[1]));
    }

    bool read_attribute(const Words& words) {
        const NumberField& field = *find_number_field(words[0]);
        return read_value(words, field.minimum, field.maximum,
                          profile_.given[std::string(words[0])]);
    }

    bool read_memory(const Words& words) {
        long long bytes = 0;
        if (!read_value(words, kMinMemory, kMaxMemory, bytes))
            return false;
        profile_.memory_bytes = static_cast<uint64_t>(bytes);
        return true;
    }

    // Reads a count of SMs, which is even since SMs come in pairs (TPCs).
    bool read_even(const Words& words, unsigned maximum, unsigned& out) {
        long long value = 0;
        if (!read_value(words, kPair, maximum, value))
            return false;
        if (value % kPair != 0)
            return fail("\"" + std::string(words[0]) +
                        "\" must be an even number, since SMs come in " + "pairs, not " +
                        in_quotes(words[1]));
        out = static_cast<unsigned>(value);
        return true;
    }

    bool read_sm_count(const Words& words) { return read_even(words, kMaxSms, profile_.sm_count); }

    bool read_minimum(const Words& words) {
        minimum_line_ = line_;
        return read_even(words, kMaxSms, profile_.min_partition_size);
    }

    bool read_alignment(const Words& words) {
        return read_even(words, kMaxAlignment, profile_.coscheduled_alignment);
    }

    bool read_domain_count(const Words& words) {
        domain_count_line_ = line_;
        long long value = 0;
        if (!read_value(words, 1, kMaxSms, value))
            return false;
        profile_.locality_domain_sm_count = static_cast<unsigned>(value);
        return true;
    }

    bool read_family(const Words& words) {
        const auto* const name = std::ranges::find(kFamilyNames, words[1]);
        if (name == std::end(kFamilyNames) || words.size() != 2)
            return fail("the families are coscheduled, fine and max-cluster");
        family_ = static_cast<unsigned>(name - std::begin(kFamilyNames));
        if (std::exchange(family_lines_[family_], line_) != 0)
            return fail("this family was given before");
        return true;
    }

    bool read_sms(const Words& words, std::size_t first, const SmSet& used, const char* where,
                  SmList& sms) {
        if (profile_.sm_count == 0)
            return fail("sm_count must come before lists of SMs");
        SmSet seen;
        for (std::size_t i = first; i < words.size(); i++) {
            unsigned sm = 0;
            if (!to_number(words[i], sm) || sm >= profile_.sm_count)
                return fail(in_quotes(words[i]) + " is not an SM of a device with " +
                            std::to_string(profile_.sm_count));
            if (seen[sm])
                return fail("SM " + std::to_string(sm) + " is listed twice");
            if (used[sm])
                return fail("SM " + std::to_string(sm) + " is in two " + where);
            seen.set(sm);
            sms.push_back(sm);
        }
        return true;
    }

    static SmSet united(const std::vector<SmList>& lists) {
        SmSet set;
        for (const SmList& list : lists)
            set |= to_set(list);
        return set;
    }

    bool read_family_sms(const Words& words, SmList& sms) {
        if (family_ == kFamilyCount)
            return fail("\"" + std::string(words[0]) + "\" must follow \"family\"");
        const Family& family = profile_.families[family_];
        return read_sms(words, 1, united(family.groups) | to_set(family.remainder),
                        "groups of the family", sms);
    }

    bool read_group(const Words& words) {
        SmList sms;
        if (!read_family_sms(words, sms))
            return false;
        std::vector<SmList>& groups = profile_.families[family_].groups;
        if (!groups.empty() && groups[0].size() != sms.size())
            return fail("a group of " + std::to_string(sms.size()) + " SMs after groups of " +
                        std::to_string(groups[0].size()) +
                        "; the groups of a family are equal, and other SMs its remainder");
        groups.push_back(std::move(sms));
        return true;
    }

    bool read_remainder(const Words& words) {
        SmList sms;
        if (!read_family_sms(words, sms))
            return false;
        SmList& remainder = profile_.families[family_].remainder;
        if (!remainder.empty())
            return fail("this family's remainder was given before");
        remainder = std::move(sms);
        return true;
    }

    void begin_gpcs() {
        if (gpcs_line_ == 0)
            gpcs_line_ = line_;
    }

    bool read_gpc(const Words& words) {
        if (seen_.contains("gpc_sizes"))
            return fail("the GPCs were given before, by gpc_sizes");
        begin_gpcs();
        SmList sms;
        if (!read_sms(words, 1, united(profile_.gpcs), "GPCs", sms))
            return false;
        if (sms.size() % kPair != 0)
            return fail("a GPC has an even number of SMs, since SMs come in pairs");
        profile_.gpcs.push_back(std::move(sms));
        return true;
    }

    bool read_gpc_sizes(const Words& words) {
        if (!profile_.gpcs.empty())
            return fail("the GPCs were given before, by gpc");
        if (profile_.sm_count == 0)
            return fail("sm_count must come before gpc_sizes");
        begin_gpcs();
        std::vector<unsigned> sizes;
        unsigned total = 0;
        for (std::size_t i = 1; i < words.size(); i++) {
            unsigned size = 0;
            if (!to_number(words[i], size) || size == 0 || size % kPair != 0 ||
                size > profile_.sm_count)
                return fail("a GPC's size is an even number of SMs, " +
                            range_text(kPair, profile_.sm_count) + ", not " + in_quotes(words[i]));
            sizes.push_back(size);
            total += size;
            if (total > profile_.sm_count)
                break;
        }
        if (total != profile_.sm_count)
            return fail("the GPCs hold " + std::to_string(total) +
                        (total > profile_.sm_count ? " SMs and more, not " : " SMs, not ") +
                        std::to_string(profile_.sm_count));
        profile_.gpcs = number_gpcs(sizes);
        return true;
    }

    bool read_locality_domain(const Words& words) {
        if (words.size() < 3 || words[1] != std::to_string(profile_.locality_domains.size()))
            return fail("locality domains are numbered from 0, and hold SMs");
        SmSet used;
        for (const SmSet& domain : profile_.locality_domains)
            used |= domain;
        SmList sms;
        if (!read_sms(words, 2, used, "locality domains", sms))
            return false;
        profile_.locality_domains.push_back(to_set(sms));
        return true;
    }

    bool read_dynamic_parallelism(const Words& words) {
        shared_line_ = line_;
        SmList sms;
        if (!read_sms(words, 1, {}, "", sms))
            return false;
        if (sms.size() != kPair)
            return fail("dynamic parallelism shares " + std::to_string(kPair) + " SMs, not " +
                        std::to_string(sms.size()));
        profile_.dynamic_parallelism_sms = to_set(sms);
        return true;
    }

    bool finish() {
        if (!header_)
            return fail_at(1, "the file is empty; a profile begins with \"gcx-profile 1\"");
        for (const char* const field : {"name", "compute_capability", "sm_count", "memory_bytes"})
            if (!seen_.contains(field))
                return fail("the file ends without " + std::string(field));
        set_rules();
        if (profile_.min_partition_size % profile_.coscheduled_alignment != 0)
            return fail_at(minimum_line_ != 0 ? minimum_line_ : line_,
                           "min_partition_size is " + std::to_string(profile_.min_partition_size) +
                               ", which is no multiple of the coscheduled_alignment, " +
                               std::to_string(profile_.coscheduled_alignment));
        if (!check_layout())
            return false;
        if (shared_line_ != 0 && !profile_.shares_sms())
            return fail_at(shared_line_, "dynamic parallelism shares SMs on compute capability 9.x "
                                         "alone");
        // Assumed: the device's last pair.
        if (shared_line_ == 0 && profile_.shares_sms())
            for (unsigned sm = profile_.sm_count - kPair; sm < profile_.sm_count; sm++)
                profile_.dynamic_parallelism_sms.set(sm);
        derive_layout(profile_);
        const unsigned smallest = smallest_domain(profile_);
        if (profile_.locality_domain_sm_count > smallest)
            return fail_at(domain_count_line_,
                           "a locality domain holds " + std::to_string(smallest) + " SMs, fewer");
        return true;
    }

    // The rules of the header of CUDA 13.5, and for 8.x of the header of 12.4.
    void set_rules() {
        const bool clusters = profile_.has_clusters();
        if (profile_.coscheduled_alignment == 0)
            profile_.coscheduled_alignment = clusters ? 8 : kPair;
        if (profile_.min_partition_size == 0)
            profile_.min_partition_size = clusters ? 8 : (profile_.major == 8 ? 4 : kPair);
    }

    bool check_layout() {
        if (gpcs_line_ == 0 && family_lines_[kCoscheduled] == 0 && family_lines_[kFine] == 0)
            return fail("the file ends without a layout: give gpc, gpc_sizes or family "
                        "coscheduled");
        if (gpcs_line_ != 0 && !is_partition(profile_, profile_.gpcs, {}))
            return fail_at(gpcs_line_, missing_text("the GPCs", united(profile_.gpcs)));
        for (unsigned kind = 0; kind < kFamilyCount; kind++)
            if (family_lines_[kind] != 0 && !check_family(static_cast<FamilyKind>(kind)))
                return false;
        return true;
    }

    std::string missing_text(const std::string& what, const SmSet& held) const {
        return what + " do not hold SM " + std::to_string(to_list(profile_.all() & ~held)[0]) +
               "; each SM is held once";
    }

    bool check_family(FamilyKind kind) {
        const Family& family = profile_.families[kind];
        const std::string name = "family " + std::string(kFamilyNames[kind]);
        const std::size_t line = family_lines_[kind];
        if (kind == kMaxCluster && !profile_.has_clusters())
            return fail_at(line, name + ": there are no clusters before compute capability 9.0");
        if (family.groups.empty())
            return fail_at(line, name + " has no group; leave it out");
        if (!is_partition(profile_, family.groups, family.remainder))
            return fail_at(line, missing_text("the groups and the remainder of " + name,
                                              united(family.groups) | to_set(family.remainder)));
        const std::size_t size = family.groups[0].size();
        const std::size_t smallest = kind == kFine ? kPair : profile_.min_partition_size;
        if (kind == kMaxCluster ? size < smallest || size % profile_.coscheduled_alignment != 0
                                : size != smallest)
            return fail_at(line, name + " has groups of " + std::to_string(size) +
                                     " SMs, where the smallest split yields " +
                                     std::to_string(smallest) +
                                     (kind == kFine ? "" : ", the min_partition_size"));
        return true;
    }

    Profile& profile_;
    std::string& error_;
    std::size_t line_ = 0;
    bool header_ = false;
    std::set<std::string, std::less<>> seen_;
    unsigned family_ = kFamilyCount; // of the group lines that follow
    std::size_t family_lines_[kFamilyCount] = {};
    std::size_t gpcs_line_ = 0;
    std::size_t minimum_line_ = 0;
    std::size_t domain_count_line_ = 0;
    std::size_t shared_line_ = 0;
};

const Parser::Field* Parser::find_field(std::string_view name) {
    constexpr bool kOnce = true;
    constexpr bool kOften = false;
    static constexpr Field kFields[] = {
        {"name", &Parser::read_name, kOnce},
        {"description", &Parser::read_description, kOnce},
        {"driver", &Parser::read_driver, kOnce},
        {"compute_capability", &Parser::read_capability, kOnce},
        {"sm_count", &Parser::read_sm_count, kOnce},
        {"min_partition_size", &Parser::read_minimum, kOnce},
        {"coscheduled_alignment", &Parser::read_alignment, kOnce},
        {"memory_bytes", &Parser::read_memory, kOnce},
        {"family", &Parser::read_family, kOften},
        {"group", &Parser::read_group, kOften},
        {"remainder", &Parser::read_remainder, kOften},
        {"gpc", &Parser::read_gpc, kOften},
        {"gpc_sizes", &Parser::read_gpc_sizes, kOnce},
        {"locality_domain", &Parser::read_locality_domain, kOften},
        {"locality_domain_sm_count", &Parser::read_domain_count, kOnce},
        {"dynamic_parallelism_sms", &Parser::read_dynamic_parallelism, kOnce},
    };
    const auto* const found = std::ranges::find(kFields, name, &Field::name);
    return found == std::end(kFields) ? nullptr : found;
}

} // namespace

bool parse_profile(std::string_view text, const std::string& key, Profile& profile,
                   std::string& error) {
    profile = Profile{};
    profile.key = key;
    return Parser(profile, error).run(text);
}

} // namespace gcx::sim
