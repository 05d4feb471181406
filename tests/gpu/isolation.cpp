// Measures the latency of a small kernel in a partition: alone, and while another thread does
// something else on the other partition or, for comparison, in a plain stream. Each cell has a
// process of its own, since much of it stays: memory, loaded kernels, the number of connections.
//     gcx-gpu-isolation [--quick] [--only WORD] [--line LABEL]
// One line a row, fields by tabs, as tests/gpu/python/isolation.py writes them;
// tests/gpu/isolation.sh makes one table of both. --line puts the label behind the rows' names.
#include "isolation.hpp"

#include "critical.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

using isolation::Known;
using isolation::need;
using isolation::Neighbour;
#define NEED(call) need(call, #call)

constexpr unsigned kSmallSms = 24;
constexpr uint32_t kReadBytes = 4U << 20;
constexpr auto kPatience = std::chrono::seconds(20);
// The least by which a row is no longer said to hold, and to break: of the 99th percentile alone.
constexpr double kCosts = 2;
constexpr double kBreaks = 10;

struct Amount {
    std::size_t launches = 1000; // at least
    unsigned calls = 5;
};

// What the process of a cell sends.
struct Cell {
    double alone[3] = {}; // p50, p99, max
    double next_to[3] = {};
    double launches = 0;
    double calls = 0;
    int error = 0; // of the small kernel
    int simulated = 0;
    int missing = 0; // 1: this machine lacks what the row needs
};

// A stream for the small kernel and a place for the neighbour.
struct Places {
    CUstream small = nullptr;
    unsigned small_sms = 0;
    Neighbour neighbour;
};

void split(Places& places) {
    gcx_resource whole{};
    gcx_resource parts[2];
    gcx_sm_request request{};
    request.sm_count = kSmallSms;
    NEED(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    NEED(gcx_sm_split(&whole, &request, 1, GCX_SPLIT_DEFAULT, &parts[0], &parts[1], nullptr,
                      nullptr));
    gcx_context contexts[2] = {};
    for (int i = 0; i < 2; i++)
        NEED(gcx_context_create(&parts[i], 1, nullptr, &contexts[i]));
    gcx_stream stream = nullptr;
    NEED(gcx_stream_create(contexts[0], nullptr, &stream));
    places.small = gcx_stream_native(stream);
    for (CUstream& native : places.neighbour.streams) {
        NEED(gcx_stream_create(contexts[1], nullptr, &stream));
        native = gcx_stream_native(stream);
    }
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    NEED(gcx_resource_get_info(&parts[1], &info));
    places.neighbour.sms = info.sm_count;
    places.neighbour.gcx = contexts[1];
    places.neighbour.context = gcx_context_native(contexts[1]);
}

Places make_places(bool partitions, const char* program) {
    Places places;
    Neighbour& n = places.neighbour;
    n.partitions = partitions;
    n.program = program;
    n.streams.resize(16);
    NEED(raw::cuCtxPushCurrent(raw::primary()));
    gcx_device_info device = GCX_DEVICE_INFO_INIT;
    NEED(gcx_device_get_info(0, &device));
    if (partitions) {
        split(places);
    } else {
        n.context = raw::primary();
        n.sms = device.sm_count;
        NEED(raw::cuStreamCreate(&places.small, CU_STREAM_NON_BLOCKING));
        for (CUstream& stream : n.streams)
            NEED(raw::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    places.small_sms = kSmallSms;
    void* pinned = nullptr;
    NEED(raw::cuMemAlloc(&n.from, Neighbour::kBytes));
    NEED(raw::cuMemAlloc(&n.to, Neighbour::kBytes));
    NEED(raw::cuMemHostAlloc(&pinned, Neighbour::kHostBytes, 0));
    n.pinned = static_cast<char*>(pinned);
    n.pageable = static_cast<char*>(std::calloc(Neighbour::kHostBytes, 1));
    return places;
}

void note(const critical::Times& times, double* out, Cell& cell) {
    out[0] = times.p50();
    out[1] = times.p99();
    out[2] = times.max();
    if (times.error != CUDA_SUCCESS)
        cell.error = times.error;
}

Cell measure(const isolation::Row& row, bool partitions, Amount amount, const char* program) {
    raw::load();
    Places places = make_places(partitions, program);
    CUdeviceptr words = 0;
    NEED(raw::cuMemAlloc(&words, kReadBytes));
    const auto launch = [&] {
        return row.reads ? raw::launch_read(places.small, words, kReadBytes / 4, 2 * kSmallSms)
                         : raw::launch_spin(places.small, critical::kNanoseconds, kSmallSms, 32);
    };
    const auto enough = [&](std::size_t done) { return done < amount.launches; };
    Cell cell;
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    NEED(gcx_driver_get_info(&driver));
    cell.simulated = driver.simulated;
    critical::measure(places.small, launch, [](std::size_t done) { return done < 20; });
    note(critical::measure(places.small, launch, enough), cell.alone, cell);

    std::atomic<bool> ready = false;
    std::atomic<bool> stop = false;
    std::atomic<bool> ended = false;
    std::atomic<unsigned> calls = 0;
    std::thread thread([&] {
        NEED(raw::cuCtxPushCurrent(places.neighbour.context));
        const isolation::Body body = row.prepare(places.neighbour);
        cell.missing = body ? 0 : 1;
        ready = true;
        while (body && !stop && body())
            calls++;
        ended = true;
    });
    while (!ready)
        std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    const critical::Times next_to = critical::measure(places.small, launch, [&](std::size_t done) {
        if (ended) // what there was to do is done
            return done == 0;
        return (done < amount.launches || calls < amount.calls) &&
               std::chrono::steady_clock::now() < until;
    });
    note(next_to, cell.next_to, cell);
    cell.launches = static_cast<double>(next_to.us.size());
    cell.calls = calls;
    stop = true;
    thread.join();
    return cell;
}

// In a process of its own, with so many connections.
bool measure_apart(const isolation::Row& row, bool partitions, Amount amount, const char* program,
                   Cell& cell) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        if (row.connections != 0)
            setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(row.connections).c_str(), 1);
        else
            unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
        const Cell measured = measure(row, partitions, amount, program);
        _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
    }
    close(ends[1]);
    const bool whole = child > 0 && read(ends[0], &cell, sizeof cell) == sizeof cell;
    close(ends[0]);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0 && whole;
}

