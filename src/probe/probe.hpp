// Which SMs do kernels of a stream really run on? Asked of the hardware by a kernel.
#pragma once

#include "core/device.hpp"
#include "core/stream.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace gcx {

class Probe {
  public:
    explicit Probe(const Driver& driver) : driver_(driver) {}
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    // Returns the SMs that kernels of a stream with so many SMs run on, ascending. Waits for the
    // stream; tries a few times while fewer SMs were seen. More SMs are taken note of, see
    // Device::note_extra_sms.
    std::vector<uint32_t> stream_sms(Device& device, CUcontext context, CUstream stream,
                                     uint32_t promised);
    struct Seen {
        std::vector<uint32_t> sms; // ascending
        uint32_t promised = 0;     // by the lease, while it was probed
    };
    // The same of a stream that follows a lease. Only what it submits to that stream is under the
    // lease's gate, since a change must not wait for work.
    Seen stream_sms(ContextCache& cache, Device& device, EventPool& events, Stream& stream);

    // Returns Device::shared_sms. While they are not known, probes two disjoint partitions, whose
    // contexts the cache keeps. Empty: there are none.
    std::vector<uint32_t> shared_sms(ContextCache& cache, Device& device);

    // Reads which SMs the atoms of a family hold, unless that was done. Threads that ask at once
    // wait for the one that reads.
    void map_family(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family);

    // The most blocks that a cluster of a kernel can have in the stream's context, on a device that
    // has clusters.
    uint32_t max_cluster_size(const Device& device, CUcontext context, CUstream stream);

  private:
    CUkernel kernel();
    std::vector<uint32_t> sms_of(CUcontext context, CUstream stream, uint32_t expected);
    void note_extra(Device& device, const std::vector<uint32_t>& seen, uint32_t promised);
    void launch(CUkernel probe, CUstream stream, CUdeviceptr counts, uint32_t expected,
                uint32_t spin_ns);
    std::vector<uint32_t> read(CUdeviceptr counts, CUstream stream);
    void refuse_capturing(CUstream stream);
    // Nothing if the stream moved to another context while it was probed.
    std::optional<Seen> leased_sms(ContextCache& cache, Device& device, EventPool& events,
                                   Stream& stream);
    SmMap read_map(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family);

    const Driver& driver_;
    std::mutex mutex_; // not held while a kernel runs
    std::condition_variable read_;
    std::set<const Family*> being_read_;
    CUlibrary library_ = nullptr;
    CUkernel kernel_ = nullptr;
};

} // namespace gcx
