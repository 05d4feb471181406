#include "driver.hpp"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace conformance {

Gpu gpu;
Kernels kernels;

const uint64_t kSlow = [] {
    const char* const given = std::getenv(kSlowVariable);
    return (given != nullptr ? std::strtoull(given, nullptr, 10) : 5) * kMillisecond;
}();

void* find_symbol(const char* name) {
    const char* const given = std::getenv(kLibraryVariable);
    static void* const library = dlopen(given != nullptr ? given : "libcuda.so.1", RTLD_NOW);
    if (library == nullptr)
        throw Stop("there is no libcuda.so.1");
    void* const found = dlsym(library, name);
    if (found == nullptr)
        throw Stop(std::string("libcuda has no ") + name);
    return found;
}

std::string name_of(CUresult result) {
    const char* name = nullptr;
    if (CU(cuGetErrorName)(result, &name) != CUDA_SUCCESS || name == nullptr)
        return "result " + std::to_string(static_cast<int>(result));
    for (const char* prefix : {"CUDA_ERROR_", "CUDA_"})
        if (std::strncmp(name, prefix, std::strlen(prefix)) == 0)
            return name + std::strlen(prefix);
    return name;
}

void must(CUresult result, const std::string& what) {
    if (result != CUDA_SUCCESS)
        throw Stop(what + " failed: " + name_of(result));
}

void start_driver() {
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &gpu.device, 0);
    MUST(cuDevicePrimaryCtxRetain, &gpu.primary, gpu.device);
}

void make_green_contexts() {
    constexpr unsigned kSms = 24;
    CUdevResource all{};
    CUdevResource parts[2] = {};
    unsigned count = 2;
    MUST(cuDeviceGetDevResource, gpu.device, &all, gcx::cu::kResourceSm);
    MUST(cuDevSmResourceSplitByCount, parts, &count, &all, nullptr, 0, kSms);
    if (count < 2)
        throw Stop("the device has too few SMs for two green contexts");
    CUgreenCtx* const handles[] = {&gpu.green_handle, &gpu.other_handle};
    CUcontext* const contexts[] = {&gpu.green, &gpu.other};
    for (int i = 0; i < 2; i++) {
        CUdevResourceDesc descriptor{};
        MUST(cuDevResourceGenerateDesc, &descriptor, &parts[i], 1);
        MUST(cuGreenCtxCreate, handles[i], descriptor, gpu.device, gcx::cu::kGreenCtxDefaultStream);
        MUST(cuCtxFromGreenCtx, contexts[i], *handles[i]);
    }
}

CUmodule load_kernels() {
    CUmodule module = nullptr;
    MUST(cuModuleLoadData, &module, kKernels);
    struct {
        CUfunction* function;
        const char* name;
    } const all[] = {
        {&kernels.spin, "gcx_spin"},
        {&kernels.probe, "gcx_probe"},
        {&kernels.store, "gcx_store"},
        {&kernels.load, "gcx_load"},
        {&kernels.add, "gcx_add"},
        {&kernels.wait, "gcx_wait"},
        {&kernels.set_variable, "gcx_set_variable"},
        {&kernels.get_variable, "gcx_get_variable"},
        {&kernels.trap, "gcx_trap"},
    };
    for (const auto& each : all)
        MUST(cuModuleGetFunction, each.function, module, each.name);
    return module;
}

void run_kernels_once() {
    const CUdeviceptr words = device_words();
    const uint64_t now = 0;
    must(spin(nullptr, 1), "gcx_spin");
    must(store(nullptr, words, 0, 1), "gcx_store");
    must(load(nullptr, words, words + 4), "gcx_load");
    must(launch(kernels.add, nullptr, words, uint32_t{0}), "gcx_add");
    must(launch(kernels.wait, nullptr, words, now), "gcx_wait");
    must(launch(kernels.set_variable, nullptr, uint32_t{7}), "gcx_set_variable");
    must(launch(kernels.get_variable, nullptr, words), "gcx_get_variable");
    must(launch(kernels.probe, nullptr, words, uint32_t{0}, uint32_t{1}), "gcx_probe");
    settle();
}

void prepare(Needs needs) {
    if (needs == Needs::kNothing)
        return;
    start_driver();
    make_current(gpu.primary);
    load_kernels();
    run_kernels_once();
    if (needs == Needs::kPrimary)
        return;
    make_green_contexts();
    for (CUcontext context : {gpu.green, gpu.other, gpu.primary}) {
        make_current(context);
        run_kernels_once();
    }
}

void make_current(CUcontext context) {
    MUST(cuCtxSetCurrent, context);
}

CUresult spin(CUstream stream, uint64_t nanoseconds) {
    return launch(kernels.spin, stream, nanoseconds);
}

CUresult store(CUstream stream, CUdeviceptr to, uint32_t value, uint64_t after) {
    return launch(kernels.store, stream, to, value, after);
}

CUresult load(CUstream stream, CUdeviceptr to, CUdeviceptr from) {
    return launch(kernels.load, stream, to, from);
}

CUdeviceptr device_words(std::size_t bytes) {
    CUdeviceptr words = 0;
    MUST(cuMemAlloc_v2, &words, bytes);
    MUST(cuMemsetD8_v2, words, 0, bytes);
    settle();
    return words;
}

