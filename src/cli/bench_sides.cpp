#include "cli/bench_sides.hpp"

#include "cli/families.hpp"
#include "cli/layout.hpp"
#include "cli/stopwatch.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace gcx::cli {
namespace {

// So many in one measurement, since one takes less than the clock's own call.
constexpr int kQueries = 200;

template <class Resource>
std::vector<Resource> chosen(const std::vector<Resource>& groups, uint32_t set) {
    std::vector<Resource> some;
    for (std::size_t i = 0; i < groups.size(); i++) {
        if ((set >> i & 1U) != 0)
            some.push_back(groups[i]);
    }
    return some;
}

} // namespace

BenchShape bench_shape(int32_t device) {
    const Family atoms = find_family(device, family_names[0]).value_or(Family());
    if (atoms.atoms.size() < 2)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      format("device %d has %s: two partitions need two", device,
                             count_of(atoms.atoms.size(), "atom").c_str()));
    BenchShape shape;
    shape.device = device;
    shape.atom_count = static_cast<unsigned>(std::min<std::size_t>(equal_atoms(atoms), 31));
    shape.atom_sms = atoms.sm_counts.front();
    shape.small = std::max(1U, static_cast<unsigned>(atoms.atoms.size()) / 5) * shape.atom_sms;
    return shape;
}

GcxSide::GcxSide(const BenchShape& shape) : shape_(shape), whole_(device_sms(shape.device)) {
    const gcx_sm_request request{.sm_count = shape_.small};
    check(gcx_sm_split(&whole_, &request, 1, GCX_SPLIT_DEFAULT, &small_, nullptr));
}

Context GcxSide::small_context() const {
    Context context;
    check(gcx_context_create(&small_, 1, nullptr, context.out()));
    return context;
}

double GcxSide::query() const {
    Stopwatch watch;
    gcx_resource resource;
    for (int i = 0; i < kQueries; i++)
        check(gcx_device_get_resource(shape_.device, GCX_RESOURCE_SM, &resource));
    return watch.lap() / kQueries;
}

double GcxSide::first_context(uint32_t set) const {
    Stopwatch watch;
    const std::vector<gcx_sm_request> requests(shape_.atom_count, {.sm_count = shape_.atom_sms});
    std::vector<gcx_resource> groups(shape_.atom_count);
    check(gcx_sm_split(&whole_, requests.data(), shape_.atom_count, GCX_SPLIT_DEFAULT,
                       groups.data(), nullptr));
    const std::vector<gcx_resource> some = chosen(groups, set);
    Context context;
    check(gcx_context_create(some.data(), static_cast<uint32_t>(some.size()), nullptr,
                             context.out()));
    const double time = watch.lap();
    context.destroy();
    return time;
}

double GcxSide::kept_context() const {
    Stopwatch watch;
    small_context().destroy();
    return watch.lap();
}

double GcxSide::stream(const Context& context) const {
    Stopwatch watch;
    Stream stream;
    check(gcx_stream_create(context.get(), nullptr, stream.out()));
    stream.destroy();
    return watch.lap();
}

double GcxSide::round() const {
    Stopwatch watch;
    const gcx_sm_request requests[2] = {{.sm_count = shape_.small}, {.sm_count = GCX_REST}};
    gcx_resource parts[2];
    check(gcx_sm_split(&whole_, requests, 2, GCX_SPLIT_DEFAULT, parts, nullptr));
    Context contexts[2];
    Stream streams[2];
    for (int i = 0; i < 2; i++) {
        check(gcx_context_create(&parts[i], 1, nullptr, contexts[i].out()));
        check(gcx_stream_create(contexts[i].get(), nullptr, streams[i].out()));
    }
    for (int i = 0; i < 2; i++) {
        streams[i].destroy();
        contexts[i].destroy();
    }
    return watch.lap();
}

DriverSide::DriverSide(const gcx_driver_info& driver, const BenchShape& shape)
    : shape_(shape), raw_(driver), device_(raw_.device(shape.device)) {
    check_raw(raw_.DeviceGetDevResource(device_, &whole_, RawDriver::kResourceTypeSm),
              "cuDeviceGetDevResource");
}

RawHandle DriverSide::describe_small() const {
    std::vector<RawResource> group(1);
    split(group[0]);
    return describe(group);
}

std::size_t DriverSide::used_memory() const {
    std::size_t free = 0;
    std::size_t total = 0;
    check_raw(raw_.MemGetInfo(&free, &total), "cuMemGetInfo");
    return total - free;
}

double DriverSide::query() const {
    Stopwatch watch;
    RawResource resource;
    for (int i = 0; i < kQueries; i++)
        check_raw(raw_.DeviceGetDevResource(device_, &resource, RawDriver::kResourceTypeSm),
                  "cuDeviceGetDevResource");
    return watch.lap() / kQueries;
}

double DriverSide::first_context(uint32_t set) const {
    Stopwatch watch;
    std::vector<RawResource> groups(shape_.atom_count);
    unsigned count = shape_.atom_count;
    RawResource remainder;
    check_raw(raw_.DevSmResourceSplitByCount(groups.data(), &count, &whole_, &remainder, 0,
                                             shape_.atom_sms),
              "cuDevSmResourceSplitByCount");
    groups.resize(count);
    std::vector<RawResource> some = chosen(groups, set);
    RawHandle const green = make_green(describe(some));
    const double time = watch.lap();
    check_raw(raw_.GreenCtxDestroy(green), "cuGreenCtxDestroy");
    return time;
}

double DriverSide::kept_context(RawHandle description) const {
    Stopwatch watch;
    check_raw(raw_.GreenCtxDestroy(make_green(description)), "cuGreenCtxDestroy");
    return watch.lap();
}

double DriverSide::stream(RawHandle green) const {
    Stopwatch watch;
    check_raw(raw_.StreamDestroy(raw_.make_stream(green)), "cuStreamDestroy");
    return watch.lap();
}

double DriverSide::round() const {
    Stopwatch watch;
    std::vector<RawResource> parts[2] = {std::vector<RawResource>(1), std::vector<RawResource>(1)};
    parts[1][0] = split(parts[0][0]);
    RawHandle greens[2];
    RawHandle streams[2];
    for (int i = 0; i < 2; i++) {
        greens[i] = make_green(describe(parts[i]));
        streams[i] = raw_.make_stream(greens[i]);
    }
    for (int i = 0; i < 2; i++) {
        check_raw(raw_.StreamDestroy(streams[i]), "cuStreamDestroy");
        check_raw(raw_.GreenCtxDestroy(greens[i]), "cuGreenCtxDestroy");
    }
    return watch.lap();
}

// Splits the device by one group, as gcx's rounds do; returns the remainder.
RawResource DriverSide::split(RawResource& group) const {
    RawResource remainder;
    unsigned count = 1;
    check_raw(raw_.DevSmResourceSplitByCount(&group, &count, &whole_, &remainder, 0, shape_.small),
              "cuDevSmResourceSplitByCount");
    return remainder;
}

RawHandle DriverSide::describe(std::vector<RawResource>& resources) const {
    RawHandle description = nullptr;
    check_raw(raw_.DevResourceGenerateDesc(&description, resources.data(),
                                           static_cast<unsigned>(resources.size())),
              "cuDevResourceGenerateDesc");
    return description;
}

RawHandle DriverSide::make_green(RawHandle description) const {
    RawHandle green = nullptr;
    check_raw(raw_.GreenCtxCreate(&green, description, device_, RawDriver::kGreenCtxDefaultStream),
              "cuGreenCtxCreate");
    return green;
}

} // namespace gcx::cli
