// Modules, libraries, functions and kernels.
#include "sim/edge/entry.hpp"
#include "sim/work/image.hpp"

#include <cstring>
#include <fstream>
#include <iterator>

namespace gcx::sim {
namespace {

CUresult load(Machine& machine, const void* image, Context* context, bool library, Handle& out) {
    auto module = std::make_unique<Module>();
    if (const CUresult code = read_image(image, *module); code != CUDA_SUCCESS)
        return code;
    module->handle = new_handle();
    module->is_library = library;
    if (library)
        module->library_module = new_handle();
    module->context = context;
    out = module->handle;
    machine.modules[out] = std::move(module);
    return CUDA_SUCCESS;
}

CUresult load_module(Machine& machine, const void* image, CUmodule* out) {
    Context* context = nullptr;
    if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
        return code;
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    // A module belongs to the primary context under a green one: recorded, a function is the same
    // whatever green context is current.
    Handle handle = 0;
    const CUresult code =
        load(machine, image, context->kind == Context::Kind::Green ? context->primary : context,
             false, handle);
    if (code == CUDA_SUCCESS)
        *out = to_pointer<CUmodule>(handle);
    return code;
}

CUresult load_file(const char* path, std::vector<char>& bytes) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    bytes.resize(bytes.size() + 64); // PTX ends with a zero, and headers can be read whole
    return CUDA_SUCCESS;
}

Module* find_module(Machine& machine, CUmodule handle) {
    if (Module* module = find(machine.modules, handle); module != nullptr)
        return module->is_library ? nullptr : module;
    for (const auto& [key, module] : machine.modules)
        if (module->library_module != 0 && module->library_module == to_handle(handle))
            return module.get();
    return nullptr;
}

Module* find_library(Machine& machine, CUlibrary handle) {
    Module* const module = find(machine.modules, handle);
    return module != nullptr && module->is_library ? module : nullptr;
}

Function* get_function(Machine& machine, Module& module, const std::string& name) {
    if (const auto known = module.functions.find(name); known != module.functions.end())
        return machine.functions[known->second].get();
    const auto code = module.kernels.find(name);
    if (code == module.kernels.end() && !module.any_name)
        return nullptr;
    auto made = std::make_unique<Function>();
    Function& function = *made;
    function.handle = new_handle();
    function.module = module.is_library ? module.library_module : module.handle;
    if (module.is_library) {
        function.kernel = new_handle();
        function.library = module.handle;
        machine.kernels[function.kernel] = function.handle;
    }
    if (code != module.kernels.end())
        function.code = code->second;
    function.code.name = name;
    module.functions[name] = function.handle;
    machine.functions[function.handle] = std::move(made);
    return &function;
}

CUresult unload(Machine& machine, Module* module) {
    if (module == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& [name, handle] : module->functions) {
        machine.kernels.erase(machine.functions[handle]->kernel);
        machine.functions.erase(handle);
    }
    for (const auto& [name, address] : module->global_addresses)
        if (const auto found = machine.allocations.find(address);
            found != machine.allocations.end())
            drop_allocation(machine, found);
    machine.modules.erase(module->handle);
    return CUDA_SUCCESS;
}

CUresult get_global(Machine& machine, Module* module, CUdeviceptr* address, std::size_t* bytes,
                    const char* name) {
    if (module == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const auto size = module->globals.find(name);
    if (size == module->globals.end())
        return CUDA_ERROR_NOT_FOUND;
    Context* context = module->context;
    if (context == nullptr)
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
    uint64_t& place = module->global_addresses[name];
    if (place == 0)
        place = allocate_global(machine, *context, size->second);
    if (place == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (address != nullptr)
        *address = place;
    if (bytes != nullptr)
        *bytes = size->second;
    return CUDA_SUCCESS;
}

CUresult get_attribute(const Machine& machine, const Function& function, int attribute, int& out) {
    const auto set = function.attributes.find(attribute);
    if (set != function.attributes.end()) {
        out = set->second;
        return CUDA_SUCCESS;
    }
    const Profile& profile = machine.devices[0]->profile;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        out = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        out = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        out = profile.major * 10 + profile.minor;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        out = 49152;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        out = -1;
        return CUDA_SUCCESS;
    default:
        out = 0;
        return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_attribute(const Machine& machine, Function& function, int attribute, int value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        const Profile& profile = machine.devices[0]->profile;
        if (value < 0 || value > profile.number("shared_memory_per_block_optin", 101376))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    function.attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult get_parameter(const Function& function, std::size_t index, std::size_t* offset,
                       std::size_t* size) {
    if (offset == nullptr || index >= function.code.parameters.size())
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function.code.parameters[index].offset;
    if (size != nullptr)
        *size = function.code.parameters[index].size;
    return CUDA_SUCCESS;
}

} // namespace

Function* find_function(Machine& machine, Handle handle) {
    if (const auto kernel = machine.kernels.find(handle); kernel != machine.kernels.end())
        handle = kernel->second;
    const auto found = machine.functions.find(handle);
    return found == machine.functions.end() ? nullptr : found->second.get();
}

GCX_SIM_API(cuModuleLoadData, CUmodule* out, const void* image) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return load_module(machine, image, out); });
}

GCX_SIM_API(cuModuleLoadDataEx, CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return load_module(machine, image, out); });
}

