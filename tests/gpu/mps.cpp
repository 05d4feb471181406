// One of two processes on a device, for tests/gpu/mps.sh and tests/gpu/reservations.sh:
//     gcx-gpu-mps hog SECONDS PART         runs kernels of 8448 blocks; prints how many a second
//     gcx-gpu-mps critical SECONDS PART    runs a kernel of 24 blocks now and then; prints p50, p90
//                                          and p99 in us
//     gcx-gpu-mps waiter SECONDS SMS       waits this long for a reservation; prints the result and
//                                          the ms that it took
// PART is one of
//     plain                      a stream of the whole device
//     108 or 24                  that part of gcx's split of both
//     reserved-108, reserved-24  a reservation of so many SMs
#include "critical.hpp"
#include "need.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

// Returns a reservation's SMs, for as long as the process lives.
gcx_resource reserved(uint32_t sm_count) {
    gcx_reservation reservation = nullptr;
    gcx_resource resource{};
    NEED(gcx_reservation_acquire(0, sm_count, nullptr, &reservation));
    NEED(gcx_reservation_get_resource(reservation, &resource));
    return resource;
}

CUstream stream_on(const gcx_resource& resource) {
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    NEED(gcx_context_create(&resource, 1, nullptr, &context));
    NEED(gcx_stream_create(context, nullptr, &stream));
    return gcx_stream_native(stream);
}

void take(double seconds, uint32_t sm_count) {
    gcx_reservation_params params = GCX_RESERVATION_PARAMS_INIT;
    params.timeout_ms = static_cast<uint32_t>(seconds * 1000);
    gcx_reservation reservation = nullptr;
    const auto start = Clock::now();
    const gcx_result result = gcx_reservation_acquire(0, sm_count, &params, &reservation);
    const std::chrono::duration<double, std::milli> waited = Clock::now() - start;
    std::printf("%s %.1f\n", gcx_result_name(result), waited.count());
}

// Both processes split alike, and each uses one part.
CUstream stream_of(const std::string& part) {
    if (part.rfind("reserved-", 0) == 0)
        return stream_on(reserved(part == "reserved-24" ? 24 : 108));
    if (part == "plain") {
        CUstream stream = nullptr;
        NEED(raw::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        return stream;
    }
    gcx_resource whole{};
    gcx_resource parts[2];
    gcx_sm_request requests[2] = {};
    requests[0].sm_count = 108;
    requests[1].sm_count = 24;
    NEED(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    NEED(gcx_sm_split(&whole, requests, 2, GCX_SPLIT_DEFAULT, parts, nullptr, nullptr, nullptr));
    return stream_on(parts[part == "24" ? 1 : 0]);
}

void hog(CUstream stream, double seconds) {
    constexpr unsigned kAhead = 4;
    constexpr unsigned kBlocks = 8448;
    CUevent events[kAhead] = {};
    for (CUevent& event : events)
        NEED(raw::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    const auto start = Clock::now();
    unsigned launched = 0;
    std::chrono::duration<double> passed{};
    while ((passed = Clock::now() - start).count() < seconds) {
        CUevent const event = events[launched % kAhead];
        NEED(raw::cuEventSynchronize(event)); // an earlier kernel's; at first of none
        NEED(raw::launch_spin(stream, raw::kMillisecond / 2, kBlocks, 1024));
        NEED(raw::cuEventRecord(event, stream));
        launched++;
    }
    NEED(raw::cuStreamSynchronize(stream));
    passed = Clock::now() - start;
    std::printf("%.1f\n", launched / passed.count());
}

void small(CUstream stream, double seconds) {
    const auto launch = [&] {
        return raw::launch_spin(stream, critical::kNanoseconds, critical::kBlocks, 32);
    };
    critical::measure(stream, launch, [](std::size_t done) { return done < 20; });
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    const critical::Times times =
        critical::measure(stream, launch, [&](std::size_t) { return Clock::now() < until; });
    NEED(times.error);
    std::printf("%.1f %.1f %.1f\n", times.p50(), times.p90(), times.p99());
}

} // namespace

int main(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 0;
    const std::string part = argc > 3 ? argv[3] : "";
    const bool known = part == "plain" || part == "108" || part == "24" || part == "reserved-108" ||
                       part == "reserved-24";
    if (role == "waiter" && std::atoi(part.c_str()) > 0) {
        take(seconds, static_cast<uint32_t>(std::atoi(part.c_str())));
        return 0;
    }
    if ((role != "hog" && role != "critical") || seconds <= 0 || !known) {
        std::fprintf(stderr,
                     "usage: %s hog|critical SECONDS plain|108|24|reserved-108|reserved-24\n"
                     "       %s waiter SECONDS SMS\n",
                     argv[0], argv[0]);
        return 2;
    }
    raw::load();
    NEED(raw::cuCtxPushCurrent(raw::primary()));
    if (role == "hog")
        hog(stream_of(part), seconds);
    else
        small(stream_of(part), seconds);
    return 0;
}
