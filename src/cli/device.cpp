#include "cli/device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace gcx::cli {
namespace {

std::string driver_choice; // of --driver or the environment
bool driver_is_simulated = false;

constexpr std::string_view kSmsExample =
    "give counts of SMs like --sms 108,24, percentages like --sms 50%,25%, or rest for what the "
    "others leave, like --sms 24,rest";

constexpr std::size_t kPercentDecimals = 9;
constexpr uint64_t kWhole = 100'000'000'000; // 100% in billionths of a percent

constexpr std::size_t kLeastDigits = 4; // of a UUID that is given

std::vector<SmShare> read_sms(const Arguments& arguments) {
    const auto given = arguments.get("--sms");
    if (!given)
        throw UsageError("--sms is missing: " + std::string(kSmsExample));
    std::vector<SmShare> shares;
    for (const std::string& share : split(*given, ',')) {
        if (share.empty())
            throw UsageError("--sms " + *given +
                             format(": count %zu is empty; ", shares.size() + 1) +
                             std::string(kSmsExample));
        shares.push_back(read_share(share, "--sms " + *given, kSmsExample));
    }
    if (shares.size() > GCX_MAX_SMS)
        throw UsageError(format("--sms has %zu counts, more than any GPU has SMs (%u at most)",
                                shares.size(), GCX_MAX_SMS));
    return shares;
}

// Returns what a split of these SMs gives for a count; 0 if there is no such split.
uint32_t planned(const resource& all, uint32_t sm_count) {
    try {
        return all.plan({sm_count}).groups[0];
    } catch (const error&) {
        return 0;
    }
}

// Returns the first partition that is larger than its percentage allows. Throws gcx::error if there
// is no such split.
std::optional<std::size_t> first_too_large(const Layout& layout,
                                           const std::vector<SmSizes>& sizes) {
    const auto counts =
        gcx::device(layout.device).sms().plan(layout.requests, layout.flags()).groups;
    for (std::size_t i = 0; i < counts.size(); i++) {
        if (counts[i] > sizes[i].most)
            return i;
    }
    return std::nullopt;
}

bool fits(const Layout& layout, const std::vector<SmSizes>& sizes) {
    try {
        return !first_too_large(layout, sizes);
    } catch (const error&) {
        return false;
    }
}

// Sets the requests. Only one partition has the remainder atom, so if the preferred sizes do not
// fit next to each other, one percentage takes its other size: the last that can.
void choose_requests(Layout& layout) {
    const resource whole = gcx::device(layout.device).sms();
    const std::string label = format("device %d", layout.device);
    std::vector<SmSizes> sizes;
    for (const SmShare& share : layout.shares) {
        if (!share.is_percentage()) {
            sizes.push_back({share.sm_count, share.sm_count});
        } else {
            const resource all = whole.split({rest}, layout.family->flags).groups[0];
            sizes.push_back(layout.exact ? find_exact_sizes(share, all, *layout.family, label)
                                         : find_sizes(share, all, label));
        }
        layout.requests.emplace_back(sizes.back().preferred);
    }
    if (std::ranges::none_of(layout.shares, &SmShare::is_percentage) || fits(layout, sizes))
        return;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        if (!layout.shares[i].is_percentage() || sizes[i].least == sizes[i].most)
            continue;
        const bool has_least = sizes[i].preferred == sizes[i].least;
        layout.requests[i] = request(has_least ? sizes[i].most : sizes[i].least);
        if (fits(layout, sizes))
            return;
        layout.requests[i] = request(sizes[i].preferred);
    }
    if (const auto large = first_too_large(layout, sizes))
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("partition %s: %s of %s is %u SMs, and next to the others the atoms "
                             "allow no partition of at most that; give counts, or rest for one",
                             partition_name(*large).c_str(), layout.shares[*large].text.c_str(),
                             count_of(whole.sm_count(), "SM").c_str(), sizes[*large].most));
}

} // namespace

std::string uuid_digits(std::string text) {
    if (text.starts_with("GPU-") || text.starts_with("MIG-"))
        text.erase(0, 4);
    std::erase(text, '-');
    for (char& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (std::strchr("0123456789abcdef", c) == nullptr)
            return "";
    }
    return text;
}

gcx_driver_info open_driver(const Arguments& arguments) {
    const auto given = arguments.get("--driver");
    if (given && given->empty())
        throw UsageError("--driver is empty; give a driver, e.g. --driver sim:h100@13.0 or "
                         "--driver libcuda.so.1");
    const char* const environment = std::getenv("GCX_DRIVER");
    return open_driver_named(given ? *given : environment != nullptr ? environment : "");
}

