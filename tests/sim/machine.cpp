// Every simulated GPU with every driver, counts, ordered failures, specifications, recordings and
// dynamic parallelism.
#include "support.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <utility>

using namespace sim_test;

namespace {

void check_nothing_alive(const std::string& where) {
    const gcx_sim_counts now = counts_now();
    const uint64_t alive = now.primary_retains + now.contexts + now.green_contexts + now.streams +
                           now.events + now.modules + now.graphs + now.allocations +
                           now.allocated_bytes;
    if (!CHECK_EQ(alive, uint64_t{0}))
        std::fprintf(stderr, "  after %s\n", where.c_str());
}

int attribute(CUdevice_attribute which) {
    int value = -1;
    CHECK_OK(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

// Checks that the groups and the remainder are disjoint and make up the device.
void check_partition(Primary& primary, const Split& made, unsigned total) {
    CHECK_OK(made.result);
    std::set<unsigned> seen;
    unsigned reported = 0;
    std::vector<CUdevResource> parts = made.groups;
    if (type_of(made.remainder) != 0)
        parts.push_back(made.remainder);
    for (const CUdevResource& resource : parts) {
        const Partition part({resource});
        const std::vector<unsigned> sms = primary.sms(part.stream);
        CHECK_EQ(sms.size(), sm_count(resource));
        reported += sm_count(resource);
        for (const unsigned sm : sms)
            CHECK(seen.insert(sm).second);
    }
    CHECK_EQ(reported, total);
    CHECK_EQ(seen.size(), total);
}

struct Expected {
    unsigned minimum;
    unsigned alignment;
};

Expected expected_rules() {
    const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    return major >= 9 ? Expected{8, 8} : Expected{4, 2};
}

void green_contexts(int version) {
    const Expected rules = expected_rules();
    const CUdevResource device = query();
    const auto total = static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    CHECK_EQ(sm_count(device), total);
    const bool has_fields = version >= 13000;
    CHECK_EQ(fields(device).min_partition_size, has_fields ? rules.minimum : 0);
    CHECK_EQ(fields(device).coscheduled_alignment, has_fields ? rules.alignment : 0);
    const Split all = split(device, total, 0, 0);
    CHECK_EQ(sm_count(all.groups[0]), rules.minimum);
    CHECK_EQ(split(device, 1, 0, total + 1).result, static_cast<CUresult>(915));
    CUdevResource queue;
    CHECK_EQ(cuDeviceGetDevResource(0, &queue, cu::kResourceWorkqueueConfig),
             version >= 13010 ? CUDA_SUCCESS : static_cast<CUresult>(914));
    CUgreenCtx green = nullptr;
    CUstream stream = nullptr;
    CHECK_OK(cuGreenCtxCreate(&green, describe({device}), 0, 1));
    const CUresult made = later().green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0);
    CHECK_EQ(made, version >= 12050 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
    if (made == CUDA_SUCCESS)
        CHECK_OK(cuStreamDestroy_v2(stream));
    unsigned long long id = 0;
    CHECK_EQ(later().green_get_id(green, &id),
             version >= 13000 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
    CHECK_OK(cuGreenCtxDestroy(green));
}

// cuGetProcAddress agrees with the results of the functions.
void symbols(int version) {
    const std::pair<const char*, int> since[] = {
        {"cuGreenCtxCreate", 12040},       {"cuGreenCtxStreamCreate", 12050},
        {"cuGreenCtxGetId", 12090},        {"cuDevSmResourceSplit", 13010},
        {"cuStreamGetDevResource", 13010}, {"cuStreamSynchronize", 2000}};
    for (const auto& [name, first] : since) {
        void* address = nullptr;
        CUdriverProcAddressQueryResult status{};
        CHECK_OK(cuGetProcAddress_v2(name, &address, version, 0, &status));
        CHECK_EQ(address != nullptr, version >= first);
        CHECK_EQ(static_cast<int>(status), version >= first ? 0 : 1);
    }
}

// Which SMs the groups have is tested by the replayed logs and, on every machine, by the vectors.
void every_machine_follows_its_version() {
    for (std::size_t gpu = 0; gcx_sim_gpu_name(gpu) != nullptr; gpu++) {
        for (std::size_t driver = 0; gcx_sim_driver_name(driver) != nullptr; driver++) {
            const std::string spec =
                std::string(gcx_sim_gpu_name(gpu)) + "@" + gcx_sim_driver_name(driver);
            CHECK_EQ(gcx_sim_configure(spec.c_str()), 0);
            CHECK_EQ(std::string(gcx_sim_spec()), spec);
            CHECK_OK(cuInit(0));
            const int version = driver_version();
            char name[64];
            CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
            CHECK_EQ(std::strncmp(name, "SIMULATED ", 10), 0);
            symbols(version);
            if (version >= 12040) {
                green_contexts(version);
            } else {
                CUdevResource resource;
                CHECK_EQ(cuDeviceGetDevResource(0, &resource, cu::kResourceSm),
                         CUDA_ERROR_NOT_SUPPORTED);
            }
            check_nothing_alive(spec);
        }
    }
}

void specification_selects_machine() {
    simulate("2xh100,a100@13.1");
    int devices = 0;
    CHECK_OK(cuDeviceGetCount(&devices));
    CHECK_EQ(devices, 3);
    CUuuid first;
    CUuuid second;
    CHECK_OK(cuDeviceGetUuid_v2(&first, 0));
    CHECK_OK(cuDeviceGetUuid_v2(&second, 1));
    CHECK(std::memcmp(&first, &second, sizeof first) != 0);
    CHECK_EQ(sm_count(query(2)), 108U);

    CHECK_EQ(gcx_sim_configure(" 2 x H100 @ 12.4 "), 0);
    CHECK_EQ(gcx_sim_configure("none@13.0"), 0);
    CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
    for (const auto& [spec, reason] : {std::pair("v100", "h100"), std::pair("h100@11.8", "13.5"),
                                       std::pair("no/such/file", "no/such/file"),
                                       std::pair("0xh100", "64"), std::pair("9999xh100", "64")}) {
        CHECK_EQ(gcx_sim_configure(spec), static_cast<int>(CUDA_ERROR_INVALID_VALUE));
        CHECK(std::strstr(gcx_sim_last_error(), reason) != nullptr);
    }
    // A refused specification leaves the machine as it was.
    CHECK_EQ(std::string(gcx_sim_spec()), "none@13.0");
    CHECK_EQ(gcx_sim_configure("h100"), 0);
    CHECK_EQ(std::string(gcx_sim_last_error()), "");
    const int version = driver_version();
    CHECK_EQ(version, 13000);
    CUdevResource resource;
    CHECK_EQ(cuDeviceGetDevResource(0, &resource, cu::kResourceSm), CUDA_ERROR_NOT_INITIALIZED);
}

// A new machine does not know the objects of the one before it.
void new_machine_forgets_old_objects() {
    simulate("h100");
    const CUdevResource old = query();
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, 1));
    CHECK_OK(cuCtxFromGreenCtx(&context, green));
    CHECK_OK(cuCtxSetCurrent(context));
    simulate("h100");
    CHECK_EQ(split(old, 1, 0, 8).result, static_cast<CUresult>(915));
    CHECK_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuCtxGetCurrent(&context));
    CHECK(context == nullptr);
    check_nothing_alive("a new machine");
}

void ordered_failure_hits_nth_call() {
    simulate("h100@13.5");
    // Fails the nth call of a function once.
    int value = 0;
    CHECK_EQ(gcx_sim_fail("cuDeviceGetCount", 2, 999), 0);
    CHECK_OK(cuDeviceGetCount(&value));
    CHECK_OK(cuDeviceGet(&value, 0)); // does not count
    CHECK_EQ(cuDeviceGetCount(&value), CUDA_ERROR_UNKNOWN);
    CHECK_OK(cuDeviceGetCount(&value));
    CHECK_EQ(gcx_sim_fail("cuDeviceGetCount", 1, 999), 0);
    CHECK_EQ(gcx_sim_fail("cuDeviceGetCount", 0, 0), 0);
    CHECK_OK(cuDeviceGetCount(&value));
    CHECK_EQ(gcx_sim_fail(nullptr, 1, 2), 0);
    CHECK_EQ(cuDeviceGetCount(&value), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(gcx_sim_fail("*", 2, 2), 0);
    CHECK_OK(cuDeviceGetCount(&value));
    // The names of errors never fail and do not count.
    CHECK_EQ(name_of(CUDA_ERROR_UNKNOWN), "CUDA_ERROR_UNKNOWN");
    CHECK_EQ(cuDeviceGetCount(&value), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(gcx_sim_fail("cuNoSuchFunction", 1, 1), static_cast<int>(CUDA_ERROR_NOT_FOUND));
    CHECK_EQ(gcx_sim_fail("cuInit", 1, 0), static_cast<int>(CUDA_ERROR_INVALID_VALUE));

    const uint64_t before = gcx_sim_calls("cuDeviceGetCount");
    const uint64_t all = gcx_sim_calls(nullptr);
    CHECK_OK(cuDeviceGetCount(&value));
    CHECK_EQ(gcx_sim_calls("cuDeviceGetCount"), before + 1);
    CHECK_EQ(gcx_sim_calls(nullptr), all + 1);
    CHECK_EQ(counts_now().calls, all + 1);
    CHECK_EQ(gcx_sim_calls("cuNoSuchFunction"), uint64_t{0});
}

// An ordered failure is returned before a function reads its arguments.
#ifdef __clang__
__attribute__((no_sanitize("function"))) // all functions are called through one type
#endif
void every_function_fails_by_order(const char* list) {
    std::ifstream file(list);
    CHECK(file.good());
    int tested = 0;
    for (std::string line; std::getline(file, line);) {
        char base[96];
        char symbol[96];
        int since = 0;
        if (std::sscanf(line.c_str(), "%*[FP](%95[^,], %95[^,], %d", base, symbol, &since) != 3)
            continue;
        if (std::strncmp(base, "cuGetError", 10) == 0)
            continue;
        void* address = nullptr;
        CHECK_OK(cuGetProcAddress_v2(base, &address, 13050, 0, nullptr));
        CHECK(address != nullptr);
        CHECK_EQ(gcx_sim_fail(symbol, 1, 999), 0);
        // Integer and pointer arguments are passed in the same way; none is read.
        using AnyFunction = CUresult (*)(void*, void*, void*, void*, void*, void*, void*, void*,
                                         void*, void*, void*, void*);
        AnyFunction function = nullptr;
        static_assert(sizeof function == sizeof address);
        std::memcpy(&function, &address, sizeof function);
        CHECK_EQ(function(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                          nullptr, nullptr, nullptr, nullptr),
                 CUDA_ERROR_UNKNOWN);
        tested++;
    }
    CHECK(tested > 150);
    std::printf("%d functions fail by order\n", tested);
}

void clock_advances_by_costs_and_work() {
    simulate("h100");
    Primary primary;
    CUstream stream = new_stream();
    CHECK_OK(primary.spin(stream, 1'000'000));
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    // Polling ends.
    int polls = 0;
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && polls < 100000)
        polls++;
    CHECK(polls > 10 && polls < 100000);
    CHECK_OK(primary.spin(stream, 5'000'000));
    gcx_sim_advance(5'000'000);
    CHECK_OK(cuStreamQuery(stream));

    CUevent begin = nullptr;
    CUevent end = nullptr;
    CHECK_OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK_OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CHECK_OK(cuEventRecord(begin, stream));
    CHECK_OK(primary.spin(stream, 3'000'000));
    CHECK_OK(cuEventRecord(end, stream));
    CHECK_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuEventSynchronize(end));
    float milliseconds = 0;
    CHECK_OK(cuEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds > 2.99F && milliseconds < 3.1F);
    CHECK_OK(cuEventDestroy_v2(begin));
    CHECK_OK(cuEventDestroy_v2(end));

    // 2048 blocks of 1 us, two at a time on each of 132 SMs, take 8 rounds.
    const uint64_t before = clock_ns();
    CHECK_EQ(primary.sms(stream).size(), std::size_t{132});
    const double us = static_cast<double>(clock_ns() - before) / 1000;
    CHECK(us > 8 && us < 25);
    CHECK_OK(cuStreamDestroy_v2(stream));
}

// Measured on 13.0, see docs/measurements/log.md: operations on objects outside a capture invalidate
// it, in its thread unless it is relaxed, and in other threads if it is global.
void capture_is_invalidated_by_forbidden_calls() {
    simulate("h100");
    Primary primary;
    CUdeviceptr address = 0;
    CUstream captured = new_stream();
    CUstream other = new_stream();
    CUevent event = new_event();
    CUcontext context = nullptr;
    CHECK_OK(cuCtxGetCurrent(&context));
    const std::vector<std::function<CUresult()>> forbidden = {
        [&] { return cuStreamQuery(other); },        [&] { return cuStreamSynchronize(other); },
        [&] { return cuEventQuery(event); },         [&] { return cuEventSynchronize(event); },
        [&] { return cuMemAlloc_v2(&address, 64); }, [&] { return cuMemFree_v2(0); },
    };
    const auto in_another_thread = [&](const std::function<CUresult()>& call) {
        CUresult result = CUDA_ERROR_UNKNOWN;
        std::thread([&] {
            CHECK_OK(cuCtxSetCurrent(context));
            result = call();
        }).join();
        return result;
    };
    const auto check_capture = [&](CUstreamCaptureMode mode, bool breaks, const auto& act) {
        CHECK_OK(cuStreamBeginCapture_v2(captured, mode));
        CHECK_EQ(act(), breaks ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        CUgraph graph = nullptr;
        CHECK_EQ(cuStreamEndCapture(captured, &graph),
                 breaks ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
        if (graph != nullptr)
            CHECK_OK(cuGraphDestroy(graph));
        if (address != 0)
            CHECK_OK(cuMemFree_v2(std::exchange(address, 0)));
    };
    for (const auto& call : forbidden) {
        const auto in_other_thread = [&] { return in_another_thread(call); };
        check_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, true, call);
        check_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, true, in_other_thread);
        check_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true, call);
        check_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, in_other_thread);
        check_capture(CU_STREAM_CAPTURE_MODE_RELAXED, false, call);
        check_capture(CU_STREAM_CAPTURE_MODE_RELAXED, false, in_other_thread);
        // A thread in relaxed mode is not affected.
        check_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, false, [&] {
            CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
            CHECK_OK(cuThreadExchangeStreamCaptureMode(&mode));
            const CUresult result = call();
            CHECK_OK(cuThreadExchangeStreamCaptureMode(&mode));
            return result;
        });
    }
    CHECK_OK(cuEventDestroy_v2(event));
    CHECK_OK(cuStreamDestroy_v2(captured));
    CHECK_OK(cuStreamDestroy_v2(other));
}

