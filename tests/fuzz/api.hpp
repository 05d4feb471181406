// What the operations of the fuzzer of the API share: how a call is checked, and what the threads
// of one program have.
#pragma once

#include "bytes.hpp"

#include <gcx.h>

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace fuzz {

constexpr std::size_t kSlots = 8;

inline gcx_result checked(gcx_result result, const char* call) {
    if (result == GCX_SUCCESS)
        return result;
    must(result != GCX_ERROR_UNKNOWN, "a defect of gcx:", call);
    must(*gcx_result_string(result) != '\0', "a result without a text:", call);
    if (result != GCX_ERROR_NOT_READY)
        must(*gcx_last_error_message() != '\0', "a failure without a message:", call);
    return result;
}
#define CALL(call) fuzz::checked((call), #call)

// What a function writes to, and leaves alone when it fails.
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

// A struct with a size, which is right but for now and then.
template <class T>
Out<T> sized(Bytes& bytes) {
    Out<T> out;
    T start = out.value;
    const uint8_t byte = bytes.next();
    start.struct_size = byte < 0xf0 ? static_cast<uint32_t>(sizeof(T)) : byte - 0xf0U;
    return Out<T>(start);
}

// Handles that the threads share. What a slot held before is given up when it is filled anew.
template <class Handle>
class Slots {
  public:
    explicit Slots(gcx_result (*give_up)(Handle)) : destroy_(give_up) {}

    // One of them, or one that is none.
    Handle pick(Bytes& bytes) {
        const uint8_t byte = bytes.next();
        if (byte == 0xff)
            return nullptr;
        if (byte == 0xfe)
            return given_up_.load();
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
        given_up_ = handle;
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
            // Two threads may have given up one handle.
            const gcx_result result =
                handle == nullptr ? GCX_ERROR_INVALID_HANDLE : destroy_(handle);
            must(result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE,
                 "a handle can't be given up:", gcx_result_name(result));
        }
    }

  private:
    gcx_result (*destroy_)(Handle);
    std::array<std::atomic<Handle>, kSlots> slots_{};
    std::atomic<Handle> given_up_{};
    std::mutex mutex_;
    std::vector<Handle> left_;
};

// What the threads of one program share.
struct Shared {
    Slots<gcx_context> contexts{gcx_context_destroy};
    Slots<gcx_stream> streams{gcx_stream_destroy};
    Slots<gcx_event> events{gcx_event_destroy};
    Slots<gcx_lease> leases{gcx_lease_release};
    Slots<gcx_cancel> cancels{gcx_cancel_destroy};
    Slots<gcx_graph> graphs{gcx_graph_destroy};
    Slots<gcx_reservation> reservations{gcx_reservation_release};
    bool nested = false; // within current_natively
    bool alone = true;   // one thread: the program may use native handles as well
    // Native objects of the application's own.
    std::vector<CUstream> native_streams;
    std::vector<CUevent> native_events;
    std::atomic<bool> injected{false};
    std::atomic<bool> reset{false};

    gcx_resource resource(Bytes& bytes) {
        const std::lock_guard lock(mutex_);
        const uint8_t byte = bytes.next();
        gcx_resource value = resources_[byte % resources_.size()];
        if (byte >= 0xf0) // changed by one bit
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

inline int32_t device(Bytes& bytes) {
    const uint8_t byte = bytes.next();
    return byte < 0xf0 ? byte & 1 : static_cast<int32_t>(byte) - 0xf8;
}
inline gcx_resource_type type(Bytes& bytes) {
    constexpr std::array kTypes = {GCX_RESOURCE_SM, GCX_RESOURCE_WORKQUEUE_CONFIG,
                                   GCX_RESOURCE_WORKQUEUE, static_cast<gcx_resource_type>(2),
                                   static_cast<gcx_resource_type>(-1)};
    return bytes.of(kTypes);
}

inline uint32_t sm_count_of(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    must(gcx_resource_get_info(&resource, &info) == GCX_SUCCESS, "a resource without info");
    return info.sm_count;
}

// Those of leases, in api_leases.cpp.
void acquire_lease(Bytes& bytes, Shared& shared);
void release_lease(Bytes& bytes, Shared& shared);
void resize_leases(Bytes& bytes, Shared& shared);
void hand_over_lease(Bytes& bytes, Shared& shared);
void lease_stream(Bytes& bytes, Shared& shared);
void lease_facts(Bytes& bytes, Shared& shared);
void live_leases(Bytes& bytes, Shared& shared);
void cancel(Bytes& bytes, Shared& shared);
void publish(Bytes& bytes, Shared& shared);
void partition_counts(Bytes& bytes, Shared& shared);
void queues(Bytes& bytes, Shared& shared);
// And in api_reservations.cpp.
void acquire_reservation(Bytes& bytes, Shared& shared);
void join_reservation(Bytes& bytes, Shared& shared);
void destroy_reservation(Bytes& bytes, Shared& shared);
void reservation_facts(Bytes& bytes, Shared& shared);
// And in api_ahead.cpp.
void prepare(Bytes& bytes, Shared& shared);
void trim(Bytes& bytes, Shared& shared);
void kernel_fit(Bytes& bytes, Shared& shared);
// And in api_graphs.cpp.
void make_graph(Bytes& bytes, Shared& shared);
void launch_graph(Bytes& bytes, Shared& shared);
void prepare_graph(Bytes& bytes, Shared& shared);
void change_graph(Bytes& bytes, Shared& shared);
void graph_facts(Bytes& bytes, Shared& shared);

} // namespace fuzz
