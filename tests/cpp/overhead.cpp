// Measures what C++ costs over C: the same work through gcx.h and through gcx.hpp, in turn.
//
//     overhead [MAX]    fails if a ratio is above MAX; uses the simulated driver sim:h100@13.0
//
// A ratio is the median of many short rounds, each of which times both, so that other load affects
// both. "C against C" shows the noise of the machine.
#include <gcx.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

gcx_resource part;
uint64_t sink; // consumes results, so that calls are not optimised away

void must(gcx_result result) {
    if (result == GCX_SUCCESS)
        return;
    std::fprintf(stderr, "%s\n", gcx_last_error_message());
    std::exit(2);
}

// Calls a function that needs no driver.
void info_c() {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    must(gcx_resource_get_info(&part, &info));
    sink += info.sm_count;
}
void info_cpp(const gcx::resource& resource) {
    sink += resource.info().sm_count;
}

// Plans two groups: an array in, an array out.
void plan_c() {
    const gcx_sm_request requests[2] = {{8, 0, 0, 0, 0, {}}, {16, 0, 0, 0, 0, {}}};
    uint32_t counts[2];
    uint32_t left = 0;
    must(gcx_sm_split(&part, requests, 2, GCX_SPLIT_DEFAULT, nullptr, nullptr, counts, &left));
    sink += counts[0] + left;
}
void plan_cpp(const gcx::resource& resource) {
    const auto plan = resource.plan({8, 16});
    sink += plan.groups[0] + plan.remainder;
}

// Creates and destroys a cached context and a stream of it.
void round_c() {
    const gcx_context_params context_params = GCX_CONTEXT_PARAMS_INIT;
    const gcx_stream_params stream_params = GCX_STREAM_PARAMS_INIT;
    gcx_context context;
    gcx_stream stream;
    must(gcx_context_create(&part, 1, &context_params, &context));
    must(gcx_stream_create(context, &stream_params, &stream));
    sink += gcx_stream_native(stream) != nullptr;
    must(gcx_stream_destroy(stream));
    must(gcx_context_destroy(context));
}
void round_cpp(const gcx::resource& resource) {
    const gcx::context context(resource);
    const gcx::stream stream(context);
    sink += stream.native() != nullptr;
}

// Launches a graph that has its executable.
void launch_c(gcx_graph graph, gcx_stream stream) {
    must(gcx_graph_launch(graph, &stream, 1));
    sink++;
}
void launch_cpp(const gcx::graph& graph, const gcx::stream& stream) {
    graph.launch(stream);
    sink++;
}

// Captures a graph of one empty node, by the simulated driver, which is loaded.
CUgraph_st* captured() {
    void* const driver = dlopen("libgcx-sim.so", RTLD_NOW | RTLD_NOLOAD);
    void* const create = driver != nullptr ? dlsym(driver, "cuGraphCreate") : nullptr;
    void* const add = driver != nullptr ? dlsym(driver, "cuGraphAddEmptyNode") : nullptr;
    CUgraph_st* graph = nullptr;
    void* node = nullptr;
    if (create == nullptr || add == nullptr ||
        reinterpret_cast<int (*)(CUgraph_st**, unsigned)>(create)(&graph, 0) != 0 ||
        reinterpret_cast<int (*)(void**, CUgraph_st*, const void*, std::size_t)>(add)(
            &node, graph, nullptr, 0) != 0) {
        std::fprintf(stderr, "no graph from the simulated driver\n");
        std::exit(2);
    }
    return graph;
}

template <class Work>
double nanoseconds(int calls, const Work& work) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; i++)
        work();
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / calls;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

// Times C, C++ and C again in each round, in an order that changes.
template <class C, class Cpp>
double compare(const char* name, int calls, const C& c, const Cpp& cpp) {
    constexpr int kRounds = 3000;
    std::vector<double> in_c, in_cpp, ratios, noise;
    for (int round = 0; round < kRounds; round++) {
        double took[3];
        for (int i = 0; i < 3; i++) {
            const int which = (i + round) % 3;
            took[which] = which == 1 ? nanoseconds(calls, cpp) : nanoseconds(calls, c);
        }
        in_c.push_back(took[0]);
        in_cpp.push_back(took[1]);
        ratios.push_back(took[1] / took[0]);
        noise.push_back(took[2] / took[0]);
    }
    const double ratio = median(ratios);
    std::printf("%-26s C %7.1f ns, C++ %7.1f ns, ratio %.3f, C against C %.3f\n", name,
                median(in_c), median(in_cpp), ratio, median(noise));
    return ratio;
}

} // namespace

int main(int argc, char** argv) {
    const double most = argc > 1 ? std::atof(argv[1]) : 1e9;
    must(gcx_driver_open("sim:h100@13.0"));
    const gcx::resource resource = gcx::device(0).sms().split({24}).groups[0];
    part = resource.value();
    round_c(); // creates the context, which is cached

    double worst = 0;
    worst =
        std::max(worst, compare("gcx_resource_get_info", 300, info_c, [&] { info_cpp(resource); }));
    worst = std::max(worst, compare("dry run, 2 groups", 100, plan_c, [&] { plan_cpp(resource); }));
    worst = std::max(
        worst, compare("context and stream, cached", 15, round_c, [&] { round_cpp(resource); }));
    const gcx::context context(resource);
    const gcx::stream stream(context);
    const gcx::current_guard current(context); // decides the device of a graph without kernels
    const gcx::graph graph(captured());
    launch_c(graph.handle(), stream.handle()); // creates the executable
    worst = std::max(worst,
                     compare(
                         "gcx_graph_launch", 50, [&] { launch_c(graph.handle(), stream.handle()); },
                         [&] { launch_cpp(graph, stream); }));
    if (worst > most)
        std::printf("a ratio is above %.2f\n", most);
    return worst > most || sink == 0 ? 1 : 0;
}
