#include "cuda.hpp"

#include "../driver/kernels.hpp"
#include "runner.hpp"

#include <dlfcn.h>

namespace random_programs {
namespace {

constexpr unsigned kGreenSms = 24;

} // namespace

Cuda::Cuda(const std::string& library, Within within) {
    open(library);
    check(init(0), "cuInit");
    if (within == Within::kCreated)
        check(create_context(&context, 0, 0), "cuCtxCreate");
    else
        check(retain_primary(&context, 0), "cuDevicePrimaryCtxRetain");
    if (within == Within::kGreen)
        use_green_context();
    enter();
    load_kernels();
}

void Cuda::open(const std::string& library) {
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        throw Wrong(dlerror());
    const auto symbol = [&](const char* name) {
        void* const found = dlsym(handle, name);
        if (found == nullptr)
            throw Wrong(library + " has no " + name);
        return found;
    };
#define RANDOM_FIND(name, function) name = reinterpret_cast<decltype(name)>(symbol(#function));
    RANDOM_FUNCTIONS(RANDOM_FIND)
#undef RANDOM_FIND
#define RANDOM_FIND(name, function, suffix)                                                        \
    name.legacy = reinterpret_cast<decltype(name.legacy)>(symbol(#function));                      \
    name.per_thread = reinterpret_cast<decltype(name.legacy)>(symbol(#function #suffix));
    RANDOM_STREAM_FUNCTIONS(RANDOM_FIND)
#undef RANDOM_FIND
    using WriteValue = decltype(write_value.legacy);
    write_value.legacy = reinterpret_cast<WriteValue>(dlsym(handle, "cuStreamWriteValue32_v2"));
    write_value.per_thread =
        reinterpret_cast<WriteValue>(dlsym(handle, "cuStreamWriteValue32_v2_ptsz"));
}

void Cuda::use_green_context() {
    CUdevResource all{};
    CUdevResource part{};
    CUdevResource rest{};
    unsigned groups = 1;
    CUdevResourceDesc descriptor = nullptr;
    CUgreenCtx green = nullptr;
    check(get_resource(0, &all, gcx::cu::kResourceSm), "cuDeviceGetDevResource");
    check(split(&part, &groups, &all, &rest, 0, kGreenSms), "cuDevSmResourceSplitByCount");
    check(generate_descriptor(&descriptor, &part, 1), "cuDevResourceGenerateDesc");
    check(create_green(&green, descriptor, 0, gcx::cu::kGreenCtxDefaultStream), "cuGreenCtxCreate");
    check(context_of_green(&context, green), "cuCtxFromGreenCtx");
}

void Cuda::load_kernels() {
    CUmodule module = nullptr;
    check(load_module(&module, conformance::kKernels), "cuModuleLoadData");
    check(get_function(&spin, module, "gcx_spin"), "gcx_spin");
    check(get_function(&store, module, "gcx_store"), "gcx_store");
    check(get_function(&load, module, "gcx_load"), "gcx_load");
    check(get_function(&add, module, "gcx_add"), "gcx_add");
    run_kernels_once();
}

// A kernel that is loaded when it is first launched could not be captured.
void Cuda::run_kernels_once() const {
    CUdeviceptr words = 0;
    check(allocate(&words, 8), "cuMemAlloc");
    uint64_t ns = 0;
    uint64_t to = words;
    uint64_t from = words + 4;
    uint32_t value = 0;
    void* of_spin[] = {&ns};
    void* with_value[] = {&to, &value, &ns};
    void* with_source[] = {&to, &from};
    const auto run = [&](CUfunction function, void** arguments) {
        check(launch.legacy(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              "cuLaunchKernel");
    };
    check(fill_now.legacy(words, 0, 2), "cuMemsetD32");
    run(spin, of_spin);
    run(store, with_value);
    run(add, with_value);
    run(load, with_source);
    check(synchronize_context(), "cuCtxSynchronize");
    check(free_memory(words), "cuMemFree");
}

void Cuda::enter() const {
    check(set_current(context), "cuCtxSetCurrent");
}

std::string Cuda::name_of(CUresult result) const {
    const char* name = nullptr;
    if (error_name(result, &name) != CUDA_SUCCESS)
        return std::to_string(result);
    return name;
}

void Cuda::check(CUresult result, const char* call) const {
    if (result != CUDA_SUCCESS)
        throw Wrong(std::string(call) + " returned " + name_of(result));
}

} // namespace random_programs
