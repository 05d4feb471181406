// Modules and libraries, and their kernels, functions and global variables.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/work/work.hpp"

#include <fstream>
#include <iterator>

namespace gcx::sim {

namespace {

// Also accepts the module of a library.
Module& module_of(Machine& machine, CUmodule handle) {
    if (Module* const module = find(machine.modules, handle);
        module != nullptr && !module->is_library)
        return *module;
    for (const auto& [key, module] : machine.modules)
        if (module->library_module != 0 && module->library_module == to_handle(handle))
            return *module;
    refuse(CUDA_ERROR_INVALID_HANDLE);
}

Module& library_of(Machine& machine, CUlibrary handle) {
    Module& module = known(find(machine.modules, handle), CUDA_ERROR_INVALID_HANDLE);
    require(module.is_library, CUDA_ERROR_INVALID_HANDLE);
    return module;
}

Handle load(Machine& machine, const void* image, Context* context, bool library) {
    Module read;
    read_image(image, read);
    Module& module = create(machine.modules);
    read.handle = module.handle;
    module = std::move(read);
    module.is_library = library;
    if (library)
        module.library_module = new_handle();
    module.context = context;
    // A library belongs to no context. Assumed: unloading does not undo this.
    for (const auto& device : machine.devices)
        if (module.dynamic_parallelism && (library || context->device == device.get()))
            device->dynamic_parallelism = true;
    return module.handle;
}

void load_module(Machine& machine, const void* image, CUmodule* out) {
    Context& context = current_context(machine);
    require(out != nullptr);
    // Recorded: it waits for all work of the primary context and its green ones, and is allowed
    // during a capture.
    wait_until(machine, context.owner().busy);
    // Recorded: the function is the same for all green contexts.
    give(out, load(machine, image, &context.owner(), false));
}

std::vector<char> read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    require(static_cast<bool>(file), CUDA_ERROR_FILE_NOT_FOUND);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    bytes.resize(bytes.size() + 64); // terminates PTX, and makes headers of short files readable
    return bytes;
}

void unload(Machine& machine, const Module& module) {
    for (const auto& [name, handle] : module.functions) {
        machine.kernels.erase(machine.functions[handle]->kernel);
        machine.functions.erase(handle);
    }
    for (const auto& [variable, address] : module.global_addresses)
        if (const auto found = machine.allocations.find(address);
            found != machine.allocations.end())
            drop_allocation(machine, found);
    machine.modules.erase(module.handle);
}

void give_global(Machine& machine, Module& module, CUdeviceptr* address, std::size_t* bytes,
                 const char* name) {
    require(name != nullptr);
    const auto size = module.globals.find(name);
    require(size != module.globals.end(), CUDA_ERROR_NOT_FOUND);
    Context& context =
        module.context == nullptr ? current_context(machine).owner() : *module.context;
    uint64_t& place = module.global_addresses[{name, &context}];
    if (place == 0)
        place = allocate_global(machine, context, size->second);
    if (address != nullptr)
        *address = place;
    if (bytes != nullptr)
        *bytes = size->second;
}

} // namespace

GCX_SIM_API(cuModuleLoadData, CUmodule* out, const void* image) {
    GCX_SIM_BODY(load_module(machine, image, out));
}

GCX_SIM_API(cuModuleLoadDataEx, CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
    GCX_SIM_BODY(load_module(machine, image, out));
}

GCX_SIM_API(cuModuleLoadFatBinary, CUmodule* out, const void* image) {
    GCX_SIM_BODY(load_module(machine, image, out));
}

GCX_SIM_API(cuModuleLoad, CUmodule* out, const char* path) {
    GCX_SIM_BODY({
        require(path != nullptr);
        load_module(machine, read_file(path).data(), out);
    });
}

GCX_SIM_API(cuModuleUnload, CUmodule handle) {
    GCX_SIM_BODY({
        const Module& module = module_of(machine, handle);
        require(!module.is_library, CUDA_ERROR_INVALID_HANDLE);
        wait_until(machine, module.context->busy); // recorded: with that of green contexts
        unload(machine, module_of(machine, handle));
    });
}

GCX_SIM_API(cuModuleGetGlobal_v2, CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
            const char* name) {
    GCX_SIM_BODY(give_global(machine, module_of(machine, handle), address, bytes, name));
}

GCX_SIM_API(cuLibraryGetGlobal, CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
            const char* name) {
    GCX_SIM_BODY(give_global(machine, library_of(machine, handle), address, bytes, name));
}

GCX_SIM_API(cuModuleGetLoadingMode, CUmoduleLoadingMode* out) {
    GCX_SIM_BODY(give(out, CU_MODULE_LAZY_LOADING));
}

GCX_SIM_API(cuLibraryLoadData, CUlibrary* out, const void* image, CUjit_option*, void**, unsigned,
            CUlibraryOption*, void**, unsigned) {
    GCX_SIM_GIVE(out, load(machine, image, nullptr, true));
}

GCX_SIM_API(cuLibraryLoadFromFile, CUlibrary* out, const char* path, CUjit_option*, void**,
            unsigned, CUlibraryOption*, void**, unsigned) {
    GCX_SIM_BODY({
        require(out != nullptr && path != nullptr);
        give(out, load(machine, read_file(path).data(), nullptr, true));
    });
}

GCX_SIM_API(cuLibraryUnload, CUlibrary handle) {
    GCX_SIM_BODY({
        library_of(machine, handle);
        for (const auto& device : machine.devices) // assumed: like cuModuleUnload
            wait_until(machine, device->busy);
        unload(machine, library_of(machine, handle));
    });
}

