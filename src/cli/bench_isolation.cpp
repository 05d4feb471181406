// gcx bench isolation: who waits for whose queues, in a process for each number of connections,
// since CUDA reads it when it starts; and in the last of them what another thread's calls cost.
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/isolation.hpp"
#include "cli/measure.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gcx::cli {
namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr uint32_t kMostIsolationRounds = 1000;

// What a process that measures sends, before the tables or the message.
struct Answer {
    gcx_result result = GCX_SUCCESS;
    uint32_t count = 0; // of tables, or of the message's bytes
};

Failure no_process(const char* what) {
    return {GCX_ERROR_OPERATING_SYSTEM,
            format("can't %s a process that measures: %s", what, std::strerror(errno))};
}

bool send(int file, const void* bytes, std::size_t count) {
    const char* at = static_cast<const char*>(bytes);
    while (count != 0) {
        const ssize_t sent = write(file, at, count);
        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        count -= sent > 0 ? static_cast<std::size_t>(sent) : 0;
    }
    return true;
}

bool receive(int file, void* bytes, std::size_t count) {
    char* at = static_cast<char*>(bytes);
    while (count != 0) {
        const ssize_t got = read(file, at, count);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? got : 0;
        count -= got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return true;
}

// The process that measures: it has not used gcx before.
bool answer(int file, const Arguments& arguments, uint32_t connections, int32_t device,
            uint32_t rounds, bool neighbours) {
    Answer head;
    std::vector<IsolationTable> tables;
    std::string message;
    try {
        if (setenv(kVariable, std::to_string(connections).c_str(), 1) != 0)
            throw Failure(GCX_ERROR_OUT_OF_MEMORY, format("can't set %s", kVariable));
        tables = measure_isolation(open_driver(arguments), device, rounds, neighbours);
        head.count = static_cast<uint32_t>(tables.size());
    } catch (const Failure& failure) {
        head.result = failure.result;
        message = failure.what();
    } catch (const std::exception& error) {
        head.result = GCX_ERROR_UNKNOWN;
        message = error.what();
    }
    if (head.result != GCX_SUCCESS)
        head.count = static_cast<uint32_t>(message.size());
    return send(file, &head, sizeof head) &&
           send(file, tables.data(), tables.size() * sizeof(IsolationTable)) &&
           send(file, message.data(), message.size());
}

// What came through the pipe; throws Failure if that is the other process's failure, or nothing.
std::vector<IsolationTable> read_answer(int file, uint32_t connections) {
    Answer head;
    std::vector<IsolationTable> tables;
    std::string message;
    bool whole = receive(file, &head, sizeof head);
    if (whole && head.result == GCX_SUCCESS) {
        tables.resize(head.count);
        whole = receive(file, tables.data(), tables.size() * sizeof(IsolationTable));
    } else if (whole) {
        message.resize(head.count);
        whole = receive(file, message.data(), message.size());
    }
    if (!whole)
        throw Failure(GCX_ERROR_UNKNOWN,
                      format("the process that measures with %s ended before it was done",
                             count_of(connections, "connection").c_str()));
    if (head.result != GCX_SUCCESS)
        throw Failure(head.result, message);
    return tables;
}

std::vector<IsolationTable> measure_apart(const Arguments& arguments, uint32_t connections,
                                          int32_t device, uint32_t rounds, bool neighbours) {
    int ends[2];
    if (pipe(ends) != 0)
        throw no_process("talk to");
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        const bool told = answer(ends[1], arguments, connections, device, rounds, neighbours);
        _exit(told ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        throw no_process("start");
    }
    const auto wait_for_it = [&] {
        close(ends[0]);
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    };
    try {
        auto tables = read_answer(ends[0], connections);
        wait_for_it();
        return tables;
    } catch (...) {
        wait_for_it();
        throw;
    }
}

std::string label_of(const IsolationTable& table) {
    return std::to_string(table.connections) +
           (table.own_workqueues != 0 ? ", own workqueues" : "");
}

double ratio(double us, double alone_us) {
    return alone_us > 0 ? us / alone_us : 0;
}

Json json_of(const IsolationTable& table) {
    Json by_streams = Json::array();
    for (std::size_t i = 0; i < kWaitingStreams.size(); i++)
        by_streams.add(Json::object()
                           .set("streams", kWaitingStreams[i])
                           .set("us", table.by_streams_us[i])
                           .set("ratio", ratio(table.by_streams_us[i], table.alone_us)));
    Json by_holder = Json::array();
    for (std::size_t i = 0; i < kReservationers.size(); i++)
        by_holder.add(Json::object()
                          .set("work", kReservationers[i])
                          .set("us", table.by_holder_us[i])
                          .set("ratio", ratio(table.by_holder_us[i], table.alone_us)));
    Json by_neighbour = Json::array();
    for (std::size_t i = 0; i < kNeighbours && table.neighbours != 0; i++) {
        const NeighbourTimes& times = table.by_neighbour[i];
        by_neighbour.add(Json::object()
                             .set("calls", neighbour_name(i))
                             .set("p50_us", times.p50_us)
                             .set("p99_us", times.p99_us)
                             .set("max_us", times.max_us)
                             .set("launches", times.launches)
                             .set("calls_made", times.calls));
    }
    return Json::object()
        .set("connections", table.connections)
        .set("own_workqueues", table.own_workqueues != 0)
        .set("alone_us", table.alone_us)
        .set("by_streams", std::move(by_streams))
        .set("by_work", std::move(by_holder))
        .set("by_neighbour", std::move(by_neighbour));
}

std::string neighbours_text(const IsolationTable& table) {
    std::string text = format("\n%-50s %9s %9s %9s\n",
                              format("beside another thread's calls, with %s",
                                     count_of(table.connections, "connection").c_str())
                                  .c_str(),
                              "p50", "p99", "max");
    for (std::size_t i = 0; i < kNeighbours; i++) {
        const NeighbourTimes& times = table.by_neighbour[i];
        text += format("%-50s %9.1f %9.1f %9.1f\n", neighbour_name(i), times.p50_us, times.p99_us,
                       times.max_us);
    }
    return text;
}

std::string text_of(const std::vector<IsolationTable>& tables) {
    std::string text =
        format("A has %u SMs, B %u. Microseconds from launch to end of a 10 us kernel "
               "on B; medians\n\n"
               "K streams of A, each with 8 kernels of 0.3 ms that fill A queued:\n"
               "%-22s %9s",
               tables[0].a_sms, tables[0].b_sms, "connections", "K = 0");
    for (const uint32_t streams : kWaitingStreams)
        text += format(" %9u", streams);
    text += "\n";
    for (const IsolationTable& table : tables) {
        text += format("%-22s %9.1f", label_of(table).c_str(), table.alone_us);
        for (const double us : table.by_streams_us)
            text += format(" %9.1f", us);
        text += "\n";
    }
    text += format("\nbeside on A, by connections\n%-50s", "");
    for (const IsolationTable& table : tables)
        text += format(" %18s", label_of(table).c_str());
    text += "\n";
    for (std::size_t i = 0; i < kReservationers.size(); i++) {
        text += format("%-50s", kReservationers[i]);
        for (const IsolationTable& table : tables)
            text += format(" %18.1f", table.by_holder_us[i]);
        text += "\n";
    }
    for (const IsolationTable& table : tables) {
        if (table.neighbours != 0)
            text += neighbours_text(table);
    }
    return text;
}

std::string simulated_note(const gcx_driver_info& driver) {
    if (driver.simulated == 0)
        return "";
    return "times are SIMULATED: who waits for a queue is as measured on an H200, how long is not, "
           "since the\nsimulation's kernels share no SMs; another thread's calls and the launches "
           "share one clock\n";
}

} // namespace