volatile uint32_t* host_words(std::size_t bytes) {
    void* words = nullptr;
    MUST(cuMemHostAlloc, &words, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    std::memset(words, 0, bytes);
    return static_cast<volatile uint32_t*>(words);
}

void settle() {
    CUcontext before = nullptr;
    MUST(cuCtxGetCurrent, &before);
    make_current(gpu.primary);
    must(CU(cuCtxSynchronize)(), "cuCtxSynchronize");
    make_current(before);
}

uint32_t read_word(CUdeviceptr from) {
    settle();
    uint32_t value = 0;
    MUST(cuMemcpyDtoH_v2, &value, from, sizeof value);
    return value;
}

void write_word(CUdeviceptr to, uint32_t value) {
    MUST(cuMemcpyHtoD_v2, to, &value, sizeof value);
    settle();
}

CUevent make_event(unsigned flags) {
    CUevent event = nullptr;
    MUST(cuEventCreate, &event, flags);
    return event;
}

CUevent mark(CUstream stream) {
    CUevent event = make_event();
    MUST(cuEventRecord, event, stream);
    return event;
}

std::string waited_for(CUevent slow) {
    const CUresult result = CU(cuEventQuery)(slow);
    if (result == CUDA_SUCCESS)
        return "waits";
    return result == CUDA_ERROR_NOT_READY ? "does not wait" : name_of(result);
}

std::string order_of(const std::function<CUresult()>& query, CUevent slow) {
    for (;;) {
        const CUresult answer = query();
        const CUresult running = CU(cuEventQuery)(slow);
        if (answer == CUDA_SUCCESS)
            return running == CUDA_ERROR_NOT_READY ? "independent" : "ordered";
        if (answer != CUDA_ERROR_NOT_READY)
            return name_of(answer);
        if (running == CUDA_SUCCESS)
            return "ordered";
        if (running != CUDA_ERROR_NOT_READY)
            return name_of(running);
    }
}

void in_thread(CUcontext context, const std::function<void()>& body) {
    std::string failure;
    std::thread thread([&] {
        try {
            if (context != nullptr)
                make_current(context);
            body();
        } catch (const Stop& stop) {
            failure = stop.what();
        }
    });
    thread.join();
    if (!failure.empty())
        throw Stop("in a thread: " + failure);
}

struct Attempt::State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    CUresult result = CUDA_SUCCESS;
};

Attempt::Attempt(CUcontext context, std::function<CUresult()> call)
    : state_(std::make_shared<State>()) {
    std::thread([state = state_, context, call = std::move(call)] {
        CUresult result = CUDA_ERROR_UNKNOWN;
        try {
            make_current(context);
            result = call();
        } catch (const Stop&) {
        }
        const std::lock_guard lock(state->mutex);
        state->ended = true;
        state->result = result;
        state->changed.notify_all();
    }).detach();
}

bool Attempt::ends_within(std::chrono::milliseconds limit) const {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, limit, [&] { return state_->ended; });
}

std::string Attempt::answer_within(std::chrono::milliseconds limit) const {
    if (!ends_within(limit))
        return "blocks";
    return state_->result == CUDA_SUCCESS ? "returns" : name_of(state_->result);
}

CUresult probe(CUstream stream, CUdeviceptr counts, CUfunction function) {
    // One or two blocks of 1024 threads fill an SM, so four per SM leave none empty.
    const unsigned blocks = 4 * reported_sms();
    auto max_sms = static_cast<uint32_t>(kMaxSms);
    uint32_t nanoseconds = 300'000;
    void* arguments[] = {&counts, &max_sms, &nanoseconds};
    return CU(cuLaunchKernel)(function, blocks, 1, 1, 1024, 1, 1, 0, stream, arguments, nullptr);
}

std::set<unsigned> sms_in(CUdeviceptr counts) {
    settle();
    std::vector<uint32_t> words(kMaxSms);
    MUST(cuMemcpyDtoH_v2, words.data(), counts, kMaxSms * sizeof words[0]);
    std::set<unsigned> sms;
    for (unsigned sm = 0; sm < kMaxSms; sm++)
        if (words[sm] != 0)
            sms.insert(sm);
    return sms;
}

std::set<unsigned> sms_of(CUstream stream) {
    const CUdeviceptr counts = device_words(kMaxSms * sizeof(uint32_t));
    must(probe(stream, counts), "gcx_probe");
    return sms_in(counts);
}

unsigned reported_sms() {
    int count = 0;
    MUST(cuDeviceGetAttribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device);
    return static_cast<unsigned>(count);
}

const char* yes_no(bool value) {
    return value ? "yes" : "no";
}

void Checks::add(const std::string& name, Needs needs, Body body) {
    checks_.push_back({name, needs, nullptr, std::move(body), family_});
}

void Checks::add_primary(const std::string& name, Body body) {
    checks_.push_back({name, Needs::kPrimary, &Gpu::primary, std::move(body), family_});
}

void Checks::add_green(const std::string& name, Body body) {
    checks_.push_back({name, Needs::kGreen, &Gpu::green, std::move(body), family_});
}

void Checks::add_both(const std::string& name, const Body& body) {
    add_primary(name, body);
    const std::string family = family_;
    if (!family.empty())
        family_ += " green";
    add_green(name + "_green", body);
    family_ = family;
}

} // namespace conformance
