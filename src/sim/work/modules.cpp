// Modules and libraries: their images, and their global variables.
#include "sim/work/modules.hpp"
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/work/image.hpp"
#include "sim/work/work.hpp"

#include <fstream>
#include <iterator>

namespace gcx::sim {
namespace {

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
    // A library belongs to no context. Assumed: unloading takes nothing back.
    for (const auto& device : machine.devices)
        if (module.dynamic_parallelism && (library || context->device == device.get()))
            device->dynamic_parallelism = true;
    return module.handle;
}

void load_module(Machine& machine, const void* image, CUmodule* out) {
    Context& context = current_context(machine);
    require(out != nullptr);
    // Recorded: a function is the same whatever green context is current.
    give(out, load(machine, image, &context.owner(), false));
}

std::vector<char> read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    require(static_cast<bool>(file), CUDA_ERROR_FILE_NOT_FOUND);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    bytes.resize(bytes.size() + 64); // PTX ends with a zero, and headers can be read whole
    return bytes;
}

void unload(Machine& machine, const Module& module) {
    for (const auto& [name, handle] : module.functions) {
        machine.kernels.erase(machine.functions[handle]->kernel);
        machine.functions.erase(handle);
    }
    for (const auto& [name, address] : module.global_addresses)
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
    Context& context = module.context == nullptr ? current_context(machine) : *module.context;
    uint64_t& place = module.global_addresses[name];
    if (place == 0)
        place = allocate_global(machine, context, size->second);
    if (address != nullptr)
        *address = place;
    if (bytes != nullptr)
        *bytes = size->second;
}

} // namespace

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
        unload(machine, module);
    });
}

GCX_SIM_API(cuModuleGetGlobal_v2, CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
            const char* name) {
    GCX_SIM_BODY(give_global(machine, module_of(machine, handle), address, bytes, name));
}

GCX_SIM_API(cuModuleGetLoadingMode, CUmoduleLoadingMode* out) {
    GCX_SIM_BODY(give(out, CU_MODULE_LAZY_LOADING));
}

GCX_SIM_API(cuLibraryLoadData, CUlibrary* out, const void* image, CUjit_option*, void**, unsigned,
            CUlibraryOption*, void**, unsigned) {
    GCX_SIM_BODY({
        require(out != nullptr);
        give(out, load(machine, image, nullptr, true));
    });
}

GCX_SIM_API(cuLibraryLoadFromFile, CUlibrary* out, const char* path, CUjit_option*, void**,
            unsigned, CUlibraryOption*, void**, unsigned) {
    GCX_SIM_BODY({
        require(out != nullptr && path != nullptr);
        give(out, load(machine, read_file(path).data(), nullptr, true));
    });
}

GCX_SIM_API(cuLibraryUnload, CUlibrary handle) {
    GCX_SIM_BODY(unload(machine, library_of(machine, handle)));
}

GCX_SIM_API(cuLibraryGetModule, CUmodule* out, CUlibrary handle) {
    GCX_SIM_BODY({
        current_context(machine);
        require(out != nullptr);
        give(out, library_of(machine, handle).library_module);
    });
}

} // namespace gcx::sim
