// Makes each driver call of preparing, trimming and asking for a kernel's fit fail in turn.

#include "faults.hpp"
#include "work.hpp"

#include <memory>

using namespace support;

namespace {

struct State {
    std::vector<gcx_resource> sets;
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
};

std::vector<gcx_resource> layouts() {
    std::vector<gcx_resource> found;
    for (const uint32_t size : {8U, 24U, 40U})
        found.push_back(split(whole_device(), {size}).groups[0]);
    return found;
}

void three_sets(State& state) {
    state.sets = layouts();
}

void some_cached(State& state) {
    const auto sets = layouts();
    CHECK_OK(gcx_cache_prepare(sets.data(), 3, nullptr));
    CHECK_OK(gcx_context_create(sets.data(), 1, nullptr, &state.context));
    for (int i = 0; i < 2; i++) {
        gcx_stream stream = make_stream(state.context);
        CHECK_OK(gcx_stream_destroy(stream));
    }
}

void stream_and_kernel(State& state) {
    const gcx_resource resource = layouts()[1];
    CHECK_OK(gcx_context_create(&resource, 1, nullptr, &state.context));
    CHECK_OK(gcx_stream_create(state.context, nullptr, &state.stream));
    constexpr char kPtx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                            ".visible .entry fit_kernel() { ret; }\n";
    CHECK_NATIVE(cuLibraryLoadData, &state.library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0);
    CHECK_NATIVE(cuLibraryGetKernel, &state.kernel, state.library, "fit_kernel");
}

void destroy_all(State& state) {
    if (state.stream != nullptr)
        CHECK_OK(gcx_stream_destroy(state.stream));
    if (state.context != nullptr)
        CHECK_OK(gcx_context_destroy(state.context));
    if (state.library != nullptr)
        CHECK_NATIVE(cuLibraryUnload, state.library);
}

gcx_result prepare(const State& state, uint32_t flags) {
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    params.flags = flags;
    const gcx_result result = gcx_cache_prepare(state.sets.data(), 3, &params);
    sim::fail(nullptr, 0, CUDA_SUCCESS);
    const gcx_cache_stats stats = cache_stats();
    CHECK(result != GCX_SUCCESS || stats.cached == 3);
    CHECK_EQ(stats.cached,
             sim::counts().green_contexts); // every context that was created is cached
    CHECK_EQ(stats.in_use, 0U);
    return result;
}

gcx_result trim() {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    const gcx_result result = gcx_cache_trim(0, &trimmed);
    sim::fail(nullptr, 0, CUDA_SUCCESS);
    const gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.cached + stats.in_use, sim::counts().green_contexts);
    CHECK_EQ(stats.cached_streams, sim::counts().streams);
    return result;
}

const faults::Named<State> kOperations[] = {
    {"prepare", three_sets, [](State& state) { return prepare(state, 0); }},
    {"prepare for leases", three_sets,
     [](State& state) { return prepare(state, GCX_PREPARE_FOR_LEASES); }},
    {"trim", some_cached, [](State&) { return trim(); }},
    {"limit 0", some_cached, [](State&) { return gcx_cache_set_limit(0); }},
    {"kernel fit", stream_and_kernel,
     [](State& state) {
         gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
         params.block_threads = 256;
         params.cluster_blocks = 4;
         gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
         return gcx_stream_get_kernel_fit(state.stream, handle_cast<CUfunction>(state.kernel),
                                          &params, &fit);
     }},
};

} // namespace

int main(int argc, char** argv) {
    return faults::test_all("ahead-faults", argc, argv, kOperations, destroy_all);
}
