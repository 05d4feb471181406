// Replays recorded logs. Each line has a kind, which produces the line that the simulation yields.
#pragma once

#include "support.hpp"

#include <algorithm>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace sim_test {

// A part of a line.
struct Piece {
    Piece(const char* given) : text(given) {}
    Piece(std::string given) : text(std::move(given)) {}
    Piece(CUresult result) : text(name_of(result)) {}
    template <std::integral T>
    Piece(T number) : text(std::to_string(number)) {}
    std::string text;
};
std::string line_of(std::initializer_list<Piece> pieces);
Piece cost(double simulated); // matches a number that differs by a quarter at most

// Compares a line with the log's next one, ignoring the width of columns. In the line, {} matches a
// number or an address and {*184} matches 184 characters.
void say(std::initializer_list<Piece> pieces);

// A kind of line, identified by the longest beginning that matches, where # matches an integer. Its
// function says the line and the ones that belong to it.
struct Line {
    std::string text;
    std::vector<unsigned> numbers;
};
struct Kind {
    std::string beginning;
    std::function<void(const Line&)> says;

    Kind(std::string begins, std::function<void(const Line&)> does)
        : beginning(std::move(begins)), says(std::move(does)) {}
    Kind(std::string begins, std::function<void()> does)
        : Kind(std::move(begins), [does = std::move(does)](const Line&) { does(); }) {}
};

Kind literal(const std::string& line);                                  // equal in each run
Kind states(const std::string& beginning, std::function<bool()> holds); // prose
Kind states(const std::string& beginning, std::function<bool(const Line&)> holds);

// Returns whether a simulated cost differs by a quarter of the measured one at most.
bool is_about(double measured, double simulated);

template <class Body>
double taken_us(const Body& body) {
    const uint64_t before = clock_ns();
    body();
    return static_cast<double>(clock_ns() - before) / 1000;
}

// A recorded log, and what is simulated for it.
struct Log {
    Log() = default;
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    virtual ~Log() = default;
    virtual std::vector<Kind> kinds() = 0;
};
std::unique_ptr<Log> probe_log();
std::unique_ptr<Log> misuse_log();
std::unique_ptr<Log> clusters_log();
std::unique_ptr<Log> sets_and_graphs_log();
std::unique_ptr<Log> queues_log();

// Two partitions, a plain stream and a kernel, for statements about graphs and partitions.
struct Bench {
    explicit Bench(Primary& owner) : primary(owner) {
        const CUdevResource device = query();
        const Split made = split(device, 1, 0, 24);
        parts.reserve(2);
        parts.emplace_back(std::vector<CUdevResource>{made.groups[0]});
        parts.emplace_back(std::vector<CUdevResource>{made.remainder});
        CHECK_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
        CHECK_OK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK_OK(cuLibraryGetKernel(&kernel, library, "gcx_probe"));
        CHECK_OK(cuKernelGetFunction(&kernel_function, kernel));
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;
    ~Bench() {
        CHECK_OK(cuLibraryUnload(library));
        CHECK_OK(cuStreamDestroy_v2(plain));
    }

    CUresult launch(CUfunction function, CUstream stream) {
        return cuLaunchKernel(function, 1024, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr);
    }

    CUgraph capture(CUfunction function, CUstream stream) {
        CUgraph graph = nullptr;
        CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CHECK_OK(launch(function, stream));
        CHECK_OK(cuStreamEndCapture(stream, &graph));
        return graph;
    }

    static CUgraphNode first_node(CUgraph graph) {
        CUgraphNode node = nullptr;
        std::size_t count = 1;
        CHECK_OK(cuGraphGetNodes(graph, &node, &count));
        return node;
    }

    std::size_t sms_of_exec(CUgraphExec exec, CUstream stream) {
        std::vector<uint32_t> seen(Primary::kMaxSms);
        CHECK_OK(cuMemsetD32_v2(primary.counts, 0, Primary::kMaxSms));
        CHECK_OK(cuGraphLaunch(exec, stream));
        CHECK_OK(cuStreamSynchronize(stream));
        CHECK_OK(cuMemcpyDtoH_v2(seen.data(), primary.counts, seen.size() * 4));
        return static_cast<std::size_t>(
            std::count_if(seen.begin(), seen.end(), [](uint32_t n) { return n != 0; }));
    }

    // Returns the number of SMs that a graph uses when launched on the plain stream.
    std::size_t sms_of_graph(CUgraph graph) {
        CUgraphExec exec = nullptr;
        CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        const std::size_t seen = sms_of_exec(exec, plain);
        CHECK_OK(cuGraphExecDestroy(exec));
        return seen;
    }

    // Moves a clone's node to the partition's context, by CUkernel unless keep_function, and
    // returns the number of SMs it uses.
    std::size_t sms_when_moved(CUgraph graph, const Partition& part, bool keep_function) {
        CUgraph clone = nullptr;
        CUgraphNode node = nullptr;
        CHECK_OK(cuGraphClone(&clone, graph));
        CHECK_OK(cuGraphNodeFindInClone(&node, first_node(graph), clone));
        CUDA_KERNEL_NODE_PARAMS_v2 parameters;
        CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
        CHECK(parameters.kern != nullptr);
        if (!keep_function)
            parameters.func = nullptr;
        parameters.ctx = part.context;
        CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters));
        const std::size_t seen = sms_of_graph(clone);
        CHECK_OK(cuGraphDestroy(clone));
        return seen;
    }

    Primary& primary;
    std::vector<Partition> parts; // 24 and 108 SMs
    CUstream plain = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction kernel_function = nullptr;
    uint32_t max_sms = Primary::kMaxSms;
    uint32_t spin_ns = 1000;
    void* arguments[3] = {&primary.counts, &max_sms, &spin_ns};
};

} // namespace sim_test