gcx_driver_info open_driver_named(const std::string& name) {
    driver_choice = name;
    driver_is_simulated = driver_choice.starts_with("sim:");
    gcx::open_driver(driver_choice.c_str());
    const gcx_driver_info info = driver_info();
    driver_is_simulated = info.simulated != 0;
    return info;
}

int32_t device_named(const std::string& name, int32_t count) {
    if (const auto ordinal = parse_number(name); ordinal && name.size() < kLeastDigits) {
        if (*ordinal >= static_cast<uint32_t>(count))
            throw Failure(GCX_ERROR_INVALID_DEVICE,
                          format("there is no device %s; this driver shows %s, from 0 on",
                                 name.c_str(),
                                 count_of(static_cast<uint64_t>(count), "device").c_str()));
        return static_cast<int32_t>(*ordinal);
    }
    const std::string digits = uuid_digits(name);
    if (digits.size() < kLeastDigits)
        throw UsageError(
            format("device %s: give an ordinal or at least %zu digits of a UUID, e.g. 0 "
                   "or GPU-1b2c3d4e",
                   name.c_str(), kLeastDigits));
    std::vector<int32_t> found;
    for (int32_t device = 0; device < count; device++) {
        if (uuid_digits(uuid_text(gcx::device(device).info().uuid)).starts_with(digits))
            found.push_back(device);
    }
    if (found.size() != 1)
        throw Failure(GCX_ERROR_INVALID_DEVICE,
                      format("%s of this driver's devices has the UUID %s; gcx info lists them",
                             found.empty() ? "none" : "more than one", name.c_str()));
    return found[0];
}

int32_t device_option(const Arguments& arguments) {
    const auto given = arguments.get("--device");
    return given ? device_named(*given, gcx::device::count()) : 0;
}

void* driver_library(const gcx_driver_info& driver) {
    // The info holds only the first 255 bytes of the path.
    std::string path = driver.library;
    if (path.size() + 1 == sizeof driver.library)
        path = driver_choice.starts_with("sim:") ? gcx_simulator_path() : driver_choice;
    // Not closed: the functions are used until the process ends.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't find the open driver %s again", path.c_str()));
    return library;
}

void* driver_symbol(const gcx_driver_info& driver, const char* name) {
    void* const found = dlsym(driver_library(driver), name);
    if (found == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                      format("the driver has no function %s", name));
    return found;
}

void check_driver(int result, std::string_view call) {
    if (result == 0)
        return;
    if (call.ends_with("_v2"))
        call.remove_suffix(3);
    const auto code = static_cast<gcx_result>(result);
    throw Failure(code, format("the driver's own %s failed with %d: %s", std::string(call).c_str(),
                               result, result_string(code)));
}

bool is_simulated() {
    return driver_is_simulated;
}

double host_us() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

Json report_start(const gcx_driver_info& driver) {
    return Json::object()
        .set("simulated", driver.simulated != 0)
        .set("driver", Json::object()
                           .set("version", version_text(driver.version))
                           .set("simulated", driver.simulated != 0)
                           .set("library", driver.library)
                           .set("header_version", version_text(driver.header_version)));
}

std::string banner(const gcx_driver_info& driver) {
    if (driver.simulated == 0)
        return "";
    return format("SIMULATED: the driver is gcx's simulation of CUDA %s, no GPU is involved\n",
                  version_text(driver.version).c_str());
}

const char* const simulated_times =
    "times are those of this machine's CPU running the SIMULATED driver; they say nothing about a "
    "GPU";

std::string plain_name(const gcx_device_info& device) {
    return driver_is_simulated ? without_mark(device.name) : device.name;
}

const std::array<FamilyName, 3> family_names = {{
    {"coscheduled", family::coscheduled, split_flags::none,
     "thread block clusters within an atom's size", "the driver's own partitions"},
    {"fine", family::fine, split_flags::fine, "the smallest steps, small clusters only",
     "the smallest steps"},
    {"max-cluster", family::max_cluster, split_flags::max_cluster,
     "picked by the driver for the largest clusters", ""},
}};

std::string family_text(gcx_sm_family family) {
    const auto* const found = std::ranges::find(family_names, family, &FamilyName::family);
    return found == family_names.end() ? "another family" : std::string(found->name);
}

