// Functions and kernels: those of modules and of libraries, and what can be asked of them and set.
#include "sim/edge/entry.hpp"
#include "sim/work/modules.hpp"
#include "sim/work/work.hpp"

namespace gcx::sim {
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

void give_attribute(Machine& machine, Handle handle, int attribute, int* out) {
    require(out != nullptr);
    const Function& function = function_of(machine, handle);
    const auto set = function.attributes.find(attribute);
    *out = set != function.attributes.end()
               ? set->second
               : default_attribute(machine.devices[0]->profile, attribute);
    require(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
}

void set_attribute(Machine& machine, Handle handle, int attribute, int value) {
    Function& function = function_of(machine, handle);
    const Profile& profile = machine.devices[0]->profile;
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

Function* get_function(Machine& machine, Module& module, const std::string& name) {
    if (const auto known = module.functions.find(name); known != module.functions.end())
        return machine.functions[known->second].get();
    const auto code = module.kernels.find(name);
    if (code == module.kernels.end() && !module.any_name)
        return nullptr;
    Function& function = create(machine.functions);
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
            CUdevice) {
    GCX_SIM_BODY(set_attribute(machine, to_handle(handle), attribute, value));
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
    GCX_SIM_BODY(set_attribute(machine, to_handle(handle), attribute, value));
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
