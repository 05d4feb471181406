#include "sim/entry/entry.hpp"
#include "sim/entry/clock.hpp"
#include "sim/entry/host_thread.hpp"
#include "sim/profiles/spec.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace gcx::sim {
namespace {

struct FailureOrder {
    std::string function; // empty: any
    uint64_t calls_left = 0;
    CUresult result = CUDA_SUCCESS;
};

// Never destroyed, since destructors that run after this library's can still call it.
struct Global {
    std::mutex lock;
    std::unique_ptr<Machine> machine;
    bool configured_once = false;
    bool replacing = false; // a call of configure() waits for the old machine's host function
    bool forked = false;    // the parent process had initialised the driver
    std::string bad_spec;
    bool bad_spec_printed = false;
    FailureOrder failure;
};

Global& global() {
    static auto* instance = [] {
        auto* made = new Global;
        pthread_atfork([] { global().lock.lock(); }, [] { global().lock.unlock(); },
                       [] {
                           Global& state = global();
                           state.forked = state.forked ||
                                          (state.machine != nullptr && state.machine->initialised);
                           state.replacing = false;
                           forget_host_thread(state.machine.get());
                           state.lock.unlock();
                       });
        return made;
    }();
    return *instance;
}

std::atomic<bool> g_unloaded = false;

struct UnloadMark {
    UnloadMark() = default;
    UnloadMark(const UnloadMark&) = delete;
    UnloadMark& operator=(const UnloadMark&) = delete;
    ~UnloadMark() { g_unloaded = true; }
} g_unload_mark;

thread_local std::unique_lock<std::mutex>* t_lock = nullptr;
thread_local bool t_per_thread_stream = false;

// Reads GCX_SIM_FAIL. Refuses a malformed value, since the failure would never occur.
bool order_from_environment(FailureOrder& order, std::string& error) {
    const char* const variable = std::getenv("GCX_SIM_FAIL");
    if (variable == nullptr || *variable == '\0')
        return true;
    const std::string_view text(variable);
    const auto first = text.find(':');
    const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
    const auto number = [](std::string_view digits, auto& value) {
        return to_number(digits, value) && value > 0;
    };
    const std::string_view function = text.substr(0, first);
    int result = 0;
    if (second == std::string_view::npos || !number(text.substr(second + 1), result) ||
        !number(text.substr(first + 1, second - first - 1), order.calls_left))
        error = "the format is FUNCTION:NTH:RESULT: a driver function or *, the number of the call "
                "that fails, from 1, and a CUresult above 0; e.g. cuGreenCtxCreate:3:2";
    else if (function != "*" && !is_known_function(function))
        error = "no driver function \"" + std::string(function) +
                "\" is simulated; use e.g. cuGreenCtxCreate:3:2, or * for any function";
    if (!error.empty()) {
        error = "GCX_SIM_FAIL=" + std::string(text) + ": " + error;
        return false;
    }
    order.function = function == "*" ? "" : base_name(function);
    order.result = static_cast<CUresult>(result);
    return true;
}

bool fails_by_order(std::string_view base, CUresult& result) {
    FailureOrder& order = global().failure;
    if (order.calls_left == 0 || (!order.function.empty() && order.function != base))
        return false;
    if (--order.calls_left > 0)
        return false;
    result = order.result;
    return true;
}

// Once, and without control characters, which variables can have and terminals obey.
void print_environment_error() {
    if (std::exchange(global().bad_spec_printed, true))
        return;
    std::string text = environment_error();
    std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    std::fprintf(stderr, "SIMULATED driver: %s\n", text.c_str());
}

bool is_error_text(std::string_view base) {
    return base == "cuGetErrorName" || base == "cuGetErrorString";
}

void replace_machine(std::unique_ptr<Machine> made) {
    Global& state = global();
    wait_for_change([&] { return !state.replacing; });
    if (state.machine != nullptr) {
        state.replacing = true;
        retire(*state.machine);
        state.replacing = false;
        notify_host();
    }
    state.machine = std::move(made);
}

} // namespace

PerThreadStream::PerThreadStream() : before_(std::exchange(t_per_thread_stream, true)) {
}

