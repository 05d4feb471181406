// gcx bench repartition: leases that change at work, in one run with the driver's own way.
#include "cli/bench_sides.hpp"
#include "cli/bench_work.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/measure.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <vector>

namespace gcx::cli {
namespace {

constexpr uint32_t kDefaultChanges = 1000;
constexpr uint32_t kMostChanges = 1'000'000;
constexpr uint64_t kKernelNs = 10'000;
constexpr uint64_t kLoadNs = 2'000'000; // kernels of the busy neighbour

using Lease = Owned<gcx_lease, gcx_lease_release>;

// Microseconds: medians, and what one in a hundred exceeds.
struct Timing {
    double median_us = 0;
    double p99_us = 0;
    std::size_t rounds = 0;

    explicit Timing(std::vector<double> times) : rounds(times.size()) {
        std::sort(times.begin(), times.end());
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
    const char* against; // what beside is
    Timing gcx;
    Timing beside;

    double ratio() const { return beside.median_us > 0 ? gcx.median_us / beside.median_us : 0; }
};

class Repartition {
  public:
    Repartition(const gcx_driver_info& driver, int32_t device, uint32_t rounds)
        : shape_(bench_shape(device)), clock_(driver), work_(driver, device),
          driver_(driver, shape_), rounds_(rounds),
          costly_rounds_(std::clamp(rounds / 50, 1U, 50U)) {
        constexpr unsigned kAtoms = 4; // 1 and 2 that change, 1 of the neighbour
        if (shape_.atom_count < kAtoms)
            throw Failure(GCX_ERROR_NOT_SUPPORTED,
                          format("device %d has %u atoms of equal size: two partitions that change "
                                 "beside a third need %u",
                                 device, shape_.atom_count, kAtoms));
        acquire_and_release(); // makes the context
    }

    std::vector<Row> run() {
        std::vector<Row> rows;
        rows.push_back(compare_rounds(
            "acquire and release", "driver: split, create, destroy", costly_rounds_, false,
            [&] { acquire_and_release(); }, [&] { driver_.round(); }));
        take_first();
        rows.push_back(compare_rounds(
            "resize one lease, idle", "driver: split, create, destroy", costly_rounds_, false,
            [&] { resize_first(); }, [&] { driver_.round(); }));
        take_second();
        rows.push_back(compare_rounds(
            "resize two leases, idle", "driver: split, create, destroy", costly_rounds_, false,
            [&] { resize(); }, [&] { driver_.round(); }));
        rows.push_back(compare_rounds(
            "resize two leases, beside a busy third", "driver: the same, busy", costly_rounds_,
            true, [&] { resize(); }, [&] { driver_.round(); }));
        for (const bool busy : {false, true}) {
            rows.push_back(compare_rounds(
                busy ? "resize to its first kernel's end, busy"
                     : "resize to its first kernel's end",
                "the same kernel without a resize", rounds_, busy,
                [&] {
                    resize();
                    run_kernel();
                },
                [&] { run_kernel(); }));
        }
        return rows;
    }

  private:
    // One that may have the free SMs of the second, which isn't there yet.
    void take_first() {
        neighbour_ = acquire(shape_.atom_sms);
        first_ = acquire(shape_.atom_sms);
        for (const auto& [lease, stream] : {std::pair(&neighbour_, &busy_), {&first_, &moving_}})
            check(gcx_lease_stream_create(lease->get(), nullptr, stream->out()));
        make_both([&] { resize_first(); });
    }

    void take_second() {
        if (large_)
            resize_first();
        second_ = acquire(2 * shape_.atom_sms);
        make_both([&] { resize(); });
    }

    // Both layouts are kept then, and a kernel has run in each.
    template <class Resize>
    void make_both(const Resize& resize) const {
        for (int i = 0; i < 4; i++) {
            resize();
            run_kernel();
        }
    }

    Lease acquire(uint32_t sm_count) const {
        Lease lease;
        check(gcx_lease_acquire(shape_.device, sm_count, nullptr, lease.out()));
        return lease;
    }

