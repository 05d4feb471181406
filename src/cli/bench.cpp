// gcx bench: gcx against the driver's own calls, in one run.
#include "cli/driver.hpp"
#include "cli/families.hpp"
#include "cli/layout.hpp"
#include "cli/measure.hpp"
#include "cli/raw_driver.hpp"
#include "cli/report.hpp"
#include "cli/stopwatch.hpp"
#include "cli/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

namespace gcx::cli {
namespace {

constexpr uint32_t kDefaultRounds = 10000;
constexpr uint32_t kMostRounds = 10'000'000;
// What gcx keeps at first, see gcx_cache_set_limit.
constexpr uint32_t kKept = 64;

// Tells a person who waits what is going on; not in a log.
void progress(const char* what) {
    if (isatty(STDERR_FILENO) != 0)
        std::fprintf(stderr, "\r\033[Kmeasuring: %s", what);
}

void end_progress() {
    if (isatty(STDERR_FILENO) != 0)
        std::fputs("\r\033[K", stderr);
}

struct Memory {
    uint32_t rounds = 0;
    std::size_t used_before_second = 0;
    std::size_t used_after_last = 0;
    double driver_bytes_per_round = 0;

    long long difference() const {
        return static_cast<long long>(used_after_last) - static_cast<long long>(used_before_second);
    }
};

class Bench {
  public:
    Bench(const gcx_driver_info& driver, int32_t ordinal, uint32_t rounds)
        : raw_(driver), device_(raw_.device(ordinal)), whole_(device_sms(ordinal)),
          cheap_rounds_(std::clamp(rounds / 10, 20U, 10000U)),
          costly_rounds_(std::clamp(rounds / 400, 5U, 100U)) {
        memory.rounds = rounds;
        check_raw(raw_.DeviceGetDevResource(device_, &raw_whole_, RawDriver::kResourceTypeSm),
                  "cuDeviceGetDevResource");
        const Family atoms = find_family(ordinal, family_names[0]).value_or(Family());
        if (atoms.atoms.size() < 2)
            throw Failure(GCX_ERROR_NOT_SUPPORTED,
                          format("device %d has %s: two partitions need two", ordinal,
                                 count_of(atoms.atoms.size(), "atom").c_str()));
        atom_count_ = static_cast<unsigned>(std::min<std::size_t>(equal_atoms(atoms), 31));
        atom_sms_ = atoms.sm_counts.front();
        small_ = std::max(1U, static_cast<unsigned>(atoms.atoms.size()) / 5) * atom_sms_;
    }

    void run() {
        // Holds the memory meter's context, and with it the device's primary one.
        Context meter;
        check(gcx_context_create(&whole_, 1, nullptr, meter.out()));
        const Pushed current(meter.get());
        measure_queries();
        measure_first_contexts();
        measure_kept_contexts();
        measure_streams();
        measure_rounds();
        measure_memory();
        end_progress();
    }

    std::vector<Comparison> comparisons;
    Memory memory;

  private:
    void measure_queries() {
        progress("resource queries");
        constexpr int kCalls = 200;
        const auto gcx = [&] {
            Stopwatch watch;
            gcx_resource resource;
            for (int i = 0; i < kCalls; i++)
                check(gcx_device_get_resource(device_, GCX_RESOURCE_SM, &resource));
            return watch.lap() / kCalls;
        };
        const auto driver = [&] {
            Stopwatch watch;
            RawResource resource;
            for (int i = 0; i < kCalls; i++)
                check_raw(raw_.DeviceGetDevResource(device_, &resource, RawDriver::kResourceTypeSm),
                          "cuDeviceGetDevResource");
            return watch.lap() / kCalls;
        };
        comparisons.push_back(compare("resource query", cheap_rounds_, gcx, driver));
    }

    // Sets of atoms of which none comes twice, as long as there are that many.
    uint32_t fresh_set() {
        const uint32_t sets = (1U << atom_count_) - 1;
        if (used_sets_.size() == sets)
            used_sets_.clear();
        while (true) {
            const uint32_t set = static_cast<uint32_t>(random_()) % sets + 1;
            if (used_sets_.insert(set).second)
                return set;
        }
    }

