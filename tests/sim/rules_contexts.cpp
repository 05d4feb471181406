// Descriptors, green contexts, streams, workqueues
#include "rules.hpp"

#include <dlfcn.h>

#include <cstring>

namespace sim_test {
namespace {

CUresult described(std::vector<CUdevResource> resources) {
    CUresult result = CUDA_SUCCESS;
    describe(std::move(resources), &result);
    return result;
}

CUdevResource workqueue(CUdevResourceType type, CUcontext context = nullptr) {
    CUdevResource resource{};
    if (context != nullptr)
        CHECK_OK(cuCtxGetDevResource(context, &resource, type));
    else
        CHECK_OK(cuDeviceGetDevResource(0, &resource, type));
    return resource;
}

cu::WorkqueueFields queue_fields(const CUdevResource& resource) {
    return cu::get_fields<cu::WorkqueueFields>(resource);
}

// A function for programs in which a NULL stream is the thread's own.
template <class Function>
Function* per_thread(Function*, const char* name) {
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    CHECK(found != nullptr);
    return found;
}
#define PER_THREAD(name, suffix) per_thread(&name, #name suffix)

CUresult launch(const Primary& primary, CUstream stream, decltype(&cuLaunchKernel) by) {
    int argument = 0;
    void* arguments[] = {&argument};
    return by(primary.unknown, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult launch(const Primary& primary, CUstream stream) {
    return launch(primary, stream, cuLaunchKernel);
}

void expect_of_own_stream(const Primary& primary, CUresult expected) {
    CUevent event = nullptr;
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;
    unsigned flags = 0;
    int word = 0;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuMemAlloc_v2(&memory, 64));
    CHECK_EQ(launch(primary, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(launch(primary, nullptr, PER_THREAD(cuLaunchKernel, "_ptsz")), expected);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(memory, &word, 4, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(PER_THREAD(cuMemcpyHtoD_v2, "_ptds")(memory, &word, 4), expected);
    CHECK_EQ(PER_THREAD(cuMemsetD8_v2, "_ptds")(memory, 1, 4), expected);
    CHECK_EQ(cuEventRecord(event, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(PER_THREAD(cuEventRecord, "_ptsz")(event, nullptr), expected);
    CHECK_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags), expected);
    CHECK_EQ(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED),
             expected);
    CHECK_EQ(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), expected);
    if (graph != nullptr)
        CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuMemFree_v2(memory));
    CHECK_OK(cuEventDestroy_v2(event));
}

} // namespace

std::vector<Rule> descriptor_rules() {
    return {
        {"groups of one split call and one alignment may go together",
         [] {
             const Split made = split(query(), 32, 0, 8);
             CHECK_EQ(described({made.groups[0], made.groups[3], made.groups[14]}), kOk);
             const Structured other = structured({{.sm_count = 64}, {.sm_count = 24}});
             CHECK_EQ(described({other.groups[0], other.groups[1]}), kOk);
         }},
        {"groups of different split calls may not",
         [] {
             CHECK_EQ(
                 described({split(query(), 1, 0, 8).groups[0], split(query(), 2, 0, 8).groups[1]}),
                 kImpossible);
         }},
        {"a group and a remainder of another smCoscheduledAlignment may not",
         [] {
             const Split made = split(query(), 1, 0, 24);
             CHECK_EQ(described({made.groups[0], made.remainder}), kImpossible);
         }},
        {"a group and a remainder of the same smCoscheduledAlignment may",
         [] {
             const Split made = split(query(), 1, 1, 24);
             CHECK_EQ(described({made.groups[0], made.remainder}), kOk);
         }},
        {"groups of different coscheduledSmCount may not",
         [] {
             const Structured made =
                 structured({{.sm_count = 32, .coscheduled_sm_count = 16}, {.sm_count = 24}});
             CHECK_EQ(described({made.groups[0], made.groups[1]}), kImpossible);
         }},
        {"groups of different localityDomainId may not",
         [] {
             CHECK_EQ(gcx_sim_configure("b200@13.4"), 0);
             CHECK_OK(cuInit(0));
             const Structured made = structured(
                 {{.sm_count = 8, .flags = cu::kGroupLocalityDomain},
                  {.sm_count = 8, .flags = cu::kGroupLocalityDomain, .locality_domain_id = 1},
                  {.sm_count = 8, .flags = cu::kGroupLocalityDomain}});
             CHECK_EQ(described({made.groups[0], made.groups[1]}), kImpossible);
             CHECK_EQ(described({made.groups[0], made.groups[2]}), kOk);
         }},
        {"resources of different devices may not",
         [] {
             CHECK_EQ(gcx_sim_configure("2xh100@13.5"), 0);
             CHECK_OK(cuInit(0));
             CHECK_EQ(described({query(0), query(1)}), kImpossible);
         }},
        {"the same group twice is refused",
         [] {
             const CUdevResource group = split(query(), 1, 0, 24).groups[0];
             CHECK_EQ(described({group, group}), kImpossible);
         }},
        {"groups tell their alignment from 13.1 on, and no more of it before",
         [] {
             const Split now = split(query(), 1, 0, 24);
             CHECK_EQ(fields(now.groups[0]).coscheduled_alignment, 8U);
             CHECK_EQ(fields(now.remainder).coscheduled_alignment, 2U);
             CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
             CHECK_OK(cuInit(0));
             CHECK_EQ(fields(split(query(), 1, 0, 24).groups[0]).coscheduled_alignment, 0U);
         }},
        {"a remainder of a split by count may not be split again",
         [] { CHECK_EQ(split(split(query(), 1, 0, 24).remainder, 1, 0, 8).result, kImpossible); }},
    };
}

std::vector<Rule> context_rules() {
    return {
        {"CU_GREEN_CTX_NONE is a supported flag",
         [] {
             CUgreenCtx green = nullptr;
             CHECK_EQ(cuGreenCtxCreate(&green, describe({query()}), 0, 0), kOk);
             CHECK_EQ(cuGreenCtxDestroy(green), kOk);
             CHECK_EQ(cuGreenCtxCreate(&green, describe({query()}), 0, 2), kInvalid);
         }},
        {"calls with streams of a destroyed green context answer STREAM_DETACHED",
         [] {
             Primary primary;
             Partition part({query()});
             CHECK_OK(part.destroy_context());
             CHECK_EQ(static_cast<int>(cuStreamQuery(part.stream)), 917);
             CHECK_EQ(static_cast<int>(cuStreamSynchronize(part.stream)), 917);
             CHECK_EQ(static_cast<int>(primary.spin(part.stream, 1)), 917);
             part.destroy_stream();
         }},
        {"but for cuStreamDestroy, which works",
         [] {
             Partition part({query()});
             CHECK_OK(part.destroy_context());
             CHECK_EQ(cuStreamDestroy_v2(part.stream), kOk);
             part.stream = nullptr;
         }},
        {"destroying a green context invalidates the captures on its streams",
         [] {
             const Primary primary;
             Partition part({query()});
             CUstream stream = nullptr;
             CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
             CUevent event = nullptr;
             CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
             CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
             CHECK_OK(cuEventRecord(event, stream));
             CHECK_OK(cuStreamWaitEvent(part.stream, event, 0));
             CHECK_OK(part.destroy_context());
             CUgraph graph = nullptr;
             CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
             CHECK(graph == nullptr);
             CHECK_OK(cuEventDestroy_v2(event));
             CHECK_OK(cuStreamDestroy_v2(stream));
         }},
        {"the green context retains the primary context until it is destroyed",
         [] {
             unsigned flags = 0;
             int active = 0;
             CUgreenCtx green = nullptr;
             CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, 1));
             CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
             CHECK_EQ(active, 1);
             CHECK_OK(cuGreenCtxDestroy(green));
             CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
             CHECK_EQ(active, 0);
         }},
        {"the per-thread default stream is refused where a green context is current",
         [] {
             // Recorded, of launches; the header says nothing of it.
             const Primary primary;
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             expect_of_own_stream(primary, CUDA_SUCCESS);
             CHECK_OK(cuCtxPushCurrent_v2(part.context));
             expect_of_own_stream(primary, CUDA_ERROR_INVALID_HANDLE);
             CHECK_EQ(launch(primary, nullptr), kOk);
             CHECK_EQ(launch(primary, CU_STREAM_LEGACY), kOk);
             CHECK_OK(cuCtxPopCurrent_v2(nullptr));
             expect_of_own_stream(primary, CUDA_SUCCESS);
         }},
        {"creation makes nothing current",
         [] {
             CUcontext before = nullptr;
             CUcontext after = nullptr;
             CHECK_OK(cuCtxGetCurrent(&before));
             const Partition part({query()});
             CHECK_OK(cuCtxGetCurrent(&after));
             CHECK(before == after);
         }},
        {"cuGreenCtxGetId of NULL is that of the current green context",
         [] {
             const Partition part({query()});
             unsigned long long named = 0;
             unsigned long long current = 0;
             CHECK_EQ(later().green_get_id(nullptr, &current), CUDA_ERROR_INVALID_CONTEXT);
             CHECK_OK(cuCtxPushCurrent_v2(part.context));
             CHECK_OK(later().green_get_id(part.green, &named));
             CHECK_OK(later().green_get_id(nullptr, &current));
             CHECK_OK(cuCtxPopCurrent_v2(nullptr));
             CHECK_EQ(named, current);
         }},
        {"cuStreamGetGreenCtx gives the green context, and NULL for a plain stream",
         [] {
             const Primary primary;
             const Partition part({query()});
             CUgreenCtx green = nullptr;
             CHECK_OK(cuStreamGetGreenCtx(part.stream, &green));
             CHECK(green == part.green);
             CHECK_OK(cuStreamGetGreenCtx(nullptr, &green));
             CHECK(green == nullptr);
         }},
        {"cuStreamGetDevResource tells the SMs, and INVALID_RESOURCE_TYPE for workqueues",
         [] {
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             CUdevResource resource;
             CHECK_OK(later().stream_get_dev_resource(part.stream, &resource, cu::kResourceSm));
             CHECK_EQ(sm_count(resource), 24U);
             for (const auto type : {cu::kResourceWorkqueueConfig, cu::kResourceWorkqueue})
                 CHECK_EQ(later().stream_get_dev_resource(part.stream, &resource, type),
                          kWrongType);
         }},
        {"a partition's stream has an access policy window, and what is outside doesn't persist",
         [] {
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             const auto id = CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW;
             int most = 0;
             CHECK_OK(
                 cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
             CHECK(most > 0);
             CUstreamAttrValue value{};
             CUaccessPolicyWindow& window = value.accessPolicyWindow;
             window.num_bytes = static_cast<std::size_t>(most);
             window.hitRatio = 0.5F;
             window.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
             window.missProp = CU_ACCESS_PROPERTY_STREAMING;
             CHECK_OK(cuStreamSetAttribute(part.stream, id, &value));
             CUstreamAttrValue found{};
             CHECK_OK(cuStreamGetAttribute(part.stream, id, &found));
             CHECK_EQ(found.accessPolicyWindow.num_bytes, window.num_bytes);
             CHECK(found.accessPolicyWindow.hitProp == CU_ACCESS_PROPERTY_PERSISTING);
             window.num_bytes++;
             CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             window.num_bytes = 4096;
             window.missProp = CU_ACCESS_PROPERTY_PERSISTING;
             CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             window.missProp = CU_ACCESS_PROPERTY_NORMAL;
             for (const float share : {-0.1F, 1.1F}) {
                 window.hitRatio = share;
                 CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             }
         }},
        {"the set-aside of the L2 cache is clamped to what the device has",
         [] {
             const Primary primary;
             int most = 0;
             CHECK_OK(
                 cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
             CHECK(most > 0);
             std::size_t found = 1;
             CHECK_OK(cuCtxGetLimit(&found, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
             CHECK_EQ(found, 0U);
             CHECK_OK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, SIZE_MAX));
             CHECK_OK(cuCtxGetLimit(&found, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
             CHECK_EQ(found, static_cast<std::size_t>(most));
             CHECK_OK(cuCtxResetPersistingL2Cache());
         }},
        {"a workqueue configuration can be queried from the device, changed in place and used",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields wanted = queue_fields(config);
             CHECK_EQ(wanted.scope, cu::kWorkqueueScopeDevice);
             CHECK_EQ(wanted.device, 0);
             wanted.concurrency_limit = 3;
             wanted.scope = cu::kWorkqueueScopeBalanced;
             cu::set_fields(config, wanted);
             const Partition part({split(query(), 1, 0, 24).groups[0], config});
             CHECK_EQ(part.result, kOk);
             const cu::WorkqueueFields got =
                 queue_fields(workqueue(cu::kResourceWorkqueueConfig, part.context));
             CHECK_EQ(got.concurrency_limit, 3U);
             CHECK_EQ(got.scope, cu::kWorkqueueScopeBalanced);
         }},
        {"an existing workqueue comes from a context, and can be given to another",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields balanced = queue_fields(config);
             balanced.scope = cu::kWorkqueueScopeBalanced;
             cu::set_fields(config, balanced);
             const Split made = split(query(), 2, 0, 24);
             const Partition one({made.groups[0], config});
             const CUdevResource queue = workqueue(cu::kResourceWorkqueue, one.context);
             const Partition two({made.groups[1], queue});
             const CUdevResource shared = workqueue(cu::kResourceWorkqueue, two.context);
             CHECK_EQ(std::memcmp(&queue, &shared, sizeof queue), 0);
         }},
        {"a device's existing workqueue is the one that contexts share (cuda.core asks for it)",
         [] {
             const CUdevResource shared = workqueue(cu::kResourceWorkqueue);
             const Partition plain({split(query(), 1, 0, 24).groups[0]});
             const CUdevResource its = workqueue(cu::kResourceWorkqueue, plain.context);
             CHECK_EQ(std::memcmp(&shared, &its, sizeof its), 0);
         }},
        {"a scope or limit that cannot be is refused",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields wrong = queue_fields(config);
             wrong.scope = 2;
             cu::set_fields(config, wrong);
             CHECK_EQ(described({query(), config}), kInvalid);
             wrong.scope = 0;
             wrong.concurrency_limit = 0;
             cu::set_fields(config, wrong);
             CHECK_EQ(described({query(), config}), kInvalid);
         }},
        {"before 13.1 workqueues are of INVALID_RESOURCE_TYPE",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
             CHECK_OK(cuInit(0));
             CHECK_EQ(described({query(), config}), kWrongType);
         }},
    };
}

} // namespace sim_test
