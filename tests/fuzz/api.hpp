// Shared by the operations of the API's fuzzer: checks of calls, and the objects of the threads.
#pragma once

#include "bytes.hpp"
#include "harness.hpp"

#include <gcx.h>

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace fuzz {

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

// api_leases.cpp
void acquire_lease(Bytes& bytes, Shared& shared);
void resize_leases(Bytes& bytes, Shared& shared);
void park_lease(Bytes& bytes, Shared& shared);
void lease_stream(Bytes& bytes, Shared& shared);
void lease_facts(Bytes& bytes, Shared& shared);
void live_leases(Bytes& bytes, Shared& shared);
void cancel(Bytes& bytes, Shared& shared);
void publish(Bytes& bytes, Shared& shared);
void partition_counts(Bytes& bytes, Shared& shared);
void queues(Bytes& bytes, Shared& shared);
// api_reservations.cpp
void acquire_reservation(Bytes& bytes, Shared& shared);
void join_reservation(Bytes& bytes, Shared& shared);
void reservation_facts(Bytes& bytes, Shared& shared);
// api_graphs.cpp
void make_graph(Bytes& bytes, Shared& shared);
void launch_graph(Bytes& bytes, Shared& shared);
void prepare_graph(Bytes& bytes, Shared& shared);
void change_graph(Bytes& bytes, Shared& shared);
void graph_facts(Bytes& bytes, Shared& shared);

} // namespace fuzz