const FamilyName& read_family(const Arguments& arguments) {
    const std::string name = arguments.get("--family").value_or("coscheduled");
    const auto* const found = std::ranges::find(family_names, name, &FamilyName::name);
    if (found == family_names.end())
        throw UsageError("--family " + name +
                         ": no such family; there are coscheduled, fine and max-cluster, e.g. "
                         "--family fine");
    return *found;
}

std::size_t Family::equal_atoms() const {
    return sm_counts.size() - (sm_counts.back() != sm_counts.front() ? 1 : 0);
}

Family find_family(int32_t device, const FamilyName& name) {
    const resource whole = gcx::device(device).sms();
    Family family;
    try {
        // One group of all SMs: the whole device, in this family.
        family.all = whole.split({rest}, name.flags).groups[0];
    } catch (const error& error) {
        if (error.result() != GCX_ERROR_NOT_SUPPORTED &&
            error.result() != GCX_ERROR_INVALID_RESOURCE_CONFIGURATION)
            throw;
        family.unavailable = message_of(error);
        return family;
    }
    const uint32_t count = family.all.info().atom_count;
    for (uint32_t i = 0; i < count; i++) {
        family.atoms.push_back(family.all.atom(i));
        family.sm_counts.push_back(family.atoms.back().sm_count());
    }
    return family;
}

Json SmShare::json() const {
    return is_percentage() ? Json(text) : count_json(sm_count);
}

SmShare read_share(const std::string& text, const std::string& option, std::string_view help) {
    SmShare share{.text = text};
    if (text == "rest")
        return share;
    std::string wrong;
    if (text.ends_with('%')) {
        const auto percentage =
            parse_decimal(std::string_view(text).substr(0, text.size() - 1), kPercentDecimals);
        share.percentage = percentage.value_or(0);
        if (!percentage)
            wrong =
                format("\"%s\" is not a percentage like 12.5%%, with at most %zu digits after the "
                       "point",
                       text.c_str(), kPercentDecimals);
        else if (share.percentage > kWhole)
            wrong = format("%s is more than there can be (100%% at most)", text.c_str());
    } else {
        const auto count = parse_number(text);
        share.sm_count = count.value_or(0);
        if (!count)
            wrong = format("\"%s\" is not a count of SMs", text.c_str());
        else if (share.sm_count > GCX_MAX_SMS)
            wrong = format("%u SMs are more than any GPU has (%u at most)", share.sm_count,
                           GCX_MAX_SMS);
    }
    if (wrong.empty() && share.percentage == 0 && (text.ends_with('%') || share.sm_count == 0))
        wrong = "a partition of 0 SMs can run nothing";
    if (!wrong.empty())
        throw UsageError(option + ": " + wrong + "; " + std::string(help));
    return share;
}

// A percentage means a number of SMs of the whole resource, whatever others have of it. It has two
// sizes, without the remainder atom and with it, both less than an atom below the percentage. Only
// one of several partitions can have that atom: a share above 50% prefers to, so that smaller ones
// fit next to it. An allocator that can't give the smaller size gives the larger one instead, unless
// there is only one.
SmSizes find_sizes(const SmShare& share, const resource& all, const std::string& label) {
    if (!share.is_percentage())
        return {share.sm_count, share.sm_count};
    const uint32_t sm_count = all.sm_count();
    const auto most = static_cast<uint32_t>(sm_count * share.percentage / kWhole);
    const uint32_t unit = all.atom(0).sm_count();
    const uint32_t last = all.atom(all.info().atom_count - 1).sm_count();
    const uint32_t remainder = last != unit ? last : 0;
    const uint32_t units = (sm_count - remainder) / unit;
    const auto size_with = [&](uint32_t part) {
        const uint32_t size = part + std::min((most - std::min(part, most)) / unit, units) * unit;
        return size <= most && most - size < unit ? size : 0;
    };
    const uint32_t without = size_with(0);
    const uint32_t with = remainder != 0 ? size_with(remainder) : 0;
    if (without == 0 && with == 0) {
        const uint32_t smallest = remainder != 0 ? std::min(unit, remainder) : unit;
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("%s of the %u SMs of %s is less than the smallest part, %u SMs; give "
                             "%u%% or more, or --sms %u",
                             share.text.c_str(), sm_count, label.c_str(), smallest,
                             (100 * smallest + sm_count - 1) / sm_count, smallest));
    }
    if (without == 0 || with == 0)
        return {without + with, without + with, without + with};
    return {share.percentage > kWhole / 2 ? with : without, std::min(with, without),
            std::max(with, without)};
}