    // Between one atom and two, of which the second is nobody's.
    void resize_first() {
        const gcx_lease_size size = {first_.get(), (large_ ? 1 : 2) * shape_.atom_sms, 0};
        check(gcx_lease_resize(&size, 1, GCX_RESIZE_DEFAULT));
        large_ = !large_;
    }

    // Between a third of the SMs and two thirds: one gives what the other gets.
    void resize() {
        const uint32_t one = shape_.atom_sms;
        const gcx_lease_size sizes[2] = {{first_.get(), large_ ? one : 2 * one, 0},
                                         {second_.get(), large_ ? 2 * one : one, 0}};
        check(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT));
        large_ = !large_;
    }

    void acquire_and_release() const { acquire(shape_.atom_sms).destroy(); }

    void run_kernel() const {
        work_.spin(moving_.get(), 1, kKernelNs);
        check(gcx_stream_synchronize(moving_.get()));
    }

    // Keeps the neighbour's stream at work for longer than a measurement takes.
    void load() const {
        if (gcx_stream_query(busy_.get()) == GCX_SUCCESS)
            work_.fill(busy_.get(), shape_.atom_sms, kLoadNs);
    }

    template <class Gcx, class Beside>
    Row compare_rounds(const char* name, const char* against, uint32_t beside_rounds, bool busy,
                       const Gcx& gcx, const Beside& beside) {
        progress_(name);
        std::vector<double> times[2];
        const auto measure = [&](std::vector<double>& to, const auto& body) {
            if (busy)
                load();
            to.push_back(clock_.time(body));
        };
        // Each time the one first and then the other first.
        const uint32_t every = rounds_ / beside_rounds;
        for (uint32_t round = 0; round < rounds_; round++) {
            const bool both = round % every == 0 && times[1].size() < beside_rounds;
            const bool gcx_first = times[1].size() % 2 == 0;
            if (both && !gcx_first)
                measure(times[1], beside);
            measure(times[0], gcx);
            if (both && gcx_first)
                measure(times[1], beside);
        }
        if (busy)
            check(gcx_stream_synchronize(busy_.get()));
        return {name, against, Timing(times[0]), Timing(times[1])};
    }

    Progress progress_;
    BenchShape shape_;
    BenchClock clock_;
    BenchWork work_;
    DriverSide driver_;
    uint32_t rounds_;
    uint32_t costly_rounds_;
    Lease neighbour_;
    Lease first_;
    Lease second_;
    Stream busy_;
    Stream moving_;
    bool large_ = false;
};

constexpr char kNote[] =
    "times are SIMULATED: what the driver's calls and kernels were measured to "
    "take; gcx's own work isn't in them";

} // namespace

Report run_bench_repartition(const Arguments& arguments) {
    const auto device = static_cast<int32_t>(arguments.number("--device", 0, 1023, 0));
    const uint32_t rounds = arguments.number("--rounds", 2, kMostChanges, kDefaultChanges);
    const gcx_driver_info driver = open_driver(arguments);
    const std::vector<Row> rows = Repartition(driver, device, rounds).run();

    Report report;
    report.json = report_start(driver);
    report.text = banner(driver);
    report.text += format("device %d: %s\n", device, plain_name(device_info(device)).c_str());
    report.text +=
        format("microseconds, in turns within one run\n%-40s %9s %9s  %-32s %9s %9s %9s\n", "gcx",
               "median", "p99", "beside it", "median", "p99", "ratio");
    Json measurements = Json::array();
    for (const Row& row : rows) {
        report.text += format("%-40s %9.2f %9.2f  %-32s %9.2f %9.2f %9.5f\n", row.name,
                              row.gcx.median_us, row.gcx.p99_us, row.against, row.beside.median_us,
                              row.beside.p99_us, row.ratio());
        measurements.add(Json::object()
                             .set("name", row.name)
                             .set("gcx", row.gcx.json())
                             .set("against", row.against)
                             .set("beside", row.beside.json())
                             .set("ratio", row.ratio()));
    }
    report.json.set("device", device)
        .set("rounds", rounds)
        .set("measurements", std::move(measurements));
    if (driver.simulated != 0) {
        report.text += std::string(kNote) + "\n";
        report.json.set("note", kNote);
    }
    return report;
}

} // namespace gcx::cli
