// gcx bench compares gcx with the driver's own calls; gcx bench repartition measures leases.
#include "cli/args.hpp"
#include "cli/device.hpp"

#include <gcx_sim.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <set>

namespace gcx::cli {
namespace {

using Handle = void*; // the pointers behind the driver's handles

// ---- Time

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0)
        return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Returns the microseconds that body takes, or those that it returns if it times only a part.
template <class Body>
double timed(const Body& body) {
    if constexpr (std::is_same_v<decltype(body()), double>)
        return body();
    const double before = host_us();
    body();
    return host_us() - before;
}

// Shows on a terminal what is being measured, and clears the line at the end.
class Progress {
  public:
    Progress() = default;
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { print(""); }
    void operator()(const std::string& what) const { print("measuring: " + what); }

  private:
    static void print(const std::string& text) {
        if (isatty(STDERR_FILENO) != 0)
            std::fprintf(stderr, "\r\033[K%s", text.c_str());
    }
};

// How both divide a device.
struct BenchShape {
    int32_t device = 0;
    unsigned atom_count = 0; // of equal size, 31 at most
    unsigned atom_sms = 0;
    unsigned small = 0; // SMs of the smaller of two partitions
};

// Throws Failure if the device can't be divided.
BenchShape bench_shape(int32_t device) {
    const Family family = find_family(device, family_names[0]);
    if (family.atoms.size() < 2)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      format("device %d has %s: two partitions need two", device,
                             count_of(family.atoms.size(), "atom").c_str()));
    BenchShape shape;
    shape.device = device;
    shape.atom_count = static_cast<unsigned>(std::min<std::size_t>(family.equal_atoms(), 31));
    shape.atom_sms = family.sm_counts.front();
    shape.small = std::max(1U, static_cast<unsigned>(family.atoms.size()) / 5) * shape.atom_sms;
    return shape;
}

struct RoundTimes {
    std::vector<double> gcx; // microseconds
    std::vector<double> other;
};

// Runs rounds of gcx, and fewer of the other that are spread over them; both return microseconds.
// Alternately one runs first and the other first, so that what slows down in the course of the run
// affects both.
template <class Gcx, class Other>
RoundTimes alternate(uint32_t rounds, uint32_t other_rounds, const Gcx& gcx, const Other& other) {
    RoundTimes times;
    const uint32_t every = rounds / other_rounds;
    for (uint32_t round = 0; round < rounds; round++) {
        const bool both = round % every == 0 && times.other.size() < other_rounds;
        const bool gcx_first = times.other.size() % 2 == 0;
        if (both && !gcx_first)
            times.other.push_back(other());
        times.gcx.push_back(gcx());
        if (both && gcx_first)
            times.other.push_back(other());
    }
    return times;
}

// One resource query takes less than reading the clock, so this many are timed together.
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

// The steps of gcx bench with the driver's own calls. Their prototypes have been the same since
// CUDA 12.4.
class DriverSteps {
  public:
    DriverSteps(const gcx_driver_info& driver, const BenchShape& shape)
        : shape_(shape), driver_(driver) {
        DriverCall<int*, int>(driver, "cuDeviceGet")(&device_, shape.device);
        whole_ = device_sms();
        if (driver.capabilities[capability::stream_create] != 0)
            create_green_stream_.emplace(driver, "cuGreenCtxStreamCreate");
    }

    // Returns a description of the smaller partition, of which contexts are created.
    Handle describe_small() const {
        std::vector<Resource> group(1);
        split(group[0]);
        return describe(group);
    }

    // Returns bytes of device memory; needs a current context.
    std::size_t used_memory() const {
        std::size_t free = 0;
        std::size_t total = 0;
        get_memory_(&free, &total);
        return total - free;
    }

    void query() const {
        for (int i = 0; i < kQueries; i++)
            static_cast<void>(device_sms());
    }

    // Splits the device into all atoms and creates a context over those in set, given by bits.
    // Returns the microseconds of that, without the destruction.
    double first_context(uint32_t set) const {
        Handle green = nullptr;
        const double time = timed([&] {
            std::vector<Resource> groups(shape_.atom_count);
            unsigned count = shape_.atom_count;
            Resource remainder;
            split_(groups.data(), &count, &whole_, &remainder, 0, shape_.atom_sms);
            groups.resize(count);
            std::vector<Resource> some = chosen(groups, set);
            green = create_green(describe(some));
        });
        destroy_green_(green);
        return time;
    }

