// The functions of gcx_sim.h. They are not driver calls: they are not counted, have no cost, and
// ordered failures do not affect them.
#include "gcx_sim.h"
#include "sim/entry/clock.hpp"
#include "sim/entry/entry.hpp"

#include <algorithm>
#include <exception>
#include <string>

namespace gcx::sim {
namespace {

std::string& last_error() {
    thread_local std::string error;
    return error;
}

// Profiles can be described without a machine.
const std::vector<Profile>& known_profiles() {
    static const auto* const profiles = [] {
        auto* made = new std::vector<Profile>(kEmbeddedProfileCount);
        std::string error;
        for (std::size_t i = 0; i < kEmbeddedProfileCount; i++)
            parse_profile(kEmbeddedProfiles[i].text, kEmbeddedProfiles[i].key, (*made)[i], error);
        return made;
    }();
    return *profiles;
}

// Runs the body under the lock; lets no exception leave the C function.
template <class Result, class Body>
Result guarded(Result otherwise, const Body& body) {
    try {
        const MachineLock lock;
        return body();
    } catch (const std::exception& exception) {
        last_error() = exception.what();
    } catch (const Refusal&) {
        last_error() = "another machine replaced this one during the call";
    }
    return otherwise;
}

CUresult failed(CUresult result, const std::string& why) {
    last_error() = why;
    return result;
}

template <class T, class Test>
uint64_t count_if(const Table<T>& table, const Test& test) {
    return static_cast<uint64_t>(
        std::ranges::count_if(table, [&](const auto& entry) { return test(*entry.second); }));
}

void fill_counts(const Machine& machine, gcx_sim_counts& counts) {
    using Kind = Context::Kind;
    for (const auto& device : machine.devices) {
        counts.primary_retains += device->primary_retains;
        counts.device_bytes_used += device->memory_used;
        counts.device_bytes_lost += device->memory_lost;
    }
    counts.contexts = count_if(machine.contexts, [](const Context& context) {
        return context.alive && context.kind == Kind::Created;
    });
    counts.green_contexts = count_if(machine.contexts, [](const Context& context) {
        return context.alive && context.kind == Kind::Green;
    });
    // Each live green context retains the primary one; only the callers' retains are counted.
    counts.primary_retains -= std::min(counts.primary_retains, counts.green_contexts);
    counts.streams = count_if(machine.streams, [](const Stream& stream) { return !stream.gone; });
    counts.events = machine.events.size();
    counts.modules = machine.modules.size();
    counts.graphs = machine.graph_execs.size() +
                    count_if(machine.graphs, [](const Graph& graph) { return !graph.hidden; });
    for (const auto& [address, allocation] : machine.allocations) {
        if (allocation.kind == MemoryKind::Module || allocation.freed)
            continue;
        counts.allocations++;
        counts.allocated_bytes += allocation.bytes;
    }
    counts.descriptors = machine.descriptors.size();
    counts.calls = machine.calls;
    counts.clock_ns = machine.clock_ns;
}

} // namespace
extern "C" {

GCX_SIM_EXPORT int gcx_sim_configure(const char* spec) {
    last_error().clear();
    return guarded(CUDA_ERROR_UNKNOWN, [&] { return configure(spec, last_error()); });
}

GCX_SIM_EXPORT const char* gcx_sim_last_error(void) {
    return last_error().c_str();
}

GCX_SIM_EXPORT const char* gcx_sim_spec(void) {
    return guarded("", [] {
        thread_local std::string spec;
        const Machine* const current = current_machine();
        last_error() = environment_error();
        spec = current == nullptr ? "" : current->spec;
        return spec.c_str();
    });
}

GCX_SIM_EXPORT const char* gcx_sim_gpu_name(std::size_t index) {
    return index < kEmbeddedProfileCount ? kEmbeddedProfiles[index].key : nullptr;
}

GCX_SIM_EXPORT const char* gcx_sim_gpu_description(std::size_t index) {
    return index < kEmbeddedProfileCount ? known_profiles()[index].description.c_str() : nullptr;
}

GCX_SIM_EXPORT const char* gcx_sim_driver_name(std::size_t index) {
    return index < kDriverVersionCount ? kDriverVersions[index].name : nullptr;
}

GCX_SIM_EXPORT const char* gcx_sim_driver_description(std::size_t index) {
    return index < kDriverVersionCount ? kDriverVersions[index].description : nullptr;
}

GCX_SIM_EXPORT int gcx_sim_fail(const char* function, uint64_t nth, int result) {
    last_error().clear();
    return guarded(CUDA_ERROR_UNKNOWN, [&] {
        if (nth > 0 && result <= 0)
            return failed(CUDA_ERROR_INVALID_VALUE,
                          "a call can fail with a CUresult above 0 only, not with " +
                              std::to_string(result));
        if (current_machine() == nullptr)
            return failed(CUDA_ERROR_INVALID_VALUE, environment_error());
        const bool any = function == nullptr || std::string_view(function) == "*";
        if (!any && !is_known_function(function))
            return failed(CUDA_ERROR_NOT_FOUND,
                          "no driver function \"" + std::string(function) + "\" is simulated");
        order_failure(any ? "" : function, nth, static_cast<CUresult>(result));
        return CUDA_SUCCESS;
    });
}

GCX_SIM_EXPORT uint64_t gcx_sim_calls(const char* function) {
    return guarded(uint64_t{0}, [&] {
        const Machine* const current = current_machine();
        if (current == nullptr)
            return uint64_t{0};
        if (function == nullptr)
            return current->calls;
        const auto found = current->calls_by_function.find(base_name(function));
        return found == current->calls_by_function.end() ? uint64_t{0} : found->second;
    });
}

GCX_SIM_EXPORT void gcx_sim_get_counts(gcx_sim_counts* counts) {
    if (counts == nullptr)
        return;
    *counts = guarded(gcx_sim_counts{}, [] {
        gcx_sim_counts now{};
        if (const Machine* const current = current_machine(); current != nullptr)
            fill_counts(*current, now);
        return now;
    });
}

GCX_SIM_EXPORT void gcx_sim_advance(uint64_t nanoseconds) {
    guarded(false, [&] {
        if (Machine* const current = current_machine(); current != nullptr)
            advance_to(*current, current->clock_ns + nanoseconds);
        return true;
    });
}

} // extern "C"

} // namespace gcx::sim