SmSizes find_exact_sizes(const SmShare& share, const resource& all, const FamilyName& family,
                         const std::string& label) {
    const uint32_t sm_count = all.sm_count();
    if (!share.is_percentage() && (share.sm_count == rest || share.sm_count > sm_count))
        return {share.sm_count, share.sm_count}; // the reservation or the split refuses too many
    const uint64_t requested =
        share.is_percentage() ? sm_count * share.percentage : uint64_t{share.sm_count} * kWhole;
    const auto whole = static_cast<uint32_t>(requested / kWhole);
    if (requested % kWhole == 0 && planned(all, whole) == whole)
        return {whole, whole, whole};
    const std::string text =
        share.is_percentage()
            ? format("%s of %s (%g)", share.text.c_str(), count_of(sm_count, "SM").c_str(),
                     static_cast<double>(requested) / static_cast<double>(kWhole))
            : count_of(share.sm_count, "SM");
    throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                  format("--exact: %s can't give exactly %s in the %s family; %s", label.c_str(),
                         text.c_str(), family.name, nearest_sizes(all, whole).c_str()));
}

std::string nearest_sizes(const resource& all, uint32_t sm_count) {
    uint32_t below = sm_count;
    while (below != 0 && planned(all, below) != below)
        below--;
    const uint32_t above = planned(all, sm_count + 1);
    if (below == 0 || above == 0)
        return format("the nearest size that can be given is %u", below != 0 ? below : above);
    return format("the nearest sizes that can be given are %u and %u", below, above);
}

gcx::split_flags Layout::flags() const {
    return family->flags | (exact ? split_flags::exact : split_flags::none);
}

std::string Layout::line() const {
    const gcx::device of(device);
    return format("device %d: %s, %s, %s\n", device, plain_name(of.info()).c_str(),
                  count_of(of.sms().sm_count(), "SM").c_str(), family->name);
}

Json Layout::json() const {
    return report_start(driver).set("device", device).set("family", family->name);
}

Layout open_layout(const Arguments& arguments) {
    Layout layout;
    layout.shares = read_sms(arguments);
    layout.family = &read_family(arguments);
    layout.exact = arguments.has("--exact");
    layout.driver = open_driver(arguments);
    layout.device = device_option(arguments);
    choose_requests(layout);
    return layout;
}

Partitions split_device(const Layout& layout) {
    const resource whole = gcx::device(layout.device).sms();
    const auto [groups, remainder] = whole.split(layout.requests, layout.flags());
    Partitions made{groups, {}, remainder.sm_count(), whole.sm_count()};
    for (std::size_t i = 0; i < groups.size(); i++)
        made.list.push_back({layout.requests[i].sm_count, groups[i].sm_count(), {}, {}, {}});
    return made;
}

Verification verify_partitions(const Layout& layout, Partitions& partitions) {
    std::vector<stream_ref> streams;
    streams.reserve(partitions.list.size());
    for (const Partition& partition : partitions.list)
        streams.emplace_back(partition.stream);
    const gcx::verification verified = verify(streams);

    Verification found;
    found.problem_count = verified.found.problem_count;
    for (std::string& problem : split(verified.problems(), '\n')) {
        if (!problem.empty())
            found.problems.push_back(std::move(problem));
    }
    found.overlap_count = verified.found.overlap_count;
    found.shared_by_all = bits_of(verified.found.shared_by_all);
    found.virtual_sm_numbers = verified.found.virtual_sm_numbers != 0;
    uint32_t sum = partitions.remainder;
    for (std::size_t i = 0; i < partitions.list.size(); i++) {
        Partition& partition = partitions.list[i];
        const uint32_t requested = partition.requested;
        const uint32_t given = partition.sm_count;
        const uint32_t of_stream = verified.streams[i].sm_count;
        const std::string name = "partition " + partition_name(i);
        partition.seen = bits_of(verified.streams[i].seen);
        if (requested != rest && (given < requested || (layout.exact && given != requested)))
            found.add(format("%s: %u SMs were requested, the split gives %u", name.c_str(),
                             requested, given));
        if (of_stream != given)
            found.add(format("%s: the split gives %u SMs, its stream has %u", name.c_str(), given,
                             of_stream));
        sum += given;
    }
    if (sum != partitions.available)
        found.add(format("the partitions and the remainder have %u SMs together, device %d has %u",
                         sum, layout.device, partitions.available));
    return found;
}

} // namespace gcx::cli