Report run_bench_isolation(const Arguments& arguments) {
    const auto device = static_cast<int32_t>(arguments.number("--device", 0, 1023, 0));
    const uint32_t rounds = arguments.number("--rounds", 1, kMostIsolationRounds, 5);
    std::vector<uint32_t> numbers = {1, 8, GCX_MAX_CONNECTIONS};
    if (arguments.has("--connections"))
        numbers = {arguments.number("--connections", 1, GCX_MAX_CONNECTIONS, 8)};
    choose_driver(arguments);
    std::vector<IsolationTable> tables;
    {
        const Progress progress;
        for (const uint32_t connections : numbers) {
            progress("isolation with " + count_of(connections, "connection"));
            for (const IsolationTable& table : measure_apart(arguments, connections, device, rounds,
                                                             connections == numbers.back()))
                tables.push_back(table);
        }
    }
    const gcx_driver_info driver = open_driver(arguments); // only now: a child of it couldn't
    Report report;
    report.json = report_start(driver);
    Json list = Json::array();
    for (const IsolationTable& table : tables)
        list.add(json_of(table));
    report.json.set("device", device)
        .set("rounds", rounds)
        .set("partitions", Json::object().set("a", tables[0].a_sms).set("b", tables[0].b_sms))
        .set("tables", std::move(list));
    report.text = banner(driver);
    report.text += format("device %d: %s\n", device, plain_name(device_info(device)).c_str());
    report.text += text_of(tables) + simulated_note(driver);
    if (driver.simulated != 0)
        report.json.set("note",
                        "times are SIMULATED: who waits for a queue is as measured on an H200, "
                        "how long is not; another thread's calls and the launches share one clock");
    return report;
}

} // namespace gcx::cli