    double first_context_of_gcx(uint32_t set) {
        Stopwatch watch;
        std::vector<gcx_sm_request> requests(atom_count_);
        for (gcx_sm_request& request : requests)
            request.sm_count = atom_sms_;
        std::vector<gcx_resource> groups(atom_count_);
        check(gcx_sm_split(&whole_, requests.data(), atom_count_, GCX_SPLIT_DEFAULT, groups.data(),
                           nullptr));
        std::vector<gcx_resource> chosen;
        for (unsigned i = 0; i < atom_count_; i++) {
            if ((set >> i & 1U) != 0)
                chosen.push_back(groups[i]);
        }
        Context context;
        check(gcx_context_create(chosen.data(), static_cast<uint32_t>(chosen.size()), nullptr,
                                 context.out()));
        const double time = watch.lap();
        context.destroy();
        return time;
    }

    double first_context_of_driver(uint32_t set) {
        Stopwatch watch;
        std::vector<RawResource> groups(atom_count_);
        unsigned count = atom_count_;
        RawResource remainder;
        check_raw(raw_.DevSmResourceSplitByCount(groups.data(), &count, &raw_whole_, &remainder, 0,
                                                 atom_sms_),
                  "cuDevSmResourceSplitByCount");
        std::vector<RawResource> chosen;
        for (unsigned i = 0; i < count; i++) {
            if ((set >> i & 1U) != 0)
                chosen.push_back(groups[i]);
        }
        RawHandle const green = make_green(chosen);
        const double time = watch.lap();
        check_raw(raw_.GreenCtxDestroy(green), "cuGreenCtxDestroy");
        return time;
    }

    void measure_first_contexts() {
        progress("first contexts");
        // Nothing is kept, so that each context is made, and destroyed on both sides.
        check(gcx_cache_set_limit(0));
        uint32_t set = 0;
        bool second = false;
        const auto next_set = [&] {
            if (!second)
                set = fresh_set();
            second = !second;
            return set;
        };
        comparisons.push_back(compare(
            "first context (split, create)", costly_rounds_,
            [&] { return first_context_of_gcx(next_set()); },
            [&] { return first_context_of_driver(next_set()); }));
        check(gcx_cache_set_limit(kKept));
    }

    void measure_kept_contexts() {
        progress("contexts made before");
        gcx_resource part;
        const gcx_sm_request request{.sm_count = small_};
        check(gcx_sm_split(&whole_, &request, 1, GCX_SPLIT_DEFAULT, &part, nullptr));
        const auto gcx = [&] {
            Stopwatch watch;
            Context context;
            check(gcx_context_create(&part, 1, nullptr, context.out()));
            context.destroy();
            return watch.lap();
        };
        gcx();
        std::vector<RawResource> group(1);
        split_raw(group[0]);
        RawHandle const description = describe(group);
        const auto driver = [&] {
            Stopwatch watch;
            RawHandle green = nullptr;
            check_raw(raw_.GreenCtxCreate(&green, description, device_,
                                          RawDriver::kGreenCtxDefaultStream),
                      "cuGreenCtxCreate");
            check_raw(raw_.GreenCtxDestroy(green), "cuGreenCtxDestroy");
            return watch.lap();
        };
        comparisons.push_back(
            compare("context made before (and destroy)", costly_rounds_, gcx, driver));
    }

    void measure_streams() {
        progress("streams");
        gcx_resource part;
        const gcx_sm_request request{.sm_count = small_};
        check(gcx_sm_split(&whole_, &request, 1, GCX_SPLIT_DEFAULT, &part, nullptr));
        Context context;
        check(gcx_context_create(&part, 1, nullptr, context.out()));
        const auto gcx = [&] {
            Stopwatch watch;
            Stream stream;
            check(gcx_stream_create(context.get(), nullptr, stream.out()));
            stream.destroy();
            return watch.lap();
        };
        RawHandle const green = static_cast<void*>(gcx_context_native_green(context.get()));
        const auto driver = [&] {
            Stopwatch watch;
            check_raw(raw_.StreamDestroy(raw_.make_stream(green)), "cuStreamDestroy");
            return watch.lap();
        };
        comparisons.push_back(compare("stream (create, destroy)", cheap_rounds_, gcx, driver));
    }

