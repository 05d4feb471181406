// Finds out by a kernel on which SMs the kernels of a stream run.
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

    // Returns the SMs that kernels of the stream run on, in ascending order. Waits for the stream,
    // and tries again a few times if fewer SMs than promised were seen. Reports additional SMs to
    // Device::note_extra_sms().
    std::vector<uint32_t> stream_sms(Device& device, CUcontext context, CUstream stream,
                                     uint32_t promised);
    struct Seen {
        std::vector<uint32_t> sms; // ascending
        uint32_t promised = 0;     // by the lease, while it was probed
    };
    // Does the same for a stream of a lease. Holds the lease's SubmitLock only while it submits, since a
    // resize must not wait for the probe's work.
    Seen stream_sms(ContextCache& cache, Device& device, EventPool& events, Stream& stream);

    // Returns Device::shared_sms(), which are empty if there are none. If they are unknown, probes
    // two disjoint partitions, whose contexts stay cached.
    std::vector<uint32_t> shared_sms(ContextCache& cache, Device& device);

    // Reads which SMs the atoms of a family have, unless that is known. Concurrent calls wait for
    // the first one.
    void map_family(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family);

    // Returns the largest number of blocks per cluster in the stream's context. The device must
    // support clusters.
    uint32_t max_cluster_size(const Device& device, CUcontext context, CUstream stream);

  private:
    CUkernel kernel();
    std::vector<uint32_t> sms_of(CUcontext context, CUstream stream, uint32_t expected);
    void note_extra(Device& device, const std::vector<uint32_t>& seen, uint32_t promised);
    void launch(CUkernel probe, CUstream stream, CUdeviceptr counts, uint32_t expected,
                uint32_t spin_ns);
    std::vector<uint32_t> read(CUdeviceptr counts, CUstream stream);
    void refuse_capturing(CUstream stream);
    // Returns nothing if the stream moved to another context while it was probed.
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