    void context(Handle description) const { destroy_green_(create_green(description)); }
    void stream(Handle green) const { destroy_stream_(create_stream(green)); }

    // Splits in two, creates a context and a stream in each, and destroys all.
    void round() const {
        std::array parts = {std::vector<Resource>(1), std::vector<Resource>(1)};
        parts[1][0] = split(parts[0][0]);
        std::array<Handle, 2> greens{};
        std::array<Handle, 2> streams{};
        for (std::size_t i = 0; i < 2; i++) {
            greens[i] = create_green(describe(parts[i]));
            streams[i] = create_stream(greens[i]);
        }
        for (std::size_t i = 0; i < 2; i++) {
            destroy_stream_(streams[i]);
            destroy_green_(greens[i]);
        }
    }

  private:
    // CUdevResource: 144 bytes whose content is the driver's.
    struct alignas(8) Resource {
        std::array<unsigned char, 144> bytes{};
    };
    static constexpr int kResourceTypeSm = 1;
    static constexpr unsigned kGreenCtxDefaultStream = 1;
    static constexpr unsigned kStreamNonBlocking = 1;

    Resource device_sms() const {
        Resource resource;
        get_resource_(device_, &resource, kResourceTypeSm);
        return resource;
    }

    // Splits off one group, as gcx does in a round, and returns the remainder.
    Resource split(Resource& group) const {
        Resource remainder;
        unsigned count = 1;
        split_(&group, &count, &whole_, &remainder, 0, shape_.small);
        return remainder;
    }

    Handle describe(std::vector<Resource>& resources) const {
        Handle description = nullptr;
        describe_(&description, resources.data(), static_cast<unsigned>(resources.size()));
        return description;
    }

    Handle create_green(Handle description) const {
        Handle green = nullptr;
        create_green_(&green, description, device_, kGreenCtxDefaultStream);
        return green;
    }

    Handle create_stream(Handle green) const {
        Handle stream = nullptr;
        if (create_green_stream_) {
            (*create_green_stream_)(&stream, green, kStreamNonBlocking, 0);
            return stream;
        }
        Handle context = nullptr;
        from_green_(&context, green);
        push_(context);
        create_stream_(&stream, kStreamNonBlocking, 0);
        pop_(&context);
        return stream;
    }

    BenchShape shape_;
    gcx_driver_info driver_;
    int device_ = 0;
    Resource whole_;
    DriverCall<int, Resource*, int> get_resource_{driver_, "cuDeviceGetDevResource"};
    DriverCall<Resource*, unsigned*, const Resource*, Resource*, unsigned, unsigned> split_{
        driver_, "cuDevSmResourceSplitByCount"};
    DriverCall<Handle*, Resource*, unsigned> describe_{driver_, "cuDevResourceGenerateDesc"};
    DriverCall<Handle*, Handle, int, unsigned> create_green_{driver_, "cuGreenCtxCreate"};
    DriverCall<Handle> destroy_green_{driver_, "cuGreenCtxDestroy"};
    DriverCall<Handle*, Handle> from_green_{driver_, "cuCtxFromGreenCtx"};
    DriverCall<Handle> push_{driver_, "cuCtxPushCurrent_v2"};
    DriverCall<Handle*> pop_{driver_, "cuCtxPopCurrent_v2"};
    DriverCall<Handle*, unsigned, int> create_stream_{driver_, "cuStreamCreateWithPriority"};
    DriverCall<Handle> destroy_stream_{driver_, "cuStreamDestroy_v2"};
    DriverCall<std::size_t*, std::size_t*> get_memory_{driver_, "cuMemGetInfo_v2"};
    // Since CUDA 12.5.
    std::optional<DriverCall<Handle*, Handle, unsigned, int>> create_green_stream_;
};

// ---- gcx bench

constexpr uint32_t kDefaultRounds = 10000;
constexpr uint32_t kMaxRounds = 10'000'000;
constexpr uint32_t kCacheLimit = 64; // the library's default

struct Comparison {
    std::string name;
    uint32_t rounds = 0;
    double gcx_us = 0; // medians
    double driver_us = 0;
    double pairwise_ratio = 0; // the median of each round's ratio, gcx / driver

    double ratio() const { return driver_us > 0 ? gcx_us / driver_us : 0; }

    Json json() const {
        return Json::object()
            .set("name", name)
            .set("rounds", rounds)
            .set("gcx_us", gcx_us)
            .set("driver_us", driver_us)
            .set("ratio", ratio())
            .set("pairwise_ratio", pairwise_ratio);
    }
};