Known seen(const Cell& cell) {
    if (cell.error != 0)
        return Known::breaks;
    const double times = cell.alone[1] > 0 ? cell.next_to[1] / cell.alone[1] : 0;
    return times < kCosts ? Known::holds : times < kBreaks ? Known::costs : Known::breaks;
}

const char* name_of(Known known) {
    switch (known) {
    case Known::no:
        return "-";
    case Known::holds:
        return "holds";
    case Known::costs:
        return "costs";
    default:
        return "breaks";
    }
}

void print(const std::string& name, Known known, const Cell& own, const Cell& plain,
           const char* verdict) {
    std::printf("%s\t%s\t%s", name.c_str(), name_of(known),
                own.missing != 0 ? "-" : name_of(seen(own)));
    for (const double* figures : {own.alone, own.next_to, plain.next_to})
        std::printf("\t%.1f\t%.1f\t%.1f", figures[0], figures[1], figures[2]);
    std::printf("\t%.0f\t%.0f\t%d\t%s\n", own.launches, own.calls, own.error, verdict);
    std::fflush(stdout);
}

// Starts CUDA and ends: what a neighbour does that is another process.
int touch() {
    raw::load();
    NEED(raw::cuCtxPushCurrent(raw::primary()));
    NEED(raw::launch_spin(nullptr, 1000));
    NEED(raw::cuCtxSynchronize());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    Amount amount;
    std::string only;
    std::string label;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--touch")
            return touch();
        if (word == "--quick")
            amount = {.launches = 20, .calls = 1};
        else if (word == "--only" && i + 1 < argc)
            only = argv[++i];
        else if (word == "--line" && i + 1 < argc)
            label = std::string(", ") + argv[++i];
        else
            return std::fprintf(stderr, "what is %s?\n", word.c_str()), 2;
    }
    bool good = true;
    for (const isolation::Row& row : isolation::rows()) {
        if (std::strstr(row.name, only.c_str()) == nullptr)
            continue;
        Cell own;
        Cell plain;
        const bool measured = measure_apart(row, true, amount, argv[0], own) &&
                              measure_apart(row, false, amount, argv[0], plain);
        // On the simulated driver it shows that all works, and no figures.
        const bool as_known = row.known == Known::no || row.known == seen(own);
        const char* verdict = !measured            ? "FAILED"
                              : own.simulated != 0 ? "SIMULATED: no GPU is involved"
                              : own.missing != 0   ? "skipped"
                              : own.calls == 0     ? "FAILED: it did nothing"
                              : as_known           ? "passed"
                                                   : "FAILED: known otherwise";
        good = good && std::strncmp(verdict, "FAILED", 6) != 0;
        print(row.name + label, row.known, own, plain, verdict);
    }
    return good ? 0 : 1;
}
