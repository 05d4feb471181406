// Work for the benches: kernels that last for a given time, copies, graphs; and the clock.
#pragma once

#include "cli/checked.hpp"
#include "cli/raw_driver.hpp"

#include <gcx.h>
#include <gcx_sim.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gcx::cli {

using Event = Owned<gcx_event, gcx_event_destroy>;

// The CUstream; throws Failure if there is none.
RawHandle native_stream(gcx_stream stream);

// Microseconds: of this machine; or simulated ones, where the driver's calls and kernels take what
// they were measured to take on a GPU.
class BenchClock {
  public:
    explicit BenchClock(const gcx_driver_info& driver);

    double now() const;
    template <class Body>
    double time(const Body& body) const {
        const double before = now();
        body();
        return now() - before;
    }

  private:
    decltype(&gcx_sim_get_counts) get_counts_ = nullptr; // null: a real driver
};

class BenchWork {
  public:
    BenchWork(const gcx_driver_info& driver, int32_t device);
    ~BenchWork();
    BenchWork(const BenchWork&) = delete;
    BenchWork& operator=(const BenchWork&) = delete;

    // A kernel of so many small blocks, each of which lasts so long.
    void spin(gcx_stream stream, uint32_t blocks, uint64_t nanoseconds) const;
    // One that fills so many SMs.
    void fill(gcx_stream stream, uint32_t sm_count, uint64_t nanoseconds) const;
    // Copies memory of the host's to the device, a MiB.
    void copy(gcx_stream stream) const;
    // Captures what body gives to the stream, and to others that it makes wait for it, as a graph
    // and launches that. It lives until finish(). Returns it, to be launched again.
    RawHandle launch_graph(gcx_stream stream, const std::function<void()>& body);
    void launch_again(gcx_stream stream, RawHandle graph) const;
    // Loads the kernels anew, launches one, waits for it and unloads them.
    void load_and_launch(gcx_stream stream, uint64_t nanoseconds) const;
    // Makes later work of a stream wait for what another was given.
    void wait(gcx_stream stream, gcx_stream other) const;
    // Gives the graphs up.
    void finish();

  private:
    RawHandle load(RawHandle* library) const;
    void launch(RawHandle kernel, gcx_stream stream, uint32_t blocks, uint32_t threads,
                uint64_t nanoseconds) const;
    void give_up() noexcept;

    struct Functions {
        RawResult (*LibraryLoadData)(RawHandle*, const void*, RawHandle, RawHandle, unsigned,
                                     RawHandle, RawHandle, unsigned);
        RawResult (*LibraryUnload)(RawHandle);
        RawResult (*LibraryGetKernel)(RawHandle*, RawHandle, const char*);
        RawResult (*LaunchKernel)(RawHandle, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, RawHandle, void**, void**);
        RawResult (*MemAlloc)(uint64_t*, std::size_t);
        RawResult (*MemFree)(uint64_t);
        RawResult (*MemcpyHtoDAsync)(uint64_t, const void*, std::size_t, RawHandle);
        RawResult (*StreamBeginCapture)(RawHandle, int);
        RawResult (*StreamEndCapture)(RawHandle, RawHandle*);
        RawResult (*GraphInstantiate)(RawHandle*, RawHandle, unsigned long long);
        RawResult (*GraphLaunch)(RawHandle, RawHandle);
        RawResult (*GraphExecDestroy)(RawHandle);
        RawResult (*GraphDestroy)(RawHandle);
    };
    Functions raw_{};
    Context whole_;
    RawHandle library_ = nullptr;
    RawHandle kernel_ = nullptr;
    uint64_t memory_ = 0;
    std::vector<char> bytes_;
    std::vector<RawHandle> graphs_;
};

} // namespace gcx::cli