class Bench {
  public:
    Bench(const gcx_driver_info& driver, int32_t device, uint32_t rounds)
        : shape_(bench_shape(device)), driver_(driver, shape_), rounds_(rounds),
          cheap_rounds_(std::clamp(rounds / 10, 20U, 10000U)),
          costly_rounds_(std::clamp(rounds / 400, 5U, 100U)), whole_(gcx::device(device).sms()),
          small_(whole_.split({shape_.small}).groups[0]) {}

    void run() {
        // used_memory() needs a current context, which also retains the primary context.
        const context meter(whole_);
        const current_guard current(meter);
        const gcx::device device(shape_.device);
        const auto query = [&] {
            for (int i = 0; i < kQueries; i++)
                static_cast<void>(device.sms());
        };
        compare("resource query", cheap_rounds_, query, [&] { driver_.query(); });
        comparisons.back().gcx_us /= kQueries;
        comparisons.back().driver_us /= kQueries;
        compare_first_contexts();

        const auto cached = [&] { context(small_).close(); };
        cached();
        Handle const description = driver_.describe_small();
        compare("cached context (and destroy)", costly_rounds_, cached,
                [&] { driver_.context(description); });

        const context small(small_);
        Handle const green = small.native_green();
        compare(
            "stream (create, destroy)", cheap_rounds_, [&] { stream(small).close(); },
            [&] { driver_.stream(green); });
        compare_rounds();
        measure_memory();
    }

    std::vector<Comparison> comparisons;
    std::size_t used_before_second = 0; // bytes of device memory, in the rounds of gcx
    std::size_t used_after_last = 0;
    double driver_bytes_per_round = 0;

    long long difference() const {
        return static_cast<long long>(used_after_last) - static_cast<long long>(used_before_second);
    }

  private:
    template <class Gcx, class Driver>
    void compare(const char* name, uint32_t rounds, const Gcx& gcx, const Driver& driver) {
        progress_(name);
        const RoundTimes times =
            alternate(rounds, rounds, [&] { return timed(gcx); }, [&] { return timed(driver); });
        std::vector<double> ratios;
        for (std::size_t i = 0; i < rounds; i++) {
            if (times.other[i] > 0)
                ratios.push_back(times.gcx[i] / times.other[i]);
        }
        comparisons.push_back({name, rounds, median(times.gcx), median(times.other),
                               ratios.empty() ? 0 : median(ratios)});
    }

    // Returns a set of atoms that was not used before, as long as there is one.
    uint32_t fresh_set() {
        const uint32_t sets = (1U << shape_.atom_count) - 1;
        if (used_sets_.size() == sets)
            used_sets_.clear();
        while (true) {
            const uint32_t set = static_cast<uint32_t>(random_()) % sets + 1;
            if (used_sets_.insert(set).second)
                return set;
        }
    }

    double first_context(uint32_t set) const {
        context made;
        return timed([&] {
            const std::vector<request> requests(shape_.atom_count, request(shape_.atom_sms));
            made = context(chosen(whole_.split(requests).groups, set));
        });
    }

    void compare_first_contexts() {
        // Nothing is cached, so that both sides create and destroy each context.
        set_cache_limit(0);
        uint32_t set = 0;
        bool second = false;
        const auto next_set = [&] {
            if (!second)
                set = fresh_set();
            second = !second;
            return set;
        };
        compare(
            "first context (split, create)", costly_rounds_,
            [&] { return first_context(next_set()); },
            [&] { return driver_.first_context(next_set()); });
        set_cache_limit(kCacheLimit);
    }

    void round() const {
        const auto parts = whole_.split({shape_.small, rest}).groups;
        std::array<context, 2> contexts;
        std::array<stream, 2> streams;
        for (std::size_t i = 0; i < 2; i++) {
            contexts[i] = context(parts[i]);
            streams[i] = stream(contexts[i]);
        }
        for (std::size_t i = 0; i < 2; i++) {
            streams[i].close();
            contexts[i].close();
        }
    }

    void compare_rounds() {
        round();
        driver_.round();
        // After its first round gcx uses no more memory (see measure_memory), so the driver's own
        // calls lose what is lost here.
        const std::size_t before = driver_.used_memory();
        compare(
            "split, 2 contexts, 2 streams, destroy", costly_rounds_, [&] { round(); },
            [&] { driver_.round(); });
        driver_bytes_per_round =
            (static_cast<double>(driver_.used_memory()) - static_cast<double>(before)) /
            costly_rounds_;
    }

