// Interprets an input as a program: a machine, a number of threads, then operations on a small
// table of resources and handles. Driver calls fail, streams capture and the device is reset in
// between.
//
// Besides crashes, hangs and leaks, the harness checks that
// - a failure has a message and writes nothing,
// - no call returns GCX_ERROR_UNKNOWN, which would be a defect of gcx,
// - a split returns the counts of its plan,
// - leases have an SM in common only if all of them are shared, reservations never,
// - a resize yields at least the requested sizes, and the SMs of the layout,
// - a graph has no more executables than its limit,
// - all objects can be destroyed, and then no context is in use.

#include "bytes.hpp"
#include "harness.hpp"

#include <gcx.h>
#include <gcx_sim.h>

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace fuzz;

namespace {

constexpr std::array kMachines = {
    "h100@13.0", "2xh100@13.5", "h100@12.4", "b200@13.1",      "gb200@13.4",
    "orin@12.8", "none@13.0",   "a100@12.5", "h100,a100@13.1", "rtx4090@13.5",
};
constexpr std::array kInjected = {
    CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,      CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_CONTEXT_IS_DESTROYED,
};
constexpr uint32_t kMaxRequests = 200;

// A lock of the application, which the log callback takes and callers of gcx may hold.
std::recursive_mutex& application() {
    static std::recursive_mutex lock;
    return lock;
}
std::size_t logged = 0;

void on_log(gcx_log_level level, const char* message, void* user_data) {
    const std::lock_guard lock(application());
    must(user_data == &logged, "the log's user_data");
    must(level > GCX_LOG_NONE && level <= GCX_LOG_DEBUG, "the log's level");
    logged += std::strlen(message);
}

constexpr std::size_t kSlots = 8;

// An output parameter. A failing call must not write to it.
template <class T>
class Out {
  public:
    Out() {
        std::memset(&value, 0xa5, sizeof value);
        std::memcpy(before_.data(), &value, sizeof value);
    }
    explicit Out(const T& start) {
        std::memcpy(&value, &start, sizeof value);
        std::memcpy(before_.data(), &value, sizeof value);
    }
    gcx_result check(gcx_result result, const char* call) const {
        if (checked(result, call) != GCX_SUCCESS)
            must(std::memcmp(before_.data(), &value, sizeof value) == 0, "a failure wrote:", call);
        return result;
    }
    T value;

  private:
    std::array<unsigned char, sizeof(T)> before_;
};
#define CALL_OUT(out, call) (out).check((call), #call)

// A struct with a struct_size, which is sometimes too small. What the caller has beyond its struct is
// not for the library to know, so it is never too large.
template <class T>
Out<T> sized(Bytes& bytes) {
    Out<T> out;
    T start = out.value;
    const uint8_t byte = bytes.next();
    start.struct_size = byte < 0xf0 ? static_cast<uint32_t>(sizeof(T))
                                    : (byte - 0xf0U) % static_cast<uint32_t>(sizeof(T));
    return Out<T>(start);
}

// Handles that the threads share. Filling a slot destroys its previous handle.
template <class Handle>
class Slots {
  public:
    explicit Slots(gcx_result (*function)(Handle)) : destroy_(function) {}

    // Returns a handle, or sometimes an invalid one.
    Handle pick(Bytes& bytes) {
        const uint8_t byte = bytes.next();
        if (byte == 0xff)
            return nullptr;
        if (byte == 0xfe)
            return destroyed_.load();
        if (byte == 0xfd)
            return reinterpret_cast<Handle>(uint64_t{bytes.word()} << 32 | bytes.word());
        return slots_[byte % kSlots].load();
    }

    void put(Bytes& bytes, Handle handle) {
        must(handle != nullptr, "success without a handle");
        const Handle before = slots_[bytes.next() % kSlots].exchange(handle);
        if (before != nullptr && destroy(before) != GCX_SUCCESS) {
            const std::lock_guard lock(mutex_);
            left_.push_back(before);
        }
    }

    gcx_result destroy(Handle handle) {
        const gcx_result result = CALL(destroy_(handle));
        if (result != GCX_SUCCESS)
            return result;
        destroyed_ = handle;
        for (std::atomic<Handle>& slot : slots_) {
            Handle expected = handle;
            slot.compare_exchange_strong(expected, nullptr);
        }
        return result;
    }

    void destroy_all() {
        for (std::atomic<Handle>& slot : slots_)
            left_.push_back(slot.load());
        for (const Handle handle : left_) {
            // Two threads may have destroyed the same handle.
            const gcx_result result =
                handle == nullptr ? GCX_ERROR_INVALID_HANDLE : destroy_(handle);
            must(result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE,
                 "a handle can't be destroyed:", gcx_result_name(result));
        }
    }

  private:
    gcx_result (*destroy_)(Handle);
    std::array<std::atomic<Handle>, kSlots> slots_{};
    std::atomic<Handle> destroyed_{};
    std::mutex mutex_;
    std::vector<Handle> left_;
};

// The objects that the threads of one program share.
struct Shared {
    Slots<gcx_context> contexts{gcx_context_destroy};
    Slots<gcx_stream> streams{gcx_stream_destroy};
    Slots<gcx_event> events{gcx_event_destroy};
    Slots<gcx_lease> leases{gcx_lease_release};
    Slots<gcx_cancel> cancels{gcx_cancel_destroy};
    Slots<gcx_graph> graphs{gcx_graph_destroy};
    Slots<gcx_reservation> reservations{gcx_reservation_release};
    bool nested = false;       // within current_natively
    bool single_thread = true; // allows the use of native handles
    // Native objects of the application.
    std::vector<CUstream> native_streams;
    std::vector<CUevent> native_events;
    std::atomic<bool> injected{false};
    std::atomic<bool> reset{false};

    gcx_resource resource(Bytes& bytes) {
        const std::lock_guard lock(mutex_);
        const uint8_t byte = bytes.next();
        gcx_resource value = resources_[byte % resources_.size()];
        if (byte >= 0xf0) // with one bit changed
            value.opaque[byte & 15] ^= uint64_t{1} << (bytes.next() & 63);
        return value;
    }
    void put(Bytes& bytes, const gcx_resource& value) {
        const std::lock_guard lock(mutex_);
        resources_[bytes.next() % resources_.size()] = value;
    }

