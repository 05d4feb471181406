// What another thread of the process may do beside a partition's work, again and again.
#pragma once

#include "cli/bench_work.hpp"

#include <gcx.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace gcx::cli {

// How many kinds of calls there are, and what each is called. The thread has a context of partition
// A current, and what it launches goes to a stream of A.
inline constexpr std::size_t kNeighbours = 12;
const char* neighbour_name(std::size_t kind);

class NeighbourCalls {
  public:
    // a: of partition A.
    NeighbourCalls(const gcx_driver_info& driver, int32_t device, gcx_context a);
    ~NeighbourCalls();
    NeighbourCalls(const NeighbourCalls&) = delete;
    NeighbourCalls& operator=(const NeighbourCalls&) = delete;

    // Makes the calls of a kind once, in a thread where A is current.
    void make(std::size_t kind);

  private:
    friend const char* neighbour_name(std::size_t kind);
    struct Call {
        const char* name;
        void (NeighbourCalls::*make)();
    };
    static const std::array<Call, kNeighbours> kCalls;

    void allocate(const RawLibrary& library, bool simulated);
    void describe();
    void give_up() noexcept;
    std::size_t host_bytes() const { return bytes_ / 16; }
    RawHandle stream() const { return native_stream(stream_.get()); }
    void finish() const { check(gcx_stream_synchronize(stream_.get())); }

    void nothing();
    void memory();
    void stream_ordered_memory();
    void pinned_memory();
    void pageable_copy();
    void pinned_copy();
    void default_stream_fill();
    void copy_within();
    void library();
    void graph();
    void kept_context();
    void new_context();

    struct Functions {
        RawResult (*MemAlloc)(uint64_t*, std::size_t);
        RawResult (*MemFree)(uint64_t);
        RawResult (*MemAllocAsync)(uint64_t*, std::size_t, RawHandle);
        RawResult (*MemFreeAsync)(uint64_t, RawHandle);
        RawResult (*MemHostAlloc)(void**, std::size_t, unsigned);
        RawResult (*MemFreeHost)(void*);
        RawResult (*MemcpyHtoD)(uint64_t, const void*, std::size_t);
        RawResult (*MemcpyHtoDAsync)(uint64_t, const void*, std::size_t, RawHandle);
        RawResult (*MemcpyDtoDAsync)(uint64_t, uint64_t, std::size_t, RawHandle);
        RawResult (*MemsetD8)(uint64_t, unsigned char, std::size_t);
    };
    Functions raw_{};
    RawDriver driver_;
    BenchWork work_;
    gcx_context a_;
    Stream stream_;
    int device_;
    RawHandle description_ = nullptr;
    gcx_resource kept_{};
    uint32_t new_contexts_ = 0;
    std::size_t bytes_ = 0;
    uint64_t from_ = 0; // of the device, so many bytes each
    uint64_t to_ = 0;
    void* pinned_ = nullptr;
    std::vector<char> pageable_;
};

// A thread that makes the calls of a kind until it is told to stop.
class Neighbour {
  public:
    Neighbour(NeighbourCalls& calls, gcx_context a, std::size_t kind);
    ~Neighbour();
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

    // How often it has made them. Throws what ended the thread before its time.
    uint32_t made() const;

  private:
    void run(NeighbourCalls& calls, gcx_context a, std::size_t kind) noexcept;

    std::atomic<bool> stop_ = false;
    std::atomic<bool> failed_ = false;
    std::atomic<uint32_t> made_ = 0;
    std::exception_ptr error_; // once failed_
    std::thread thread_;
};

} // namespace gcx::cli