    void measure_memory() {
        progress_("device memory over many rounds");
        round();
        used_before_second = driver_.used_memory();
        for (uint32_t i = 1; i < rounds_; i++)
            round();
        used_after_last = driver_.used_memory();
    }

    Progress progress_;
    BenchShape shape_;
    DriverSteps driver_;
    uint32_t rounds_;
    uint32_t cheap_rounds_;
    uint32_t costly_rounds_;
    resource whole_;
    resource small_;
    std::set<uint32_t> used_sets_;
    std::minstd_rand random_;
};

// ---- gcx bench repartition

constexpr uint32_t kDefaultChanges = 1000;
constexpr uint32_t kMaxChanges = 1'000'000;
constexpr uint64_t kKernelNs = 10'000;
constexpr uint64_t kLoadNs = 2'000'000; // kernels of the busy lease

constexpr char kRepartitionNote[] =
    "times are SIMULATED: what the driver's calls and kernels were measured to take; gcx's own "
    "work isn't in them";

// Microseconds: the host's on a GPU. On the simulated driver those of its clock, by which calls and
// kernels take what they were measured to take.
class BenchClock {
  public:
    explicit BenchClock(const gcx_driver_info& driver) {
        if (driver.simulated != 0)
            get_counts_ = reinterpret_cast<decltype(&gcx_sim_get_counts)>(
                driver_symbol(driver, "gcx_sim_get_counts"));
    }

    double now() const {
        if (get_counts_ == nullptr)
            return host_us();
        gcx_sim_counts counts{};
        get_counts_(&counts);
        return static_cast<double>(counts.clock_ns) / 1000;
    }

    template <class Body>
    double time(const Body& body) const {
        const double before = now();
        body();
        return now() - before;
    }

  private:
    decltype(&gcx_sim_get_counts) get_counts_ = nullptr; // null: a real driver
};

// gcx_spin(uint64_t nanoseconds), which the simulated driver knows by its name.
constexpr char kSpin[] = R"(
.version 6.3
.target sm_70
.address_size 64

.visible .entry gcx_spin(
    .param .u64 nanoseconds
)
{
    .reg .pred  %p<2>;
    .reg .b64   %rd<5>;

    ld.param.u64    %rd1, [nanoseconds];
    mov.u64         %rd2, %globaltimer;
MORE:
    mov.u64         %rd3, %globaltimer;
    sub.s64         %rd4, %rd3, %rd2;
    setp.lt.u64     %p1, %rd4, %rd1;
    @%p1 bra        MORE;
    ret;
}
)";

// Kernels that last for a given time.
class SpinKernel {
  public:
    SpinKernel(const gcx_driver_info& driver, int32_t device)
        : whole_(gcx::device(device).sms()), unload_(driver, "cuLibraryUnload"),
          launch_(driver, "cuLaunchKernel") {
        const DriverCall<Handle*, const void*, Handle, Handle, unsigned, Handle, Handle, unsigned>
            load(driver, "cuLibraryLoadData");
        const DriverCall<Handle*, Handle, const char*> get_kernel(driver, "cuLibraryGetKernel");
        const current_guard current(whole_);
        load(&library_, kSpin, nullptr, nullptr, 0, nullptr, nullptr, 0);
        get_kernel(&kernel_, library_, "gcx_spin");
    }
    ~SpinKernel() {
        try {
            const current_guard current(whole_);
            unload_(library_);
        } catch (const std::exception& problem) {
            std::fprintf(stderr, "gcx bench: the kernel was not unloaded: %s\n", problem.what());
        }
    }
    SpinKernel(const SpinKernel&) = delete;
    SpinKernel& operator=(const SpinKernel&) = delete;

    // Launches one small block.
    void spin(const stream& stream, uint64_t nanoseconds) const {
        launch(stream, 1, 32, nanoseconds);
    }
    // Launches blocks that fill the SMs: an SM has room for two blocks of 1024 threads at most.
    void fill(const stream& stream, uint32_t sm_count, uint64_t nanoseconds) const {
        launch(stream, 2 * sm_count, 1024, nanoseconds);
    }