  private:
    std::mutex mutex_;
    std::array<gcx_resource, 16> resources_{};
};

int32_t device(Bytes& bytes) {
    const uint8_t byte = bytes.next();
    return byte < 0xf0 ? byte & 1 : static_cast<int32_t>(byte) - 0xf8;
}
gcx_resource_type type(Bytes& bytes) {
    constexpr std::array kTypes = {GCX_RESOURCE_SM, GCX_RESOURCE_WORKQUEUE_CONFIG,
                                   GCX_RESOURCE_WORKQUEUE, static_cast<gcx_resource_type>(2),
                                   static_cast<gcx_resource_type>(-1)};
    return bytes.of(kTypes);
}

// A kernel, or none if an injected failure prevented it.
class Kernel {
  public:
    Kernel() {
        constexpr char kPtx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                ".visible .entry fuzz_kernel(.param .u64 x) { ret; }\n";
        if (cuLibraryLoadData(&library_, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
            CUDA_SUCCESS)
            library_ = nullptr;
    }
    ~Kernel() {
        // Repeat the call in case it failed by injection.
        if (library_ != nullptr && cuLibraryUnload(library_) != CUDA_SUCCESS)
            cuLibraryUnload(library_);
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    CUkernel get() const {
        CUkernel kernel = nullptr;
        const bool found = library_ != nullptr &&
                           cuLibraryGetKernel(&kernel, library_, "fuzz_kernel") == CUDA_SUCCESS;
        return found ? kernel : nullptr;
    }

  private:
    CUlibrary library_ = nullptr;
};

// Destroys an object of a list.
template <auto List>
void destroy(Bytes& bytes, Shared& shared) {
    auto& list = shared.*List;
    list.destroy(list.pick(bytes));
}

// --------------------------------------------------------------------------------------------
// Operations
// --------------------------------------------------------------------------------------------

void library_facts(Bytes& bytes, Shared&) {
    must(gcx_version() == GCX_VERSION, "the version");
    const auto result = static_cast<gcx_result>(static_cast<int>(bytes.number()));
    must(*gcx_result_name(result) != '\0' && *gcx_result_string(result) != '\0', "a name, a text");
    must(gcx_simulator_path() != nullptr, "the simulator's path");
}

void set_log(Bytes& bytes, Shared&) {
    const auto level = static_cast<gcx_log_level>(static_cast<int>(bytes.next() % 7) - 1);
    CALL(gcx_log_set_callback(level, bytes.flag() ? on_log : nullptr, &logged));
}

void open_driver(Bytes& bytes, Shared&) {
    constexpr std::array<const char*, 5> kChoices = {nullptr, "", "sim:h100@13.0", "sim:none@1",
                                                     "no such library.so"};
    CALL(gcx_driver_open(bytes.of(kChoices)));
}

void driver_info(Bytes& bytes, Shared&) {
    auto info = sized<gcx_driver_info>(bytes);
    CALL_OUT(info, gcx_driver_get_info(&info.value));
}

void device_info(Bytes& bytes, Shared&) {
    Out<int32_t> count;
    CALL_OUT(count, gcx_device_get_count(&count.value));
    auto info = sized<gcx_device_info>(bytes);
    const int32_t which = device(bytes);
    CALL_OUT(info, gcx_device_get_info(which, &info.value));
    Out<int32_t> least;
    Out<int32_t> greatest;
    const gcx_result result =
        CALL_OUT(least, gcx_device_get_stream_priority_range(which, &least.value, &greatest.value));
    greatest.check(result, "the greatest priority");
}

void device_resource(Bytes& bytes, Shared& shared) {
    Out<gcx_resource> resource;
    const int32_t which = device(bytes);
    if (CALL_OUT(resource, gcx_device_get_resource(which, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
}

void resource_info(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    auto info = sized<gcx_resource_info>(bytes);
    CALL_OUT(info, gcx_resource_get_info(&resource, &info.value));
}

void configure_workqueue(Bytes& bytes, Shared& shared) {
    const gcx_resource config = shared.resource(bytes);
    Out<gcx_resource> configured;
    const auto scope = static_cast<gcx_workqueue_scope>(bytes.next() % 3);
    if (CALL_OUT(configured, gcx_workqueue_configure(&config, scope, bytes.number(),
                                                     &configured.value)) == GCX_SUCCESS)
        shared.put(bytes, configured.value);
}

std::vector<gcx_sm_request> requests(Bytes& bytes) {
    const uint32_t count = bytes.number();
    std::vector<gcx_sm_request> list(count < 16 ? count : count < 0xf0 ? 2 : kMaxRequests);
    for (gcx_sm_request& request : list) {
        request.sm_count = bytes.count();
        const uint8_t more = bytes.next();
        if (more < 0xc0)
            continue;
        request.coscheduled_sm_count = bytes.number();
        request.preferred_coscheduled_sm_count = bytes.number();
        request.flags = bytes.next() % 16;
        request.locality_domain_id = bytes.number();
        request.reserved[bytes.next() % 11] = more == 0xff ? 1 : 0;
    }
    return list;
}

uint32_t split_flags(Bytes& bytes) {
    constexpr std::array<uint32_t, 8> kFlags = {0, 1, 2, 0x100, 0x101, 0x102, 3, 0x80000000U};
    return bytes.of(kFlags);
}

void check_split(const gcx_resource& input, const std::vector<gcx_resource>& groups,
                 const gcx_resource& remainder) {
    uint32_t total = sm_count_of(remainder);
    for (const gcx_resource& group : groups) {
        total += sm_count_of(group);
        must(sm_count_of(group) > 0, "an empty group");
        uint32_t shared = 1;
        must(gcx_resource_get_overlap(&group, &remainder, &shared) == GCX_SUCCESS && shared == 0,
             "a group and the remainder overlap");
    }
    must(total == sm_count_of(input), "a split lost or found SMs");
}

void split(Bytes& bytes, Shared& shared) {
    const gcx_resource input = shared.resource(bytes);
    const std::vector<gcx_sm_request> list = requests(bytes);
    const uint32_t flags = split_flags(bytes);
    const auto count = static_cast<uint32_t>(list.size());
    // Always passes an array, so that both calls report the same errors.
    std::vector<gcx_resource> groups(list.size() + 1);
    Out<gcx_resource> remainder;
    const gcx_result result =
        CALL_OUT(remainder, gcx_sm_split(&input, list.data(), count, flags, groups.data(),
                                         &remainder.value, nullptr, nullptr));
    std::vector<uint32_t> counts(list.size() + 1);
    Out<uint32_t> rest;
    const gcx_result planned =
        CALL_OUT(rest, gcx_sm_split(&input, list.data(), count, flags, nullptr, nullptr,
                                    counts.data(), &rest.value));
    must(shared.injected || result == planned,
         "a split and its plan differ:", gcx_result_name(planned));
    if (result != GCX_SUCCESS)
        return;
    groups.resize(count);
    check_split(input, groups, remainder.value);
    for (uint32_t i = 0; i < count && planned == GCX_SUCCESS; i++)
        must(sm_count_of(groups[i]) == counts[i], "a group differs from its plan");
    shared.put(bytes, remainder.value);
    for (uint32_t i = 0; i < count && i < 4; i++)
        shared.put(bytes, groups[i]);
}

void combine(Bytes& bytes, Shared& shared) {
    const gcx_resource a = shared.resource(bytes);
    const gcx_resource b = shared.resource(bytes);
    Out<uint32_t> overlap;
    const gcx_result known = CALL_OUT(overlap, gcx_resource_get_overlap(&a, &b, &overlap.value));
    Out<gcx_resource> either;
    Out<gcx_resource> without;
    const gcx_result joined = CALL_OUT(either, gcx_resource_union(&a, &b, &either.value));
    const gcx_result left = CALL_OUT(without, gcx_resource_subtract(&a, &b, &without.value));
    must(shared.injected || joined == left, "union and difference disagree");
    Out<gcx_resource> both;
    if (joined != GCX_SUCCESS || left != GCX_SUCCESS ||
        CALL_OUT(both, gcx_resource_subtract(&a, &without.value, &both.value)) != GCX_SUCCESS)
        return;
    must(shared.injected || known == GCX_SUCCESS, "no overlap is known");
    must(known != GCX_SUCCESS || sm_count_of(both.value) == overlap.value, "the overlap");
    must(sm_count_of(either.value) == sm_count_of(without.value) + sm_count_of(b), "the union");
    shared.put(bytes, both.value);
    shared.put(bytes, either.value);
    shared.put(bytes, without.value);
}

void take_atom(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    Out<gcx_resource> atom;
    if (CALL_OUT(atom, gcx_resource_get_atom(&resource, bytes.number(), &atom.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, atom.value);
}

// Requests a list of SMs with a capacity that may be too small.
template <class Get>
void list_sms(Bytes& bytes, const Get& get) {
    const uint32_t capacity = bytes.flag() ? GCX_MAX_SMS : bytes.next();
    const std::unique_ptr<uint32_t[]> ids(new uint32_t[capacity]);
    uint32_t count = 0;
    if (checked(get(ids.get(), capacity, &count), "a list of SMs") != GCX_SUCCESS)
        return;
    must(count <= capacity, "more SMs than there is room for");
    for (uint32_t i = 1; i < count; i++)
        must(ids[i - 1] < ids[i], "SMs in the wrong order");
}

void map_sms(Bytes& bytes, Shared& shared) {
    const int32_t which = device(bytes);
    CALL(gcx_device_map_sms(which, static_cast<gcx_sm_family>(bytes.next() % 7)));
    const gcx_resource resource = shared.resource(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_resource_get_sm_ids(&resource, ids, capacity, count);
    });
}

void shared_sms(Bytes& bytes, Shared& /*shared*/) {
    const int32_t which = device(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_device_find_shared_sms(which, ids, capacity, count);
    });
}

void probe(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_stream_probe_sms(stream, ids, capacity, count);
    });
}

void verify(Bytes& bytes, Shared& shared) {
    std::vector<gcx_stream> streams(bytes.next() % 4);
    for (gcx_stream& stream : streams)
        stream = shared.streams.pick(bytes);
    std::vector<gcx_verified_stream> results(streams.size());
    gcx_verification found = GCX_VERIFICATION_INIT;
    gcx_verify(streams.data(), static_cast<uint32_t>(streams.size()), results.data(), &found);
}

void create_context(Bytes& bytes, Shared& shared) {
    std::vector<gcx_resource> resources;
    for (unsigned left = 1U + (bytes.next() & 3); left > 0; left--)
        resources.push_back(shared.resource(bytes));
    auto params = sized<gcx_context_params>(bytes);
    params.value.flags = bytes.number() & 3;
    Out<gcx_context> context;
    if (CALL_OUT(context,
                 gcx_context_create(resources.data(), static_cast<uint32_t>(resources.size()),
                                    bytes.flag() ? &params.value : nullptr, &context.value)) ==
        GCX_SUCCESS)
        shared.contexts.put(bytes, context.value);
}

void context_facts(Bytes& bytes, Shared& shared) {
    const gcx_context context = shared.contexts.pick(bytes);
    auto info = sized<gcx_context_info>(bytes);
    CALL_OUT(info, gcx_context_get_info(context, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_context_get_resource(context, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
    must((gcx_context_native(context) != nullptr && gcx_context_native_green(context) != nullptr) ||
             *gcx_last_error_message() != '\0',
         "no native handle and no message");
}

void push(Bytes& bytes, Shared& shared) {
    if (shared.nested)
        return;
    CALL(gcx_context_push(shared.contexts.pick(bytes)));
    Out<gcx_context> current;
    CALL_OUT(current, gcx_context_get_current(&current.value));
}

void pop(Bytes& bytes, Shared& shared) {
    if (shared.nested)
        return;
    Out<gcx_context> popped;
    CALL_OUT(popped, gcx_context_pop(bytes.flag() ? &popped.value : nullptr));
}

void synchronize_context(Bytes& bytes, Shared& shared) {
    CALL(gcx_context_synchronize(shared.contexts.pick(bytes)));
}

void create_stream(Bytes& bytes, Shared& shared) {
    const gcx_context context = shared.contexts.pick(bytes);
    auto params = sized<gcx_stream_params>(bytes);
    params.value.sync = static_cast<gcx_stream_sync>(bytes.next() >= 0xf0 ? 1 : 0);
    params.value.priority = static_cast<int8_t>(bytes.next());
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_stream_create(context, bytes.flag() ? &params.value : nullptr,
                                           &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

void stream_facts(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    auto info = sized<gcx_stream_info>(bytes);
    CALL_OUT(info, gcx_stream_get_info(stream, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_stream_get_resource(stream, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
    must(gcx_stream_native(stream) != nullptr || *gcx_last_error_message() != '\0',
         "no native handle and no message");
}

void wait_for_stream(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    CALL(gcx_stream_query(stream));
    CALL(gcx_stream_synchronize(stream));
}

void create_event(Bytes& bytes, Shared& shared) {
    const int32_t which = device(bytes);
    Out<gcx_event> event;
    if (CALL_OUT(event, gcx_event_create(which, bytes.number(), &event.value)) == GCX_SUCCESS)
        shared.events.put(bytes, event.value);
}

void order(Bytes& bytes, Shared& shared) {
    const gcx_event event = shared.events.pick(bytes);
    switch (bytes.next() % 4) {
    case 0:
        CALL(gcx_stream_record(shared.streams.pick(bytes), event));
        break;
    case 1:
        CALL(gcx_context_record(shared.contexts.pick(bytes), event));
        break;
    case 2:
        CALL(gcx_stream_wait(shared.streams.pick(bytes), event));
        break;
    default:
        CALL(gcx_context_wait(shared.contexts.pick(bytes), event));
    }
}

void wait_for_event(Bytes& bytes, Shared& shared) {
    const gcx_event event = shared.events.pick(bytes);
    CALL(gcx_event_query(event));
    CALL(gcx_event_synchronize(event));
    must(gcx_event_native(event) != nullptr || *gcx_last_error_message() != '\0',
         "no native handle and no message");
    Out<float> milliseconds;
    const gcx_event end = shared.events.pick(bytes);
    CALL_OUT(milliseconds, gcx_event_get_elapsed(event, end, &milliseconds.value));
}

void cache(Bytes& bytes, Shared&) {
    auto stats = sized<gcx_cache_stats>(bytes);
    CALL_OUT(stats, gcx_cache_get_stats(&stats.value));
    if (bytes.flag())
        CALL(gcx_cache_set_limit(bytes.number()));
}

struct Preparation {
    Bytes& bytes;
    gcx_cancel cancel;
    uint32_t done;
    uint8_t cancel_at;
};

// A progress callback may call gcx.
void on_progress(uint32_t done, uint32_t count, void* user_data) {
    auto& preparation = *static_cast<Preparation*>(user_data);
    must(done == ++preparation.done && done <= count, "progress in steps of one");
    if (done == preparation.cancel_at)
        CALL(gcx_cancel_signal(preparation.cancel));
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    if (preparation.bytes.next() == 0x77)
        CALL(gcx_cache_trim(0, &trimmed));
}

CUfunction forged(Bytes& bytes) {
    return reinterpret_cast<CUfunction>(uint64_t{bytes.word()});
}

void prepare(Bytes& bytes, Shared& shared) {
    std::vector<gcx_resource> resources(bytes.next() & 7);
    for (gcx_resource& resource : resources)
        resource = shared.resource(bytes);
    auto params = sized<gcx_prepare_params>(bytes).value;
    Preparation preparation = {bytes, shared.cancels.pick(bytes), 0, bytes.next()};
    params.flags = bytes.next() % 3;
    params.cancel = bytes.flag() ? preparation.cancel : nullptr;
    params.progress = bytes.flag() ? on_progress : nullptr;
    params.user_data = &preparation;
    const auto count = static_cast<uint32_t>(resources.size());
    if (CALL(gcx_cache_prepare(resources.data(), count, bytes.flag() ? &params : nullptr)) ==
        GCX_SUCCESS)
        must(preparation.done == 0 || preparation.done == count, "progress of all");
}

void trim(Bytes& bytes, Shared&) {
    if (bytes.flag())
        CALL(gcx_cache_set_limit(bytes.flag() ? 64 : bytes.number() % 8));
    auto trimmed = sized<gcx_cache_trimmed>(bytes);
    CALL_OUT(trimmed, gcx_cache_trim(bytes.number(), &trimmed.value));
    CALL(gcx_cache_trim(bytes.number(), nullptr));
}

void kernel_fit(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    auto params = sized<gcx_kernel_fit_params>(bytes).value;
    params.block_threads = bytes.number();
    params.dynamic_shared_bytes = bytes.flag() ? bytes.number() : 0;
    params.cluster_blocks = bytes.next();
    auto fit = sized<gcx_kernel_fit>(bytes);
    const Kernel kernel;
    CUfunction function = bytes.flag() ? reinterpret_cast<CUfunction>(kernel.get()) : forged(bytes);
    if (CALL_OUT(fit, gcx_stream_get_kernel_fit(stream, function, &params, &fit.value)) ==
        GCX_SUCCESS)
        must(fit.value.max_blocks <= fit.value.blocks_per_sm * fit.value.sm_count,
             "more blocks than the SMs hold");
}

// --------------------------------------------------------------------------------------------
// Leases and queues
// --------------------------------------------------------------------------------------------

constexpr std::size_t kMaxLive = 64;

bool overlap(const gcx_live_lease& a, const gcx_live_lease& b) {
    uint32_t sms = 0;
    return gcx_resource_get_overlap(&a.resource, &b.resource, &sms) == GCX_SUCCESS && sms != 0;
}

void check_live(const gcx_live_lease* live, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        must(live[i].waits == 1 || sm_count_of(live[i].resource) == live[i].sm_count,
             "a lease's SMs");
        for (uint32_t j = 0; j < i; j++) {
            const bool shared = (live[i].flags & live[j].flags & GCX_LEASE_SHARED) != 0;
            must(shared || !overlap(live[i], live[j]), "two leases have an SM in common");
        }
    }
}

gcx_lease_params params_of(Bytes& bytes, Shared& shared, std::string& name) {
    gcx_lease_params params = sized<gcx_lease_params>(bytes).value;
    params.flags = bytes.next() % 5;
    params.family = static_cast<gcx_sm_family>(bytes.next() % 7);
    params.min_sm_count = bytes.flag() ? bytes.next() : 0;
    params.exclusive_sm_count = bytes.flag() ? bytes.next() : 0;
    params.timeout_ms = bytes.next() % 3; // long waits would time the fuzzer out
    params.cancel = bytes.flag() ? shared.cancels.pick(bytes) : nullptr;
    name.assign(bytes.next() % 70, 'x');
    params.name = bytes.flag() ? name.c_str() : nullptr;
    return params;
}

void acquire_lease(Bytes& bytes, Shared& shared) {
    std::string name;
    const gcx_lease_params params = params_of(bytes, shared, name);
    const int32_t which = device(bytes);
    const uint32_t count = bytes.count();
    Out<gcx_lease> lease;
    if (CALL_OUT(lease, gcx_lease_acquire(which, count, bytes.flag() ? &params : nullptr,
                                          &lease.value)) == GCX_SUCCESS)
        shared.leases.put(bytes, lease.value);
}

void resize_leases(Bytes& bytes, Shared& shared) {
    std::vector<gcx_lease_size> sizes;
    for (unsigned left = 1U + (bytes.next() & 3); left > 0; left--) {
        gcx_lease lease = shared.leases.pick(bytes);
        const uint32_t count = bytes.count();
        const uint8_t kind = bytes.next();
        sizes.push_back({lease, kind >= 0xf0 ? 0U : count, kind >= 0xe8 ? GCX_SIZE_PARKED : 0U});
    }
    const auto count = static_cast<uint32_t>(sizes.size());
    if (bytes.flag())
        CALL(gcx_lease_prepare(sizes.data(), count));
    std::vector<gcx_resource> planned(count + 1);
    const gcx_result told =
        CALL(gcx_lease_get_layout(sizes.data(), count, planned.data(), &planned.back()));
    if (CALL(gcx_lease_resize(sizes.data(), count, bytes.next() % 3)) != GCX_SUCCESS ||
        !shared.single_thread)
        return;
    must(told == GCX_SUCCESS, "a layout of sizes that leases can have");
    for (uint32_t i = 0; i < count; i++) {
        gcx_resource has{};
        if (gcx_lease_get_resource(sizes[i].lease, &has) == GCX_SUCCESS)
            must(std::memcmp(&has, &planned[i], sizeof has) == 0, "SMs as the layout had them");
    }
    for (const gcx_lease_size& size : sizes) {
        gcx_lease_info info = GCX_LEASE_INFO_INIT;
        if (gcx_lease_get_info(size.lease, &info) == GCX_SUCCESS)
            must((size.sm_count == GCX_REST || info.sm_count >= size.sm_count) &&
                     (info.sm_count == 0) == (size.flags == GCX_SIZE_PARKED),
                 "a lease's new size");
    }
}

void park_lease(Bytes& bytes, Shared& shared) {
    gcx_lease from = shared.leases.pick(bytes);
    gcx_lease to = shared.leases.pick(bytes);
    const gcx_lease_size sizes[] = {{from, 0, GCX_SIZE_PARKED}, {to, GCX_REST, 0}};
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    if (CALL(gcx_lease_resize(sizes, 2, bytes.next() % 3)) == GCX_SUCCESS && shared.single_thread &&
        gcx_lease_get_info(from, &info) == GCX_SUCCESS)
        must(info.sm_count == 0, "a parked lease has SMs");
}

void lease_stream(Bytes& bytes, Shared& shared) {
    gcx_lease lease = shared.leases.pick(bytes);
    auto params = sized<gcx_stream_params>(bytes);
    params.value.sync = static_cast<gcx_stream_sync>(bytes.next() % 17 == 0);
    params.value.priority = static_cast<int8_t>(bytes.next());
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_lease_stream_create(lease, bytes.flag() ? &params.value : nullptr,
                                                 &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

void lease_facts(Bytes& bytes, Shared& shared) {
    gcx_lease lease = shared.leases.pick(bytes);
    auto info = sized<gcx_lease_info>(bytes);
    CALL_OUT(info, gcx_lease_get_info(lease, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_lease_get_resource(lease, &resource.value)) == GCX_SUCCESS)
        shared.put(bytes, resource.value);
    CALL(gcx_lease_query(lease));
    if (bytes.flag())
        CALL(gcx_lease_synchronize(lease));
}

void live_leases(Bytes& bytes, Shared& shared) {
    const int32_t which = bytes.flag() ? -1 : device(bytes);
    const uint32_t capacity = bytes.next() & (kMaxLive - 1);
    const std::unique_ptr<gcx_live_lease[]> live(new gcx_live_lease[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_lease_list(which, live.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more leases than there is room for");
        check_live(live.get(), count);
    }
    const gcx_resource input = shared.resource(bytes);
    const gcx_sm_request request = {bytes.count(), 0, 0, 0, 0, {}};
    Out<gcx_resource> group;
    CALL_OUT(group, gcx_sm_split(&input, &request, 1, GCX_SPLIT_EXCLUDE_LEASED, &group.value,
                                 nullptr, nullptr, nullptr));
}

void cancel(Bytes& bytes, Shared& shared) {
    Out<gcx_cancel> made;
    if (bytes.flag() && CALL_OUT(made, gcx_cancel_create(&made.value)) == GCX_SUCCESS)
        shared.cancels.put(bytes, made.value);
    gcx_cancel picked = shared.cancels.pick(bytes);
    CALL(gcx_cancel_signal(picked));
    if (bytes.flag())
        shared.cancels.destroy(shared.cancels.pick(bytes));
}

void publish(Bytes& bytes, Shared& shared) {
    const std::string name(bytes.next() % 70, 'x');
    if (bytes.flag())
        CALL(gcx_publish_start(bytes.flag() ? name.c_str() : nullptr));
    const uint32_t capacity = bytes.next() & (kMaxLive - 1);
    const std::unique_ptr<gcx_published_lease[]> leases(new gcx_published_lease[capacity]);
    const std::unique_ptr<gcx_published_process[]> processes(new gcx_published_process[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_published_process_list(processes.get(), capacity, &count)) == GCX_SUCCESS)
        must(count <= 1, "a process that does not exist");
    if (CALL(gcx_published_lease_list(leases.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more published leases than there is room for");
        uint32_t live = 0;
        if (shared.single_thread &&
            gcx_lease_list(-1, nullptr, 0, &live) != GCX_ERROR_NOT_INITIALIZED)
            must(count == 0 || count == live, "published leases differ from live ones");
    }
    if (bytes.flag())
        CALL(gcx_publish_stop());
}

// No library that reports counts is installed, so that the request fails and changes nothing.
void partition_counts(Bytes& bytes, Shared&) {
    if (bytes.flag())
        must(CALL(gcx_driver_report_partition_counts()) != GCX_SUCCESS, "counts without a library");
}

void queues(Bytes& bytes, Shared& shared) {
    auto info = sized<gcx_queue_info>(bytes);
    if (CALL_OUT(info, gcx_queue_get_info(&info.value)) == GCX_SUCCESS)
        must(info.value.connections <= GCX_MAX_CONNECTIONS, "connections");
    // Sets the environment, which other threads read.
    const uint32_t requested = bytes.number();
    if (shared.single_thread && CALL(gcx_queue_request_connections(requested)) == GCX_SUCCESS) {
        gcx_queue_info now = GCX_QUEUE_INFO_INIT;
        must(gcx_queue_get_info(&now) == GCX_SUCCESS && now.connections >= requested,
             "fewer connections than were granted");
    }
}

// --------------------------------------------------------------------------------------------
// Reservations
// --------------------------------------------------------------------------------------------

constexpr uint32_t kMaxListed = 64;

bool are_disjoint(const gcx_live_reservation& a, const gcx_live_reservation& b) {
    bool disjoint = true;
    for (std::size_t word = 0; word < 8; word++)
        disjoint = disjoint && (a.atoms[word] & b.atoms[word]) == 0;
    return disjoint || std::memcmp(a.device_uuid, b.device_uuid, sizeof a.device_uuid) != 0;
}

void list_reservations(uint32_t capacity) {
    const std::unique_ptr<gcx_live_reservation[]> found(new gcx_live_reservation[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_reservation_list(nullptr, found.get(), capacity, &count)) != GCX_SUCCESS)
        return;
    must(count <= capacity, "more reservations than there is room for");
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++)
            must(are_disjoint(found[i], found[j]), "two reservations have an atom in common");
    }
}

void acquire_reservation(Bytes& bytes, Shared& shared) {
    gcx_reservation_params params = sized<gcx_reservation_params>(bytes).value;
    params.flags = bytes.next() % 3;
    params.family = static_cast<gcx_sm_family>(bytes.next() % 7);
    params.min_sm_count = bytes.flag() ? bytes.next() : 0;
    params.timeout_ms = bytes.next() % 3; // long waits would time the fuzzer out
    params.cancel = bytes.flag() ? shared.cancels.pick(bytes) : nullptr;
    const std::string name(bytes.next() % 70, 'x');
    params.name = bytes.flag() ? name.c_str() : nullptr;
    constexpr std::array kFolders = {"", "tmp", "/nonexistent", "/"};
    params.folder = (bytes.next() & 7) == 0 ? bytes.of(kFolders) : nullptr;
    const int32_t which = device(bytes);
    const uint32_t count = bytes.count();
    Out<gcx_reservation> reservation;
    if (CALL_OUT(reservation,
                 gcx_reservation_acquire(which, count, bytes.flag() ? &params : nullptr,
                                         &reservation.value)) == GCX_SUCCESS)
        shared.reservations.put(bytes, reservation.value);
}

void join_reservation(Bytes& bytes, Shared& shared) {
    char token[GCX_MAX_RESERVATION_TOKEN] = "";
    const uint32_t room = bytes.flag() ? GCX_MAX_RESERVATION_TOKEN : bytes.next();
    if (CALL(gcx_reservation_get_token(shared.reservations.pick(bytes), token, room)) !=
        GCX_SUCCESS)
        return;
    if (const uint8_t at = bytes.next(); at >= 0x80) // a wrong token
        token[at & 0x7f] = static_cast<char>(bytes.next());
    Out<gcx_reservation> reservation;
    if (CALL_OUT(reservation, gcx_reservation_join(token, &reservation.value)) == GCX_SUCCESS)
        shared.reservations.put(bytes, reservation.value);
}

void reservation_facts(Bytes& bytes, Shared& shared) {
    gcx_reservation reservation = shared.reservations.pick(bytes);
    auto info = sized<gcx_reservation_info>(bytes);
    CALL_OUT(info, gcx_reservation_get_info(reservation, &info.value));
    Out<gcx_resource> resource;
    const gcx_result got =
        CALL_OUT(resource, gcx_reservation_get_resource(reservation, &resource.value));
    if (got == GCX_SUCCESS)
        shared.put(bytes, resource.value);
    const uint32_t count = bytes.count();
    Out<gcx_lease> lease;
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.reservation = reservation;
    if (CALL_OUT(lease, gcx_lease_acquire(-1, count, &params, &lease.value)) == GCX_SUCCESS &&
        reservation != nullptr) {
        gcx_resource sms{};
        uint32_t common = 0;
        if (got == GCX_SUCCESS && gcx_lease_get_resource(lease.value, &sms) == GCX_SUCCESS &&
            gcx_resource_get_overlap(&sms, &resource.value, &common) == GCX_SUCCESS)
            must(common == sm_count_of(sms), "a lease of a reservation has other SMs");
        shared.leases.put(bytes, lease.value);
    }
    list_reservations(bytes.next() & (kMaxListed - 1));
}

// --------------------------------------------------------------------------------------------
// Graphs
// --------------------------------------------------------------------------------------------

constexpr uint32_t kMaxNodes = 16;

// A graph of a few nodes in the primary context, destroyed at the end of the scope.
class Captured {
  public:
    explicit Captured(Bytes& bytes) {
        if (cuDevicePrimaryCtxRetain(&primary_, 0) != CUDA_SUCCESS)
            return;
        retained_ = true;
        if (cuCtxPushCurrent(primary_) != CUDA_SUCCESS)
            return;
        if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS)
            graph = nullptr;
        CUgraphNode last = nullptr;
        for (uint32_t left = bytes.next() % 4U; left > 0 && graph != nullptr; left--)
            add(bytes, last);
        CUcontext popped = nullptr;
        if (cuCtxPopCurrent(&popped) != CUDA_SUCCESS)
            cuCtxPopCurrent(&popped);
    }
    // Repeats each call in case it failed by injection.
    ~Captured() {
        if (graph != nullptr && cuGraphDestroy(graph) != CUDA_SUCCESS)
            cuGraphDestroy(graph);
        if (retained_ && cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS)
            cuDevicePrimaryCtxRelease(0);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    CUgraph graph = nullptr;

  private:
    void add(Bytes& bytes, CUgraphNode& last) {
        const std::size_t behind = last == nullptr ? 0 : 1;
        CUgraphNode added = nullptr;
        CUkernel kernel = bytes.flag() ? nullptr : kernel_.get();
        if (kernel == nullptr) {
            if (cuGraphAddEmptyNode(&added, graph, &last, behind) == CUDA_SUCCESS)
                last = added;
            return;
        }
        uint64_t argument = bytes.next();
        void* arguments[] = {&argument};
        CUDA_KERNEL_NODE_PARAMS params{};
        params.kern = kernel;
        params.ctx = primary_;
        params.gridDimX = 1U + bytes.next();
        params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
        params.blockDimX = 32;
        params.kernelParams = arguments;
        if (cuGraphAddKernelNode(&added, graph, &last, behind, &params) == CUDA_SUCCESS)
            last = added;
    }

    CUcontext primary_ = nullptr;
    const Kernel kernel_;
    bool retained_ = false;
};

void make_graph(Bytes& bytes, Shared& shared) {
    if (!shared.single_thread) // another thread could launch a kernel of the unloaded library
        return;
    const Captured captured(bytes);
    gcx_graph_params params = sized<gcx_graph_params>(bytes).value;
    params.flags = bytes.next() % 3;
    params.max_executables = bytes.next() % 4;
    Out<gcx_graph> graph;
    if (CALL_OUT(graph, gcx_graph_create(captured.graph, bytes.flag() ? &params : nullptr,
                                         &graph.value)) != GCX_SUCCESS)
        return;
    // The kernels are unloaded with the library, so that only graphs without kernels are stored.
    gcx_graph_info info = GCX_GRAPH_INFO_INIT;
    const bool known = CALL(gcx_graph_get_info(graph.value, &info)) == GCX_SUCCESS;
    gcx_stream stream = shared.streams.pick(bytes);
    CALL(gcx_graph_launch(graph.value, &stream, 1));
    if (bytes.flag())
        CALL(gcx_graph_update(graph.value, captured.graph));
    if (known && info.kernel_count == 0) {
        shared.graphs.put(bytes, graph.value);
    } else if (CALL(gcx_graph_destroy(graph.value)) != GCX_SUCCESS) {
        must(gcx_graph_destroy(graph.value) == GCX_SUCCESS, "a graph can't be destroyed");
    }
}

void launch_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    gcx_stream streams[3];
    for (gcx_stream& stream : streams)
        stream = shared.streams.pick(bytes);
    CALL(gcx_graph_launch(graph, bytes.flag() ? streams : nullptr, bytes.next() % 4));
}

void prepare_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    const gcx_resource resources[] = {shared.resource(bytes), shared.resource(bytes)};
    CALL(gcx_graph_prepare(graph, resources, bytes.next() % 3, bytes.next() % 3));
}

void change_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    const uint32_t nodes[] = {bytes.next() % 8U, bytes.next() % 8U};
    CALL(gcx_graph_set_part(graph, nodes, bytes.next() % 3, bytes.next() % 4));
    auto params = sized<gcx_kernel_params>(bytes);
    params.value.arguments = nullptr;
    CALL(gcx_graph_set_kernel(graph, nodes[0], &params.value));
    if (bytes.next() == 0x11)
        shared.graphs.destroy(graph);
}

void graph_facts(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    auto info = sized<gcx_graph_info>(bytes);
    if (CALL_OUT(info, gcx_graph_get_info(graph, &info.value)) == GCX_SUCCESS)
        must(info.value.executables <= info.value.max_executables, "too many executables");
    const uint32_t capacity = bytes.next() % kMaxNodes;
    const std::unique_ptr<gcx_graph_node[]> nodes(new gcx_graph_node[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_graph_get_nodes(graph, nodes.get(), capacity, &count)) == GCX_SUCCESS)
        must(count <= capacity, "more nodes than there is room for");
}

// --------------------------------------------------------------------------------------------
// Injected failures, and uses of the driver by the application
// --------------------------------------------------------------------------------------------

void fail_call(Bytes& bytes, Shared& shared) {
    shared.injected = true;
    gcx_sim_fail(nullptr, 1U + (bytes.next() & 31), bytes.of(kInjected));
}

void advance(Bytes& bytes, Shared&) {
    gcx_sim_advance(bytes.word());
}

void reset_device(Bytes& bytes, Shared& shared) {
    if (!shared.single_thread)
        return;
    shared.reset = true;
    cuDevicePrimaryCtxReset(device(bytes));
}

void external_stream(Bytes& bytes, Shared& shared) {
    // One of CUDA's special streams, a stream of the application, or a stream of gcx.
    constexpr std::array<uint64_t, 3> kSpecial = {0, 1, 2};
    const uint8_t kind = bytes.next() % 8;
    CUstream native = nullptr;
    if (kind < 3) {
        native = reinterpret_cast<CUstream>(kSpecial[kind]);
    } else if (!shared.single_thread) {
        return;
    } else if (kind < 6) {
        CUcontext primary = nullptr;
        if (cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS)
            return;
        if (cuCtxPushCurrent(primary) == CUDA_SUCCESS) {
            if (cuStreamCreate(&native, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
                shared.native_streams.push_back(native);
            CUcontext popped = nullptr;
            cuCtxPopCurrent(&popped);
        }
        cuDevicePrimaryCtxRelease(0);
        if (native == nullptr)
            return;
    } else {
        native = gcx_stream_native(shared.streams.pick(bytes));
    }
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_stream_from_native(native, &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

CUstream native_of(Bytes& bytes, Shared& shared) {
    return shared.single_thread ? gcx_stream_native(shared.streams.pick(bytes)) : nullptr;
}

void begin_capture(Bytes& bytes, Shared& shared) {
    if (CUstream const native = native_of(bytes, shared); native != nullptr)
        cuStreamBeginCapture(native, static_cast<CUstreamCaptureMode>(bytes.next() % 3));
}

void end_capture(Bytes& bytes, Shared& shared) {
    CUgraph graph = nullptr;
    if (CUstream const native = native_of(bytes, shared);
        native != nullptr && cuStreamEndCapture(native, &graph) == CUDA_SUCCESS && graph != nullptr)
        cuGraphDestroy(graph);
}

void set_priority(Bytes& bytes, Shared& shared) {
    CUstream const native = native_of(bytes, shared);
    CUstreamAttrValue value{};
    value.priority = static_cast<int8_t>(bytes.next());
    if (native != nullptr)
        cuStreamSetAttribute(native, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
}

// Submits work that takes time.
void busy(Bytes& bytes, Shared& shared) {
    CUstream const native = native_of(bytes, shared);
    CUdeviceptr memory = 0;
    constexpr std::size_t kBytes = 1 << 16;
    if (native == nullptr || cuMemAllocAsync(&memory, kBytes, native) != CUDA_SUCCESS)
        return;
    cuMemsetD8Async(memory, 1, kBytes, native);
    cuMemFreeAsync(memory, native);
}

void one_operation(Bytes& bytes, Shared& shared);

// Runs the next operation while the application's context is current. The operation must not push
// or pop, so that the stack is unchanged afterwards.
void current_natively(Bytes& bytes, Shared& shared) {
    CUcontext const native = gcx_context_native(shared.contexts.pick(bytes));
    if (!shared.single_thread || shared.nested || native == nullptr ||
        cuCtxPushCurrent(native) != CUDA_SUCCESS)
        return;
    shared.nested = true;
    one_operation(bytes, shared);
    shared.nested = false;
    CUcontext popped = nullptr;
    // Repeat the call in case it failed by injection.
    if (cuCtxPopCurrent(&popped) != CUDA_SUCCESS)
        cuCtxPopCurrent(&popped);
}

void cluster_sizes(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    Out<uint32_t> of_resource;
    CALL_OUT(of_resource, gcx_resource_find_max_cluster_size(&resource, &of_resource.value));
}

void external_event(Bytes& bytes, Shared& shared) {
    CUevent native = nullptr;
    if (!shared.single_thread)
        return;
    if (bytes.flag()) {
        native = gcx_event_native(shared.events.pick(bytes));
    } else if (cuEventCreate(&native, bytes.next() & 3) == CUDA_SUCCESS) {
        shared.native_events.push_back(native);
    }
    Out<gcx_event> event;
    if (CALL_OUT(event, gcx_event_from_native(native, &event.value)) == GCX_SUCCESS)
        shared.events.put(bytes, event.value);
}

void live_contexts(Bytes& bytes, Shared&) {
    const int32_t which = bytes.flag() ? -1 : device(bytes);
    const uint32_t capacity = bytes.next() & 31;
    const std::unique_ptr<gcx_live_context[]> contexts(new gcx_live_context[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_context_list(which, contexts.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more contexts than there is room for");
        for (uint32_t i = 0; i < count; i++)
            must(sm_count_of(contexts[i].resource) == contexts[i].sm_count, "a context's SMs");
    }
}

using Operation = void (*)(Bytes&, Shared&);
// New operations go to the end, so that existing seeds keep their meaning.
constexpr auto kOperations = std::to_array<Operation>({
    device_resource,
    split,
    create_context,
    create_stream,
    create_event,
    order,
    wait_for_stream,
    wait_for_event,
    destroy<&Shared::streams>,
    destroy<&Shared::contexts>,
    destroy<&Shared::events>,
    resource_info,
    context_facts,
    stream_facts,
    push,
    pop,
    combine,
    take_atom,
    map_sms,
    probe,
    cache,
    fail_call,
    synchronize_context,
    configure_workqueue,
    library_facts,
    set_log,
    open_driver,
    driver_info,
    device_info,
    advance,
    reset_device,
    external_stream,
    begin_capture,
    end_capture,
    current_natively,
    busy,
    set_priority,
    cluster_sizes,
    external_event,
    live_contexts,
    acquire_lease,
    destroy<&Shared::leases>,
    resize_leases,
    park_lease,
    lease_stream,
    lease_facts,
    live_leases,
    cancel,
    publish,
    prepare,
    trim,
    kernel_fit,
    queues,
    make_graph,
    launch_graph,
    prepare_graph,
    change_graph,
    graph_facts,
    partition_counts,
    acquire_reservation,
    join_reservation,
    destroy<&Shared::reservations>,
    reservation_facts,
    shared_sms,
    verify,
});

void one_operation(Bytes& bytes, Shared& shared) {
    const uint8_t byte = bytes.next();
    const Operation operation = kOperations[(byte & 0x7f) % kOperations.size()];
    // set_log waits for callbacks, which wait for the lock.
    if (byte >= 0x80 && operation != set_log && operation != current_natively) {
        const std::lock_guard lock(application());
        operation(bytes, shared);
    } else {
        operation(bytes, shared);
    }
}

void run(Bytes bytes, Shared& shared) {
    while (!bytes.empty())
        one_operation(bytes, shared);
    // Repeat the call in case it failed by injection.
    while (gcx_context_pop(nullptr) == GCX_SUCCESS || gcx_context_pop(nullptr) == GCX_SUCCESS) {
    }
}

void end(Shared& shared) {
    gcx_sim_fail(nullptr, 0, 0);
    must(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr) == GCX_SUCCESS, "the log's end");
    gcx_sim_advance(UINT32_MAX); // unfinished work of leases keeps its context in use
    shared.graphs.destroy_all();
    shared.streams.destroy_all();
    shared.leases.destroy_all();
    shared.reservations.destroy_all();
    shared.cancels.destroy_all();
    shared.contexts.destroy_all();
    shared.events.destroy_all();
    for (CUstream native : shared.native_streams)
        cuStreamDestroy(native);
    for (CUevent native : shared.native_events)
        cuEventDestroy(native);
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    if (gcx_cache_get_stats(&stats) == GCX_SUCCESS)
        must(stats.in_use == 0, "contexts without handles are in use");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    if (size < 4)
        return -1;
    Bytes bytes(data, size);
    const std::string machine = bytes.of(kMachines);
    const unsigned threads = 1U + (bytes.next() >= 0xc0 ? 1U + bytes.next() % 3 : 0U);
    // The library that this program is linked with. Opened by path, it keeps its configuration.
    fuzz::begin_input(FUZZ_SIM_LIBRARY);
    must(gcx_sim_configure(machine.c_str()) == 0, gcx_sim_last_error());
    Shared shared;
    shared.single_thread = threads == 1;
    if (const uint8_t nth = bytes.next(); nth >= 0xf0) {
        shared.injected = true;
        gcx_sim_fail(nullptr, 1U + (nth & 15) * 4, CUDA_ERROR_OUT_OF_MEMORY);
    }
    std::vector<std::thread> others;
    for (unsigned left = threads; left > 1; left--)
        others.emplace_back(run, bytes.part(left), std::ref(shared));
    run(bytes, shared);
    for (std::thread& other : others)
        other.join();
    end(shared);
    fuzz::close_library();
    gcx_sim_counts counts{};
    gcx_sim_get_counts(&counts);
    if (!shared.injected && !shared.reset)
        must(counts.green_contexts == 0 && counts.streams == 0 && counts.events == 0 &&
                 counts.contexts == 0,
             "objects remain on the device");
    return 0;
}