// Measured on 13.0, the same page: operations on objects of a capture, in any mode.
void capture_is_invalidated_by_calls_on_its_objects() {
    simulate("h100");
    Primary primary;
    CUstream joined = nullptr;
    CUstream origin = new_stream();
    CUevent outside = new_event();
    CUevent captured = new_event();
    CHECK_OK(cuEventRecord(outside, origin));
    struct Case {
        CUresult answer;
        bool breaks;
        std::function<CUresult()> call;
    };
    float milliseconds = 0;
    int priority = 0;
    const Case cases[] = {
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, true, [&] { return cuStreamQuery(origin); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, true, [&] { return cuStreamQuery(joined); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, true, [] { return cuCtxSynchronize(); }},
        {CUDA_ERROR_CAPTURED_EVENT, true, [&] { return cuEventQuery(captured); }},
        {CUDA_ERROR_CAPTURED_EVENT, true, [&] { return cuEventSynchronize(captured); }},
        {CUDA_ERROR_CAPTURED_EVENT, false,
         [&] { return cuEventElapsedTime(&milliseconds, captured, captured); }},
        {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, true,
         [&] { return cuStreamWaitEvent(origin, outside, 0); }},
        {CUDA_SUCCESS, false, [&] { return cuStreamDestroy_v2(std::exchange(joined, nullptr)); }},
        {CUDA_SUCCESS, false, [&] { return cuEventDestroy_v2(std::exchange(captured, nullptr)); }},
        {CUDA_SUCCESS, false, [&] { return cuStreamGetPriority(origin, &priority); }},
    };
    for (const CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        for (const Case& one : cases) {
            if (captured == nullptr)
                CHECK_OK(cuEventCreate(&captured, CU_EVENT_DISABLE_TIMING));
            CHECK_OK(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
            CHECK_OK(cuStreamBeginCapture_v2(origin, mode));
            CHECK_OK(cuEventRecord(captured, origin));
            CHECK_OK(cuStreamWaitEvent(joined, captured, 0));
            CHECK_EQ(one.call(), one.answer);
            CUgraph graph = nullptr;
            CHECK_EQ(cuStreamEndCapture(origin, &graph),
                     one.breaks ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
            if (graph != nullptr)
                CHECK_OK(cuGraphDestroy(graph));
            if (joined != nullptr)
                CHECK_OK(cuStreamDestroy_v2(joined));
        }
    }
    // Destroying the stream that began a capture ends the capture.
    CHECK_OK(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
    CHECK_OK(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuEventRecord(captured, origin));
    CHECK_OK(cuStreamWaitEvent(joined, captured, 0));
    CHECK_OK(cuStreamDestroy_v2(origin));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CHECK_OK(cuStreamIsCapturing(joined, &status));
    CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_OK(cuStreamQuery(joined));
    CHECK_OK(cuStreamDestroy_v2(joined));
    CHECK_OK(cuEventDestroy_v2(captured));
    CHECK_OK(cuEventDestroy_v2(outside));
}

void memory_is_checked_and_counted() {
    simulate("2xh100");
    const Primary primary;
    std::vector<uint32_t> host(256);
    for (uint32_t i = 0; i < host.size(); i++)
        host[i] = i;
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAlloc_v2(&memory, 1024));
    CHECK_EQ(counts_now().allocated_bytes, uint64_t{1024 + Primary::kMaxSms * 4});
    CHECK_OK(cuMemcpyHtoD_v2(memory, host.data(), 1024));
    std::vector<uint32_t> back(256);
    CHECK_OK(cuMemcpyDtoH_v2(back.data(), memory + 512, 512));
    CHECK_EQ(back[0], 128U);
    CHECK_EQ(cuMemcpyDtoH_v2(back.data(), memory + 512, 513), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyHtoD_v2(memory - 1, host.data(), 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemsetD32_v2(memory + 2, 1, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemsetD32_v2(memory, 7, 256));
    CHECK_OK(cuMemcpy(to_device(back.data()), memory, 1024));
    CHECK_EQ(back[255], 7U);
    unsigned type = 0;
    CHECK_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    CHECK_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    CHECK_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, to_device(back.data())),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(memory));
    CHECK_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK_EQ(cuMemAlloc_v2(&memory, free_bytes + 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemAlloc_v2(&memory, free_bytes / 2)); // tens of GB that are not touched
    CHECK_OK(cuMemFree_v2(memory));
    void* pinned = nullptr;
    CHECK_OK(cuMemHostAlloc(&pinned, 4096, 0));
    std::memset(pinned, 1, 4096);
    CHECK_OK(cuMemFreeHost(pinned));
    CHECK_OK(cuMemAllocAsync(&memory, 64, nullptr));
    CHECK_OK(cuMemFreeAsync(memory, nullptr));
}

// Measured on 13.0. Assumed: earlier drivers allow the reset.
void primary_reset_with_green_context_is_refused() {
    simulate("h100@13.0");
    CUcontext primary = nullptr;
    CUgreenCtx green = nullptr;
    CHECK_OK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, 1));
    CHECK_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_ERROR_NOT_PERMITTED);
    CHECK_OK(cuGreenCtxDestroy(green));
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_EQ(cuCtxPushCurrent_v2(primary), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    check_nothing_alive("a reset that was refused first");
}

void primary_reset_before_13_0_destroys_green_contexts() {
    simulate("h100@12.8");
    CUcontext first = nullptr;
    CUcontext second = nullptr;
    unsigned long long first_id = 0;
    unsigned long long second_id = 0;
    CHECK_OK(cuDevicePrimaryCtxRetain(&first, 0));
    CHECK_OK(cuCtxGetId(first, &first_id));
    CUgreenCtx green = nullptr;
    CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, 1));
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuCtxPushCurrent_v2(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK_OK(cuCtxGetId(second, &second_id));
    CHECK(second_id != first_id);
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    check_nothing_alive("a reset");
}

// A recording without GPCs.
void recording_without_gpcs_is_simulated(const std::string& folder) {
    const std::string path = folder + "/recorded.profile";
    const auto write = [&](const std::string& text) {
        std::ofstream file(path);
        file << text;
    };
    const std::string good = "gcx-profile 1\n# a comment\nname Tiny GPU\ndriver 12.8\n"
                             "compute_capability 9.0\nsm_count 20\nmemory_bytes 1073741824\n"
                             "family coscheduled\ngroup 0 1 4 5 8 9 12 13\n"
                             "group 2 3 6 7 10 11 14 15\nremainder 16 17 18 19\n";
    write(good);
    simulate(path);
    const int version = driver_version();
    CHECK_EQ(version, 12080);
    {
        Primary primary;
        const Split made = split(query(), 20, 0, 8);
        CHECK_EQ(made.groups.size(), std::size_t{2});
        const Partition part({made.groups[1]});
        CHECK_EQ(join(primary.sms(part.stream)), "2 3 6 7 10 11 14 15");
        check_partition(primary, split(query(), 20, 1, 2), 20);
    }
    CHECK_EQ(gcx_sim_configure((path + "@13.1").c_str()), 0);
    // Recorded groups of flag 2 are used unchanged.
    write(good + "family max-cluster\ngroup 0 1 2 3 4 5 6 7 8 9 10 11 16 17 18 19\n"
                 "remainder 12 13 14 15\n");
    simulate(path);
    {
        Primary primary;
        const Partition part({split(query(), 1, 2, 16).groups[0]});
        CHECK_EQ(join(primary.sms(part.stream)), "0 1 2 3 4 5 6 7 8 9 10 11 16 17 18 19");
    }
}

void host_functions_and_modules_work() {
    simulate("h100");
    const Primary primary;
    int called = 0;
    CHECK_OK(cuLaunchHostFunc(nullptr, [](void* data) { ++*static_cast<int*>(data); }, &called));
    CHECK_OK(cuStreamSynchronize(nullptr));
    CHECK_EQ(called, 1);
    CUfunction function = nullptr;
    CHECK_EQ(cuModuleGetFunction(&function, primary.module, "no_such_kernel"),
             CUDA_ERROR_NOT_FOUND);
    CUmodule module = nullptr;
    CHECK_EQ(cuModuleLoadData(&module, "no image at all"), CUDA_ERROR_INVALID_PTX);
    CUdeviceptr global = 0;
    std::size_t bytes = 0;
    CHECK_OK(cuModuleGetGlobal_v2(&global, &bytes, primary.module, "a_global"));
    CHECK_EQ(bytes, std::size_t{12});
    // The partition limits cooperative launches.
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    uint32_t value = 0;
    void* arguments[] = {&value};
    const auto cooperative = [&](unsigned blocks, CUstream stream) {
        return cuLaunchCooperativeKernel(primary.unknown, blocks, 1, 1, 1024, 1, 1, 0, stream,
                                         arguments);
    };
    CHECK_OK(cooperative(48, part.stream));
    CHECK_EQ(cooperative(49, part.stream), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_OK(cooperative(264, nullptr));
}

// Recorded on 4 H200s: green contexts have the peers of their primary context.
void green_context_has_the_peers_of_its_primary() {
    simulate("2xh200");
    const Primary there(1);
    const Primary here(0);
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    CHECK_OK(cuCtxEnablePeerAccess(there.context, 0));
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    CHECK_EQ(cuCtxEnablePeerAccess(there.context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
}

// The header: a library is loaded into each context that uses it.
void library_has_variables_and_attributes_of_each_device() {
    simulate("h100,a100");
    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    CUkernel kernel = nullptr;
    CHECK_OK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK_OK(cuLibraryGetKernel(&kernel, library, "gcx_spin"));
    const auto variable = [&] {
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        CHECK_OK(cuLibraryGetModule(&module, library));
        CHECK_OK(cuModuleGetGlobal_v2(&address, &bytes, module, "a_global"));
        return address;
    };
    const auto attribute_of = [](CUfunction function) {
        int version = 0;
        CHECK_OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
        return version;
    };
    const Primary first(0);
    CUfunction function = nullptr;
    CHECK_OK(cuKernelGetFunction(&function, kernel));
    const CUdeviceptr on_first = variable();
    CHECK_EQ(attribute_of(function), 90);
    {
        const Partition part({split(query(), 1, 0, 24).groups[0]});
        CHECK_OK(cuCtxPushCurrent_v2(part.context));
        CHECK_EQ(variable(), on_first);
        CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    }
    const Primary second(1);
    int device = -1;
    const CUdeviceptr on_second = variable();
    CHECK(on_second != on_first);
    CHECK_OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, on_second));
    CHECK_EQ(device, 1);
    CHECK_EQ(attribute_of(function), 80);
    CHECK_EQ(attribute_of(first.spinner), 90); // of a module, whichever context is current
    CHECK_OK(cuLibraryUnload(library));
    CHECK_EQ(cuMemcpyDtoD_v2(on_first, on_second, 4), CUDA_ERROR_INVALID_VALUE);
}

// Products of 32 bits would be 1 thread and 0 blocks.
void launch_limits_are_checked_without_overflow() {
    simulate("h100");
    const Primary primary;
    uint32_t value = 0;
    void* arguments[] = {&value};
    const auto launch = [&](unsigned x, unsigned y, unsigned block) {
        return cuLaunchKernel(primary.unknown, x, y, 2, block, block, 1, 0, nullptr, arguments,
                              nullptr);
    };
    CHECK_EQ(launch(1, 1, UINT32_MAX), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(launch(1U << 17, 1U << 14, 1));
    CHECK_EQ(launch(1, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

// Modules with dynamic parallelism make all partitions share SMs, until the next machine. Which SMs
// they share is tested by tests/api/shared_sms_test.cpp.

constexpr const char* kLaunchingPtx =
    ".version 8.0\n.target sm_90\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
    ".visible .entry parent() { ret; }\n";

CUmodule load(const char* ptx = kLaunchingPtx) {
    CUmodule module = nullptr;
    CHECK_OK(cuModuleLoadData(&module, ptx));
    return module;
}

Partition partition(unsigned count) {
    return Partition({split(query(), 1, 0, count).groups[0]});
}

void module_without_device_launches_shares_nothing() {
    simulate("h200@13.0");
    Primary primary;
    load(".version 8.0\n.target sm_90\n// cudaLaunchDeviceV2\n.visible .entry plain() { ret; }\n");
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void new_machine_shares_nothing() {
    simulate("h200@13.0");
    {
        Primary primary;
        const CUmodule module = load();
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{26});
        CHECK_OK(cuModuleUnload(module));
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{26});
    }
    simulate("h200@13.0");
    Primary primary;
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void variable_shares_sms_from_start() {
    for (const char* value : {"1", "0", ""}) {
        CHECK_EQ(setenv("GCX_SIM_DYNAMIC_PARALLELISM", value, 1), 0);
        simulate("h100@12.4");
        Primary primary;
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{*value == '1' ? 26U : 24U});
    }
    CHECK_EQ(setenv("GCX_SIM_DYNAMIC_PARALLELISM", "yes", 1), 0);
    CHECK_EQ(gcx_sim_configure("h100@13.0"), int{CUDA_ERROR_INVALID_VALUE});
    CHECK(std::strstr(gcx_sim_last_error(), "GCX_SIM_DYNAMIC_PARALLELISM=yes") != nullptr);
    CHECK_EQ(unsetenv("GCX_SIM_DYNAMIC_PARALLELISM"), 0);
}

// Recorded runs of kernels include the shared SMs, those of copies do not.
void recorded_kernels_include_shared_sms() {
    simulate("h200@13.0");
    Primary primary;
    load();
    const Partition part = partition(24);
    gcx_sim_note_runs(2);
    CHECK_OK(cuMemsetD32Async(primary.counts, 0, 1, part.stream));
    CHECK_OK(primary.spin(part.stream, 1000));
    CHECK_OK(cuStreamSynchronize(part.stream));
    gcx_sim_run runs[2] = {};
    CHECK_EQ(gcx_sim_get_runs(runs, 2), std::size_t{2});
    CHECK_EQ(runs[0].sm_count, 24U);
    CHECK_EQ(runs[1].sm_count, 26U);
    CHECK_EQ(runs[1].sms[124 / 64] >> (124 % 64) & 3, uint64_t{3});
    gcx_sim_note_runs(0);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    every_machine_follows_its_version();
    specification_selects_machine();
    new_machine_forgets_old_objects();
    ordered_failure_hits_nth_call();
    every_function_fails_by_order(argv[1]);
    clock_advances_by_costs_and_work();
    capture_is_invalidated_by_forbidden_calls();
    capture_is_invalidated_by_calls_on_its_objects();
    memory_is_checked_and_counted();
    primary_reset_with_green_context_is_refused();
    primary_reset_before_13_0_destroys_green_contexts();
    recording_without_gpcs_is_simulated(argv[2]);
    host_functions_and_modules_work();
    green_context_has_the_peers_of_its_primary();
    library_has_variables_and_attributes_of_each_device();
    launch_limits_are_checked_without_overflow();
    module_without_device_launches_shares_nothing();
    new_machine_shares_nothing();
    variable_shares_sms_from_start();
    recorded_kernels_include_shared_sms();
    return check::summary("machines");
}