GCX_SIM_API(cuModuleLoadFatBinary, CUmodule* out, const void* image) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return load_module(machine, image, out); });
}

GCX_SIM_API(cuModuleLoad, CUmodule* out, const char* path) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (path == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        std::vector<char> bytes;
        const CUresult code = load_file(path, bytes);
        return code == CUDA_SUCCESS ? load_module(machine, bytes.data(), out) : code;
    });
}

GCX_SIM_API(cuModuleUnload, CUmodule handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Module* const module = find_module(machine, handle);
        return unload(machine, module == nullptr || module->is_library ? nullptr : module);
    });
}

GCX_SIM_API(cuModuleGetFunction, CUfunction* out, CUmodule handle, const char* name) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || name == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Module* const module = find_module(machine, handle);
        if (module == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        const Function* const function = get_function(machine, *module, name);
        if (function == nullptr)
            return CUDA_ERROR_NOT_FOUND;
        *out = to_pointer<CUfunction>(function->handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuModuleGetGlobal_v2, CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
            const char* name) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_global(machine, find_module(machine, handle), address, bytes, name);
    });
}

GCX_SIM_API(cuModuleGetFunctionCount, unsigned* out, CUmodule handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Module* const module = find_module(machine, handle);
        if (out == nullptr || module == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = static_cast<unsigned>(module->kernels.size());
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuModuleGetLoadingMode, CUmoduleLoadingMode* out) {
    return call(__func__, [&](Machine&) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = CU_MODULE_LAZY_LOADING;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLibraryLoadData, CUlibrary* out, const void* code_bytes, CUjit_option*, void**,
            unsigned, CUlibraryOption*, void**, unsigned) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Handle handle = 0;
        const CUresult code = load(machine, code_bytes, nullptr, true, handle);
        if (code == CUDA_SUCCESS)
            *out = to_pointer<CUlibrary>(handle);
        return code;
    });
}

GCX_SIM_API(cuLibraryLoadFromFile, CUlibrary* out, const char* path, CUjit_option*, void**,
            unsigned, CUlibraryOption*, void**, unsigned) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || path == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        std::vector<char> bytes;
        if (const CUresult code = load_file(path, bytes); code != CUDA_SUCCESS)
            return code;
        Handle handle = 0;
        const CUresult code = load(machine, bytes.data(), nullptr, true, handle);
        if (code == CUDA_SUCCESS)
            *out = to_pointer<CUlibrary>(handle);
        return code;
    });
}

GCX_SIM_API(cuLibraryUnload, CUlibrary handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return unload(machine, find_library(machine, handle));
    });
}