PerThreadStream::~PerThreadStream() {
    t_per_thread_stream = before_;
}

bool PerThreadStream::active() {
    return t_per_thread_stream;
}

std::string_view base_name(std::string_view function) {
    if (function.starts_with("sim_"))
        function.remove_prefix(4);
    for (const std::string_view suffix : {"_ptsz", "_ptds"})
        if (function.ends_with(suffix))
            function.remove_suffix(suffix.size());
    const auto version = function.rfind("_v");
    if (version != std::string_view::npos && version + 3 == function.size())
        function.remove_suffix(3);
    return function;
}

MachineLock::MachineLock() : lock_(global().lock) {
    t_lock = &lock_;
}

MachineLock::~MachineLock() {
    t_lock = nullptr;
}

std::unique_lock<std::mutex>& held_lock() {
    return *t_lock;
}

std::mutex& machine_mutex() {
    return global().lock;
}

bool is_unloaded() {
    return g_unloaded;
}

Machine* existing_machine() {
    return global().machine.get();
}

CUresult configure(const char* spec, std::string& error) {
    Global& state = global();
    auto made = std::make_unique<Machine>();
    FailureOrder ordered;
    if (!read_spec(spec, *made, error) ||
        (!state.configured_once && !order_from_environment(ordered, error)))
        return CUDA_ERROR_INVALID_VALUE;
    replace_machine(std::move(made));
    state.bad_spec.clear();
    state.failure = ordered;
    state.configured_once = true;
    return CUDA_SUCCESS;
}

void order_failure(std::string_view function, uint64_t nth, CUresult result) {
    global().failure = {std::string(base_name(function)), nth, result};
}

Machine* current_machine() {
    Global& state = global();
    if (state.machine == nullptr && state.bad_spec.empty())
        configure(nullptr, state.bad_spec);
    return state.machine.get();
}

const std::string& environment_error() {
    return global().bad_spec;
}

// The C library unloads no library that has a thread_local object with a destructor.
void keep_loaded() {
    struct Keep {
        Keep() = default;
        Keep(const Keep&) = delete;
        Keep& operator=(const Keep&) = delete;
        ~Keep() { t_per_thread_stream = false; }
    };
    thread_local const Keep keep;
    static_cast<void>(keep);
}

void crash(const char* what) {
    std::fprintf(stderr,
                 "SIMULATED driver: %s; the real driver crashes here with a segmentation fault\n",
                 what);
    std::abort();
}

CUresult result_of_exception(const char* function) {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "SIMULATED driver: %s: %s\n", function, exception.what());
        return CUDA_ERROR_UNKNOWN;
    }
}

CallScope::CallScope(const char* function, bool anytime) {
    if (g_unloaded) {
        result_ = CUDA_ERROR_DEINITIALIZED;
        return;
    }
    lock_.emplace();
    result_ = begin(function, anytime);
}

CUresult CallScope::begin(const char* function, bool anytime) {
    std::string_view symbol(function);
    if (symbol.starts_with("sim_"))
        symbol.remove_prefix(4);
    const std::string_view base = base_name(symbol);
    machine_ = current_machine();
    if (machine_ == nullptr) {
        print_environment_error();
        return CUDA_ERROR_INVALID_VALUE;
    }
    machine_->calls++;
    const auto counted = machine_->calls_by_function.find(base);
    if (counted == machine_->calls_by_function.end())
        machine_->calls_by_function.emplace(base, 1);
    else
        counted->second++;
    add_cost(*machine_, call_cost(base));
    // The header: what a host function's call of CUDA may result in.
    if (on_host_thread() && !is_error_text(base))
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult ordered = CUDA_SUCCESS;
    if (!is_error_text(base) && fails_by_order(base, ordered))
        return ordered;
    if (global().forked && !is_error_text(base) && base != "cuDriverGetVersion" &&
        base != "cuGetProcAddress")
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!anytime && !machine_->initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    const FunctionRow* const row = find_function_row(symbol);
    if (row != nullptr && row->since > machine_->driver->version)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

} // namespace gcx::sim