  private:
    void launch(const stream& stream, unsigned blocks, unsigned threads,
                uint64_t nanoseconds) const {
        void* arguments[] = {&nanoseconds};
        launch_(kernel_, blocks, 1, 1, threads, 1, 1, 0, stream.native(), arguments, nullptr);
    }

    context whole_;
    DriverCall<Handle> unload_;
    DriverCall<Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle,
               void**, void**>
        launch_;
    Handle library_ = nullptr;
    Handle kernel_ = nullptr;
};

// Microseconds.
struct Timing {
    double median_us = 0;
    double p99_us = 0;
    std::size_t rounds = 0;

    explicit Timing(std::vector<double> times) : rounds(times.size()) {
        std::ranges::sort(times);
        median_us = median(times);
        p99_us = times[(times.size() * 99 + 99) / 100 - 1];
    }
    Json json() const {
        return Json::object()
            .set("median_us", median_us)
            .set("p99_us", p99_us)
            .set("rounds", rounds);
    }
};

struct Row {
    const char* name;
    const char* against; // what gcx is compared with
    Timing gcx;
    Timing other;

    double ratio() const { return other.median_us > 0 ? gcx.median_us / other.median_us : 0; }

    Json json() const {
        return Json::object()
            .set("name", name)
            .set("gcx", gcx.json())
            .set("against", against)
            .set("baseline", other.json())
            .set("ratio", ratio());
    }
};

class Repartition {
  public:
    Repartition(const gcx_driver_info& driver, int32_t device, uint32_t rounds)
        : shape_(bench_shape(device)), clock_(driver), kernel_(driver, device),
          driver_(driver, shape_), rounds_(rounds),
          costly_rounds_(std::clamp(rounds / 50, 1U, 50U)) {
        constexpr unsigned kAtoms = 4; // 1 and 2 that change, 1 of the busy lease
        if (shape_.atom_count < kAtoms)
            throw Failure(GCX_ERROR_NOT_SUPPORTED,
                          format("device %d has %u atoms of equal size: two partitions that change "
                                 "next to a third need %u",
                                 device, shape_.atom_count, kAtoms));
        acquire_and_release(); // creates the context
    }

    std::vector<Row> run() {
        constexpr const char* kDriver = "driver: split, create, destroy";
        std::vector<Row> rows;
        const auto compare_with_driver = [&](const char* name, const char* against, bool busy,
                                             const auto& body) {
            rows.push_back(compare_rounds(name, against, costly_rounds_, busy, body,
                                          [&] { driver_.round(); }));
        };
        compare_with_driver("acquire and release", kDriver, false, [&] { acquire_and_release(); });
        acquire_first();
        compare_with_driver("resize one lease, idle", kDriver, false, [&] { resize_first(); });
        acquire_second();
        compare_with_driver("resize two leases, idle", kDriver, false, [&] { resize_both(); });
        compare_with_driver("resize two leases, next to a busy third", "driver: the same, busy",
                            true, [&] { resize_both(); });
        for (const bool busy : {false, true}) {
            rows.push_back(compare_rounds(
                busy ? "resize to its first kernel's end, busy"
                     : "resize to its first kernel's end",
                "the same kernel without a resize", rounds_, busy,
                [&] {
                    resize_both();
                    run_kernel();
                },
                [&] { run_kernel(); }));
        }
        return rows;
    }

  private:
    // Acquires a lease next to a busy one; it can grow onto the SMs of the second, later.
    void acquire_first() {
        busy_lease_ = lease(shape_.device, shape_.atom_sms);
        first_ = lease(shape_.device, shape_.atom_sms);
        busy_ = stream(busy_lease_);
        moving_ = stream(first_);
        warm_up([&] { resize_first(); });
    }

    void acquire_second() {
        if (large_)
            resize_first();
        second_ = lease(shape_.device, 2 * shape_.atom_sms);
        warm_up([&] { resize_both(); });
    }

    // Resizes until the contexts of both layouts are cached and have run a kernel.
    template <class Resize>
    void warm_up(const Resize& resize) const {
        for (int i = 0; i < 4; i++) {
            resize();
            run_kernel();
        }
    }

    // Resizes between one atom and two.
    void resize_first() {
        first_.resize((large_ ? 1 : 2) * shape_.atom_sms);
        large_ = !large_;
    }

    // Moves an atom from one lease to the other.
    void resize_both() {
        const uint32_t one = shape_.atom_sms;
        resize({{first_, large_ ? one : 2 * one}, {second_, large_ ? 2 * one : one}});
        large_ = !large_;
    }

