// Measures what a resize costs after many changes, next to a kernel that never ends and with a host
// that runs ahead of the device. Prints medians and their ratio.

#include "fixture.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <vector>

using namespace fixture;

namespace {

constexpr uint32_t kChanges = 10'000;
constexpr uint32_t kSample = 100; // resizes in one median

struct Pair {
    gcx_lease first = nullptr;
    gcx_lease second = nullptr;
    gcx_stream first_stream = nullptr;
    gcx_stream second_stream = nullptr;

    Pair() {
        CHECK_OK(gcx_lease_acquire(0, 64, nullptr, &first));
        CHECK_OK(gcx_lease_acquire(0, GCX_REST, nullptr, &second));
        CHECK_OK(gcx_lease_stream_create(first, nullptr, &first_stream));
        CHECK_OK(gcx_lease_stream_create(second, nullptr, &second_stream));
        for (uint32_t i = 0; i < 4; i++) // makes the contexts
            change(i);
        synchronize();
    }
    ~Pair() {
        synchronize();
        CHECK_OK(gcx_stream_destroy(first_stream));
        CHECK_OK(gcx_stream_destroy(second_stream));
        CHECK_OK(gcx_lease_release(first));
        CHECK_OK(gcx_lease_release(second));
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    void change(uint32_t number) const {
        const std::array<gcx_lease_size, 2> sizes = {
            {{first, number % 2 == 0 ? 32U : 64U, 0}, {second, GCX_REST, 0}}};
        CHECK_OK(gcx_lease_resize(sizes.data(), 2, GCX_RESIZE_DEFAULT));
    }
    void synchronize() const {
        CHECK_OK(gcx_lease_synchronize(first));
        CHECK_OK(gcx_lease_synchronize(second));
    }
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Changes the leases, with a kernel in each of these streams after every change. spin is the length
// of a kernel in nanoseconds.
void measure(const char* name, const Pair& pair, std::initializer_list<gcx_stream> streams,
             uint64_t spin) {
    std::vector<double> resizes;
    std::vector<double> steps; // a resize and the launches after it
    for (uint32_t i = 0; i < kChanges + kSample; i++) {
        const auto start = std::chrono::steady_clock::now();
        pair.change(i);
        const std::chrono::duration<double, std::micro> resize =
            std::chrono::steady_clock::now() - start;
        for (gcx_stream stream : streams)
            CHECK_EQ(raw::launch_spin(gcx_stream_native(stream), spin), CUDA_SUCCESS);
        const std::chrono::duration<double, std::micro> step =
            std::chrono::steady_clock::now() - start;
        resizes.push_back(resize.count());
        steps.push_back(step.count());
    }
    const auto of = [](const std::vector<double>& all, std::size_t begin) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
        return median({first, first + kSample});
    };
    std::printf("%s: a resize takes %.2f us (median of the first %u), %.2f us after %u changes: "
                "%.2f times\n",
                name, of(resizes, 0), kSample, of(resizes, kChanges), kChanges,
                of(resizes, kChanges) / of(resizes, 0));
    std::printf("%s: with the launches after it %.2f us, %.2f us after: %.2f times\n", name,
                of(steps, 0), of(steps, kChanges), of(steps, kChanges) / of(steps, 0));
}

} // namespace

int main() {
    raw::load();
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&driver));
    if (driver.simulated != 0) {
        std::fprintf(stderr, "this measures a real GPU, and the driver is SIMULATED\n");
        return 1;
    }
    const Pair pair;
    const auto both = {pair.first_stream, pair.second_stream};
    measure("alone", pair, both, 1000);
    pair.synchronize();

    gcx_stream persistent = nullptr;
    CHECK_OK(gcx_lease_stream_create(pair.second, nullptr, &persistent));
    CHECK_EQ(raw::launch_spin(gcx_stream_native(persistent), 4000 * raw::kMillisecond),
             CUDA_SUCCESS);
    // The other lease would wait for the kernel when it gains SMs.
    measure("next to a persistent kernel", pair, {pair.second_stream}, 1000);
    CHECK_EQ(gcx_lease_query(pair.second), GCX_ERROR_NOT_READY); // it ran all the time
    pair.synchronize();
    CHECK_OK(gcx_stream_destroy(persistent));

    // Each step's kernels take longer than its calls, so the host runs ahead as far as the driver's
    // queue admits.
    measure("with a host that runs ahead", pair, both, 50'000);
    return check::summary("resize cost");
}
