#include "faults.hpp"

using namespace support;

namespace faults {
namespace {

// Runs an operation, makes its nth driver call fail (0: none), and returns its number of calls.
uint64_t run_once(const Operation& operation, const std::string& spec, uint64_t nth,
                  CUresult injected) {
    CHECK_OK(gcx_driver_open(("sim:" + spec).c_str()));
    const gcx_sim_counts before = sim::counts();
    operation.prepare();
    if (nth != 0)
        sim::fail(nullptr, nth, injected);
    const uint64_t calls = sim::calls();
    const gcx_result result = operation.run();
    const uint64_t made = sim::calls() - calls;
    sim::fail(nullptr, 0, CUDA_SUCCESS);
    if (nth == 0)
        CHECK_OK(result);
    else if (result != GCX_SUCCESS && CHECK(*gcx_last_error_message() != '\0'))
        note_message(result);
    // A failure changed nothing, so the operation works now. A handle that is null was destroyed.
    CHECK_OK(gcx_cache_set_limit(64));
    if (result != GCX_SUCCESS)
        CHECK_OK(operation.run());
    operation.cleanup();
    CHECK_OK(gcx_cache_set_limit(0));
    const gcx_sim_counts after = sim::counts();
    CHECK_EQ(left_behind(before, after), std::string());
    CHECK(after.modules <= before.modules + 1); // the probe's kernel stays loaded
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CUcontext current = nullptr;
    CHECK_NATIVE(cuCtxGetCurrent, &current);
    CHECK(current == nullptr);
    return made;
}

// Where calls are skipped, each operation and driver version skips others.
uint64_t first_failing(const Operation& operation, const std::string& spec) {
    uint64_t of_operation = 0;
    for (const char letter : operation.name)
        of_operation = of_operation * 31 + static_cast<unsigned char>(letter);
    const uint64_t driver = spec.ends_with("12.4") ? 0 : spec.ends_with("13.0") ? 1 : 2;
    return 1 + (of_operation + driver * kStep / 3) % kStep;
}

void every_call_fails_with(const Operation& operation, const std::string& spec, CUresult injected) {
    const uint64_t calls =
        answer_of_child([&] { return run_once(operation, spec, 0, CUDA_SUCCESS); });
    for (uint64_t nth = first_failing(operation, spec); nth <= calls; nth += kStep) {
        const std::string name =
            spec + ": " + operation.name + ", call " + std::to_string(nth) + " fails";
        in_child(name, [&] { run_once(operation, spec, nth, injected); });
    }
}

} // namespace

void every_call_fails(const Operation& operation, const std::string& spec) {
    every_call_fails_with(operation, spec, CUDA_ERROR_UNKNOWN);
    // Runs in this process with the same sequence of calls.
    if (!check::slow)
        every_call_fails_with(operation, spec, CUDA_ERROR_OUT_OF_MEMORY);
}

} // namespace faults