    void acquire_and_release() const { lease(shape_.device, shape_.atom_sms).close(); }

    void run_kernel() const {
        kernel_.spin(moving_, kKernelNs);
        moving_.synchronize();
    }

    // Keeps the busy stream at work for longer than a measurement takes.
    void load() const {
        if (busy_.query())
            kernel_.fill(busy_, shape_.atom_sms, kLoadNs);
    }

    template <class Gcx, class Other>
    Row compare_rounds(const char* name, const char* against, uint32_t other_rounds, bool busy,
                       const Gcx& gcx, const Other& other) {
        progress_(name);
        const auto measure = [&](const auto& body) {
            if (busy)
                load();
            return clock_.time(body);
        };
        const RoundTimes times = alternate(
            rounds_, other_rounds, [&] { return measure(gcx); }, [&] { return measure(other); });
        if (busy)
            busy_.synchronize();
        return {name, against, Timing(times.gcx), Timing(times.other)};
    }

    Progress progress_;
    BenchShape shape_;
    BenchClock clock_;
    SpinKernel kernel_;
    DriverSteps driver_;
    uint32_t rounds_;
    uint32_t costly_rounds_;
    lease busy_lease_;
    lease first_;
    lease second_;
    stream busy_;
    stream moving_;
    bool large_ = false; // whether first_ has two atoms
};

std::string device_line(int32_t device) {
    return format("device %d: %s\n", device, plain_name(gcx::device(device).info()).c_str());
}

void add_note(Report& report, const gcx_driver_info& driver, const char* note) {
    if (driver.simulated == 0)
        return;
    report.text += std::string(note) + "\n";
    report.json.set("note", note);
}

} // namespace

Report run_bench(const Arguments& arguments) {
    const uint32_t rounds = arguments.number("--rounds", 2, kMaxRounds, kDefaultRounds);
    const gcx_driver_info driver = open_driver(arguments);
    const int32_t device = device_option(arguments);
    Bench bench(driver, device, rounds);
    bench.run();

    Report report;
    report.text = banner(driver) + device_line(device) +
                  "medians; gcx and the driver's own calls in turns\n"
                  "                                        gcx us    driver us  gcx / driver   "
                  "rounds\n";
    for (const Comparison& each : bench.comparisons)
        report.text += format("%-34s %11.3f  %11.3f  %12.5f  %7u\n", each.name.c_str(), each.gcx_us,
                              each.driver_us, each.ratio(), each.rounds);
    report.text +=
        format("device memory over %u rounds of gcx, from before the second to after the "
               "last: %+lld bytes\n"
               "device memory that each round of the driver's own calls loses: %.0f "
               "bytes\n",
               rounds, bench.difference(), bench.driver_bytes_per_round);
    report.json =
        report_start(driver)
            .set("device", device)
            .set("rounds", rounds)
            .set("measurements", Json::array(bench.comparisons, std::mem_fn(&Comparison::json)))
            .set("memory", Json::object()
                               .set("rounds", rounds)
                               .set("used_before_second_round", bench.used_before_second)
                               .set("used_after_last_round", bench.used_after_last)
                               .set("difference_bytes", bench.difference())
                               .set("driver_bytes_per_round", bench.driver_bytes_per_round));
    add_note(report, driver, simulated_times);
    return report;
}

Report run_bench_repartition(const Arguments& arguments) {
    const uint32_t rounds = arguments.number("--rounds", 2, kMaxChanges, kDefaultChanges);
    const gcx_driver_info driver = open_driver(arguments);
    const int32_t device = device_option(arguments);
    const std::vector<Row> rows = Repartition(driver, device, rounds).run();

    Report report;
    report.text =
        banner(driver) + device_line(device) +
        format("microseconds, in turns within one run\n%-40s %9s %9s  %-32s %9s %9s %9s\n", "gcx",
               "median", "p99", "compared with", "median", "p99", "ratio");
    for (const Row& row : rows)
        report.text +=
            format("%-40s %9.2f %9.2f  %-32s %9.2f %9.2f %9.5f\n", row.name, row.gcx.median_us,
                   row.gcx.p99_us, row.against, row.other.median_us, row.other.p99_us, row.ratio());
    report.json = report_start(driver)
                      .set("device", device)
                      .set("rounds", rounds)
                      .set("measurements", Json::array(rows, std::mem_fn(&Row::json)));
    add_note(report, driver, kRepartitionNote);
    return report;
}

} // namespace gcx::cli
