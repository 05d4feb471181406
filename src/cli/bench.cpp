// gcx bench: gcx against the driver's own calls, in one run.
#include "cli/bench_sides.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/layout.hpp"
#include "cli/measure.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace gcx::cli {
namespace {

constexpr uint32_t kDefaultRounds = 10000;
constexpr uint32_t kMostRounds = 10'000'000;
// What gcx keeps at first, see gcx_cache_set_limit.
constexpr uint32_t kKept = 64;

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
    Bench(const gcx_driver_info& driver, int32_t device, uint32_t rounds)
        : shape_(bench_shape(device)), gcx_(shape_), driver_(driver, shape_),
          cheap_rounds_(std::clamp(rounds / 10, 20U, 10000U)),
          costly_rounds_(std::clamp(rounds / 400, 5U, 100U)) {
        memory.rounds = rounds;
    }

    void run() {
        // Holds the memory meter's context, and with it the device's primary one.
        const gcx_resource whole = device_sms(shape_.device);
        Context meter;
        check(gcx_context_create(&whole, 1, nullptr, meter.out()));
        const Pushed current(meter.get());
        measure_queries();
        measure_first_contexts();
        measure_kept_contexts();
        measure_streams();
        measure_rounds();
        measure_memory();
    }

    std::vector<Comparison> comparisons;
    Memory memory;

  private:
    void measure_queries() {
        progress_("resource queries");
        comparisons.push_back(compare(
            "resource query", cheap_rounds_, [&] { return gcx_.query(); },
            [&] { return driver_.query(); }));
    }

    // Sets of atoms of which none comes twice, as long as there are that many.
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

    void measure_first_contexts() {
        progress_("first contexts");
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
            [&] { return gcx_.first_context(next_set()); },
            [&] { return driver_.first_context(next_set()); }));
        check(gcx_cache_set_limit(kKept));
    }

    void measure_kept_contexts() {
        progress_("contexts made before");
        gcx_.kept_context();
        RawHandle const description = driver_.describe_small();
        comparisons.push_back(compare(
            "context made before (and destroy)", costly_rounds_,
            [&] { return gcx_.kept_context(); },
            [&] { return driver_.kept_context(description); }));
    }

    void measure_streams() {
        progress_("streams");
        const Context context = gcx_.small_context();
        RawHandle const green = static_cast<void*>(gcx_context_native_green(context.get()));
        comparisons.push_back(compare(
            "stream (create, destroy)", cheap_rounds_, [&] { return gcx_.stream(context); },
            [&] { return driver_.stream(green); }));
    }

    void measure_rounds() {
        progress_("split, two contexts, two streams, destroy");
        gcx_.round();
        driver_.round();
        // After the first round gcx takes no more memory (measure_memory shows it), so that what
        // is lost here is the driver's.
        const std::size_t before = driver_.used_memory();
        comparisons.push_back(compare(
            "split, 2 contexts, 2 streams, destroy", costly_rounds_, [&] { return gcx_.round(); },
            [&] { return driver_.round(); }));
        memory.driver_bytes_per_round =
            (static_cast<double>(driver_.used_memory()) - static_cast<double>(before)) /
            costly_rounds_;
    }

    void measure_memory() {
        progress_("device memory over many rounds");
        gcx_.round();
        memory.used_before_second = driver_.used_memory();
        for (uint32_t round = 1; round < memory.rounds; round++)
            gcx_.round();
        memory.used_after_last = driver_.used_memory();
    }

    Progress progress_;
    BenchShape shape_;
    GcxSide gcx_;
    DriverSide driver_;
    uint32_t cheap_rounds_;
    uint32_t costly_rounds_;
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