GCX_SIM_API(cuLibraryGetModule, CUmodule* out, CUlibrary handle) {
    GCX_SIM_BODY({
        current_context(machine);
        require(out != nullptr);
        give(out, library_of(machine, handle).library_module);
    });
}

// Functions and kernels.

namespace {

int default_attribute(const Profile& profile, int attribute) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return 1024;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return profile.major * 10 + profile.minor;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return 49152;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return -1;
    default:
        return 0;
    }
}

// Returns the device that a function is for: its module's, or for a library's the current one.
const Device& device_of(Machine& machine, const Function& function) {
    return *(function.context == nullptr ? current_context(machine) : *function.context).device;
}

void give_attribute(Machine& machine, Handle handle, int attribute, int* out) {
    require(out != nullptr);
    const Function& function = function_of(machine, handle);
    const auto set = function.attributes.find(attribute);
    *out = set != function.attributes.end()
               ? set->second
               : default_attribute(device_of(machine, function).profile, attribute);
    require(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
}

void set_attribute(Function& function, const Device& device, int attribute, int value) {
    const Profile& profile = device.profile;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        require(value >= 0 && value <= profile.number("shared_memory_per_block_optin"));
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        break;
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
    function.attributes[attribute] = value;
}

void give_name(Machine& machine, Handle handle, const char** out) {
    give(out, function_of(machine, handle, CUDA_ERROR_INVALID_VALUE).code.name.c_str());
}

void give_parameter(Machine& machine, Handle handle, std::size_t index, std::size_t* offset,
                    std::size_t* size) {
    const Function& function = function_of(machine, handle, CUDA_ERROR_INVALID_VALUE);
    require(offset != nullptr && index < function.code.parameters.size());
    *offset = function.code.parameters[index].offset;
    if (size != nullptr)
        *size = function.code.parameters[index].size;
}

// Returns the function with that name, or null. Creates it when it is first requested.
Function* get_function(Machine& machine, Module& module, const std::string& name) {
    if (const auto known = module.functions.find(name); known != module.functions.end())
        return machine.functions[known->second].get();
    const auto code = module.kernels.find(name);
    if (code == module.kernels.end() && !module.any_name)
        return nullptr;
    Function& function = create(machine.functions);
    function.context = module.context;
    if (module.is_library) {
        function.kernel = new_handle();
        machine.kernels[function.kernel] = function.handle;
    }
    if (code != module.kernels.end())
        function.code = code->second;
    function.code.name = name;
    module.functions[name] = function.handle;
    return &function;
}

Function& named_function(Machine& machine, Module& module, const char* name) {
    return known(get_function(machine, module, name), CUDA_ERROR_NOT_FOUND);
}

} // namespace

Function* find_function(Machine& machine, Handle handle) {
    if (const auto kernel = machine.kernels.find(handle); kernel != machine.kernels.end())
        handle = kernel->second;
    const auto found = machine.functions.find(handle);
    return found == machine.functions.end() ? nullptr : found->second.get();
}

Function& function_of(Machine& machine, Handle handle, CUresult otherwise) {
    return known(find_function(machine, handle), otherwise);
}

GCX_SIM_API(cuModuleGetFunction, CUfunction* out, CUmodule handle, const char* name) {
    GCX_SIM_BODY({
        require(out != nullptr && name != nullptr);
        give(out, named_function(machine, module_of(machine, handle), name).handle);
    });
}

GCX_SIM_API(cuLibraryGetKernel, CUkernel* out, CUlibrary handle, const char* name) {
    GCX_SIM_BODY({
        require(out != nullptr && name != nullptr);
        give(out, named_function(machine, library_of(machine, handle), name).kernel);
    });
}

GCX_SIM_API(cuKernelGetFunction, CUfunction* out, CUkernel handle) {
    GCX_SIM_BODY({
        current_context(machine);
        require(out != nullptr);
        give(out, function_of(machine, to_handle(handle)).handle);
    });
}

GCX_SIM_API(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel handle,
            CUdevice ordinal) {
    GCX_SIM_BODY({
        Function& function = function_of(machine, to_handle(handle));
        set_attribute(function, device_of(machine, ordinal), attribute, value);
    });
}

GCX_SIM_API(cuKernelGetName, const char** out, CUkernel handle) {
    GCX_SIM_BODY(give_name(machine, to_handle(handle), out));
}

GCX_SIM_API(cuKernelGetParamInfo, CUkernel handle, std::size_t index, std::size_t* offset,
            std::size_t* size) {
    GCX_SIM_BODY({
        current_context(machine); // measured on 13.0: INVALID_CONTEXT if there is none
        give_parameter(machine, to_handle(handle), index, offset, size);
    });
}

GCX_SIM_API(cuFuncGetAttribute, int* out, CUfunction_attribute attribute, CUfunction handle) {
    GCX_SIM_BODY(give_attribute(machine, to_handle(handle), attribute, out));
}

GCX_SIM_API(cuFuncSetAttribute, CUfunction handle, CUfunction_attribute attribute, int value) {
    GCX_SIM_BODY({
        Function& function = function_of(machine, to_handle(handle));
        set_attribute(function, device_of(machine, function), attribute, value);
    });
}

GCX_SIM_API(cuFuncSetCacheConfig, CUfunction handle, CUfunc_cache) {
    GCX_SIM_BODY(function_of(machine, to_handle(handle)));
}

GCX_SIM_API(cuFuncGetName, const char** out, CUfunction handle) {
    GCX_SIM_BODY(give_name(machine, to_handle(handle), out));
}

GCX_SIM_API(cuFuncGetParamInfo, CUfunction handle, std::size_t index, std::size_t* offset,
            std::size_t* size) {
    GCX_SIM_BODY(give_parameter(machine, to_handle(handle), index, offset, size));
}

} // namespace gcx::sim
