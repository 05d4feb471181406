// Lookups in the function table, and cuGetProcAddress.
#include "sim/entry/entry.hpp"

#include <cstring>
#include <unordered_map>

namespace gcx::sim {
namespace {

constexpr int kNotFound = 1;      // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
constexpr int kVersionTooLow = 2; // CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT

struct Found {
    const FunctionRow* row = nullptr; // the newest variant of the requested version
    bool known = false;               // this driver has some version of it
};

Found look_up(const Machine& machine, std::string_view name, int version) {
    Found found;
    for (std::size_t i = 0; i < kFunctionCount; i++) {
        const FunctionRow& row = kFunctions[i];
        if (name != row.base || row.since > machine.driver->version)
            continue;
        found.known = true;
        if (row.since <= version && (found.row == nullptr || row.since > found.row->since))
            found.row = &row;
    }
    return found;
}

void give_address(const Machine& machine, const char* name, void** out, int version,
                  cuuint64_t flags, int* status) {
    require(name != nullptr && out != nullptr && *name != '\0');
    const Found found = look_up(machine, name, version);
    *out = nullptr;
    if (status != nullptr)
        *status = found.known ? 0 : kNotFound;
    constexpr cuuint64_t kPerThread = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    // Recorded: refused if the version is above the driver's.
    require(version <= machine.driver->version && flags <= kPerThread);
    if (found.row == nullptr) {
        if (status != nullptr && found.known)
            *status = kVersionTooLow;
        return;
    }
    const bool per_thread = flags == kPerThread && found.row->per_thread_address != nullptr;
    *out = std::bit_cast<void*>(per_thread ? found.row->per_thread_address : found.row->address);
}

} // namespace

const FunctionRow* find_function_row(std::string_view symbol) {
    static const auto* const rows = [] {
        auto* made = new std::unordered_map<std::string_view, const FunctionRow*>;
        for (std::size_t i = 0; i < kFunctionCount; i++)
            made->emplace(kFunctions[i].symbol, &kFunctions[i]);
        return made;
    }();
    const auto found = rows->find(symbol);
    return found == rows->end() ? nullptr : found->second;
}

bool is_known_function(std::string_view function) {
    const std::string_view base = base_name(function);
    for (std::size_t i = 0; i < kFunctionCount; i++)
        if (base == kFunctions[i].base)
            return true;
    return false;
}

GCX_SIM_API(cuGetProcAddress, const char* name, void** out, int version, cuuint64_t flags) {
    GCX_SIM_BODY_ANYTIME({
        give_address(machine, name, out, version, flags, nullptr);
        // This variant has no query result, so that an absent function is an error.
        require(*out != nullptr, CUDA_ERROR_NOT_FOUND);
    });
}

GCX_SIM_API(cuGetProcAddress_v2, const char* name, void** out, int version, cuuint64_t flags,
            int* status) {
    GCX_SIM_BODY_ANYTIME(give_address(machine, name, out, version, flags, status));
}

GCX_SIM_API(cuGetExportTable, const void** out, const CUuuid*) {
    GCX_SIM_BODY_ANYTIME({
        // These are private tables of the CUDA runtime, which therefore does not start here.
        if (out != nullptr)
            *out = nullptr;
        return CUDA_ERROR_NOT_FOUND;
    });
}

} // namespace gcx::sim