    // Split in two, a context and a stream in each, all destroyed.
    double round_of_gcx() {
        Stopwatch watch;
        const gcx_sm_request requests[2] = {{.sm_count = small_}, {}};
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

    double round_of_driver() {
        Stopwatch watch;
        std::vector<RawResource> parts[2] = {std::vector<RawResource>(1),
                                             std::vector<RawResource>(1)};
        parts[1][0] = split_raw(parts[0][0]);
        RawHandle greens[2];
        RawHandle streams[2];
        for (int i = 0; i < 2; i++) {
            greens[i] = make_green(parts[i]);
            streams[i] = raw_.make_stream(greens[i]);
        }
        for (int i = 0; i < 2; i++) {
            check_raw(raw_.StreamDestroy(streams[i]), "cuStreamDestroy");
            check_raw(raw_.GreenCtxDestroy(greens[i]), "cuGreenCtxDestroy");
        }
        return watch.lap();
    }

    void measure_rounds() {
        progress("split, two contexts, two streams, destroy");
        round_of_gcx();
        round_of_driver();
        // After the first round gcx takes no more memory (measure_memory shows it), so that what
        // is lost here is the driver's.
        const std::size_t before = used_memory();
        comparisons.push_back(compare(
            "split, 2 contexts, 2 streams, destroy", costly_rounds_, [&] { return round_of_gcx(); },
            [&] { return round_of_driver(); }));
        memory.driver_bytes_per_round =
            (static_cast<double>(used_memory()) - static_cast<double>(before)) / costly_rounds_;
    }

    void measure_memory() {
        progress("device memory over many rounds");
        round_of_gcx();
        memory.used_before_second = used_memory();
        for (uint32_t round = 1; round < memory.rounds; round++)
            round_of_gcx();
        memory.used_after_last = used_memory();
    }

    std::size_t used_memory() const {
        std::size_t free = 0;
        std::size_t total = 0;
        check_raw(raw_.MemGetInfo(&free, &total), "cuMemGetInfo");
        return total - free;
    }

    // Splits the device by one group, as gcx's rounds do; returns the remainder.
    RawResource split_raw(RawResource& group) const {
        RawResource remainder;
        unsigned count = 1;
        check_raw(
            raw_.DevSmResourceSplitByCount(&group, &count, &raw_whole_, &remainder, 0, small_),
            "cuDevSmResourceSplitByCount");
        return remainder;
    }

    RawHandle describe(std::vector<RawResource>& resources) const {
        RawHandle description = nullptr;
        check_raw(raw_.DevResourceGenerateDesc(&description, resources.data(),
                                               static_cast<unsigned>(resources.size())),
                  "cuDevResourceGenerateDesc");
        return description;
    }

    RawHandle make_green(std::vector<RawResource>& resources) const {
        RawHandle green = nullptr;
        check_raw(raw_.GreenCtxCreate(&green, describe(resources), device_,
                                      RawDriver::kGreenCtxDefaultStream),
                  "cuGreenCtxCreate");
        return green;
    }

    RawDriver raw_;
    int device_;
    gcx_resource whole_;
    RawResource raw_whole_;
    uint32_t cheap_rounds_;
    uint32_t costly_rounds_;
    unsigned atom_count_ = 0; // equal ones
    unsigned atom_sms_ = 0;
    unsigned small_ = 0; // SMs of the smaller of two partitions
    std::set<uint32_t> used_sets_;
    std::minstd_rand random_;
};

} // namespace

Report run_bench(const Arguments& arguments) {
    const auto device = static_cast<int32_t>(arguments.number("--device", 0, 1023, 0));
    const uint32_t rounds = arguments.number("--rounds", 2, kMostRounds, kDefaultRounds);
    const gcx_driver_info driver = open_driver(arguments);
    Bench bench(driver, device, rounds);
    bench.run();

    Report report;
    report.json = report_start(driver);
    report.text = banner(driver);
    report.text += format("device %d: %s\n", device, plain_name(device_info(device)).c_str());
    report.text += "medians; gcx and the driver's own calls in turns\n" + Comparison::heading();
    Json measurements = Json::array();
    for (const Comparison& comparison : bench.comparisons) {
        measurements.add(comparison.json());
        report.text += comparison.line();
    }
    const Memory& memory = bench.memory;
    report.text +=
        format("device memory over %u rounds of gcx, from before the second to after the "
               "last: %+lld bytes\n"
               "device memory that each round of the driver's own calls loses: %.0f "
               "bytes\n",
               memory.rounds, memory.difference(), memory.driver_bytes_per_round);
    report.text += times_note(driver);
    report.json.set("device", device)
        .set("rounds", rounds)
        .set("measurements", std::move(measurements))
        .set("memory", Json::object()
                           .set("rounds", memory.rounds)
                           .set("used_before_second_round", memory.used_before_second)
                           .set("used_after_last_round", memory.used_after_last)
                           .set("difference_bytes", memory.difference())
                           .set("driver_bytes_per_round", memory.driver_bytes_per_round));
    if (driver.simulated != 0)
        report.json.set("note", "times are those of this machine's CPU running the SIMULATED "
                                "driver; they say nothing about a GPU");
    return report;
}

} // namespace gcx::cli