GCX_SIM_API(cuLibraryGetKernel, CUkernel* out, CUlibrary handle, const char* name) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || name == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Module* const library = find_library(machine, handle);
        if (library == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        const Function* const function = get_function(machine, *library, name);
        if (function == nullptr)
            return CUDA_ERROR_NOT_FOUND;
        *out = to_pointer<CUkernel>(function->kernel);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLibraryGetModule, CUmodule* out, CUlibrary handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        const Module* const library = find_library(machine, handle);
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (library == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = to_pointer<CUmodule>(library->library_module);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLibraryGetGlobal, CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
            const char* name) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_global(machine, find_library(machine, handle), address, bytes, name);
    });
}

GCX_SIM_API(cuLibraryGetKernelCount, unsigned* out, CUlibrary handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Module* const library = find_library(machine, handle);
        if (out == nullptr || library == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = static_cast<unsigned>(library->kernels.size());
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLibraryEnumerateKernels, CUkernel* out, unsigned count, CUlibrary handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Module* const library = find_library(machine, handle);
        if (out == nullptr || library == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        for (const auto& [name, code] : library->kernels)
            if (count-- > 0)
                *out++ = to_pointer<CUkernel>(get_function(machine, *library, name)->kernel);
            else
                break;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuKernelGetFunction, CUfunction* out, CUkernel handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (function == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = to_pointer<CUfunction>(function->handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuKernelGetLibrary, CUlibrary* out, CUkernel handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (function == nullptr || function->library == 0)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = to_pointer<CUlibrary>(function->library);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuKernelGetAttribute, int* out, CUfunction_attribute attribute, CUkernel handle,
            CUdevice) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                   : get_attribute(machine, *function, attribute, *out);
    });
}

GCX_SIM_API(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel handle,
            CUdevice) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Function* const function = find_function(machine, to_handle(handle));
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                   : set_attribute(machine, *function, attribute, value);
    });
}

GCX_SIM_API(cuKernelGetName, const char** out, CUkernel handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr || function == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = function->code.name.c_str();
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuKernelGetParamInfo, CUkernel handle, std::size_t index, std::size_t* offset,
            std::size_t* size) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        return function == nullptr ? CUDA_ERROR_INVALID_VALUE
                                   : get_parameter(*function, index, offset, size);
    });
}

GCX_SIM_API(cuKernelSetCacheConfig, CUkernel handle, CUfunc_cache, CUdevice) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return find_function(machine, to_handle(handle)) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                                    : CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuFuncGetAttribute, int* out, CUfunction_attribute attribute, CUfunction handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                   : get_attribute(machine, *function, attribute, *out);
    });
}

GCX_SIM_API(cuFuncSetAttribute, CUfunction handle, CUfunction_attribute attribute, int value) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Function* const function = find_function(machine, to_handle(handle));
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                   : set_attribute(machine, *function, attribute, value);
    });
}

GCX_SIM_API(cuFuncSetCacheConfig, CUfunction handle, CUfunc_cache) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return find_function(machine, to_handle(handle)) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                                    : CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuFuncGetModule, CUmodule* out, CUfunction handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (function == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = to_pointer<CUmodule>(function->module);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuFuncGetName, const char** out, CUfunction handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        if (out == nullptr || function == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = function->code.name.c_str();
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuFuncGetParamInfo, CUfunction handle, std::size_t index, std::size_t* offset,
            std::size_t* size) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Function* const function = find_function(machine, to_handle(handle));
        return function == nullptr ? CUDA_ERROR_INVALID_VALUE
                                   : get_parameter(*function, index, offset, size);
    });
}

GCX_SIM_API(cuFuncIsLoaded, CUfunctionLoadingState* out, CUfunction handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || find_function(machine, to_handle(handle)) == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = CU_FUNCTION_LOADING_STATE_LOADED;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuFuncLoad, CUfunction handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return find_function(machine, to_handle(handle)) == nullptr ? CUDA_ERROR_INVALID_VALUE
                                                                    : CUDA_SUCCESS;
    });
}

} // namespace gcx::sim
