#include "probe/probe.hpp"

#include "base/log.hpp"
#include "core/capture.hpp"
#include "core/give_back.hpp"
#include "core/scoped_current.hpp"
#include "probe/kernel.hpp"

#include <algorithm>
#include <bit>

namespace gcx {
namespace {

// Blocks of 1024 threads: one or two fill an SM, so that two for each SM leave none empty.
constexpr unsigned kThreads = 1024;
constexpr unsigned kBlocksPerSm = 2;
constexpr int kTries = 8;
constexpr uint32_t kFirstSpinNs = 20'000;
constexpr uint32_t kMostSpinNs = 400'000;

// A buffer of the stream's own order: cuMemAlloc and cuMemFree would wait for the whole device.
class Counts {
  public:
    Counts(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {
        GCX_CALL(driver, cuMemAllocAsync, &pointer_, kBytes, stream);
    }
    ~Counts() {
        const CUresult result =
            give_back([&] { return driver_.cuMemFreeAsync(pointer_, stream_); });
        if (result == CUDA_SUCCESS)
            driver_.cuStreamSynchronize(stream_); // gives the memory back to the device
        else
            log::write(GCX_LOG_ERROR, "the probe's buffer of 4 KiB is left behind: " +
                                          driver_.describe(result, "cuMemFreeAsync"));
    }
    Counts(const Counts&) = delete;
    Counts& operator=(const Counts&) = delete;

    static constexpr std::size_t kBytes = GCX_MAX_SMS * sizeof(uint32_t);
    CUdeviceptr pointer() const { return pointer_; }

  private:
    const Driver& driver_;
    CUstream stream_;
    CUdeviceptr pointer_ = 0;
};

// A set of atoms for each bit of their numbers (counted from 1): an atom's SMs are those that
// are seen in exactly the sets that its number says. So a few contexts tell all atoms apart. The
// odd atom has the number 0: it is in no set, since not every driver lets it join others.
struct Code {
    uint32_t bits = 0;
    uint32_t units = 0;

    explicit Code(uint32_t unit_count)
        : bits(static_cast<uint32_t>(std::bit_width(unit_count))), units(unit_count) {}
    AtomSet set_of_bit(uint32_t bit) const {
        AtomSet set;
        for (uint32_t atom = 0; atom < units; atom++) {
            if ((((atom + 1) >> bit) & 1) != 0)
                set.add(atom);
        }
        return set;
    }
};

} // namespace

Probe::~Probe() {
    if (library_ != nullptr)
        driver_.cuLibraryUnload(library_);
}

CUkernel Probe::kernel() {
    const std::lock_guard lock(mutex_);
    if (kernel_ == nullptr) {
        if (library_ == nullptr)
            GCX_CALL(driver_, cuLibraryLoadData, &library_, kProbeKernelPtx, nullptr, nullptr, 0,
                     nullptr, nullptr, 0);
        GCX_CALL(driver_, cuLibraryGetKernel, &kernel_, library_, kProbeKernelName);
    }
    return kernel_;
}

std::vector<uint32_t> Probe::sms_of(CUcontext context, CUstream stream, uint32_t expected) {
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    GCX_CALL(driver_, cuStreamIsCapturing, stream, &capturing);
    if (capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph, and a probe has to run now; end the capture first");

    const RelaxedCapture relaxed(driver_); // other streams may be captured
    const CUkernel probe = kernel();
    const ScopedCurrent current(driver_, context);
    const Counts counts(driver_, stream);
    GCX_CALL(driver_, cuMemsetD32Async, counts.pointer(), 0, GCX_MAX_SMS, stream);
    std::vector<uint32_t> seen;
    uint32_t spin_ns = kFirstSpinNs;
    for (int i = 0; i < kTries && seen.size() < expected; i++) {
        CUdeviceptr pointer = counts.pointer();
        uint32_t max_sms = GCX_MAX_SMS;
        void* arguments[] = {&pointer, &max_sms, &spin_ns};
        // A CUkernel may be launched as a CUfunction; it runs in the stream's context.
        GCX_CALL(driver_, cuLaunchKernel, reinterpret_cast<CUfunction>(probe),
                 expected * kBlocksPerSm, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
        std::vector<uint32_t> blocks(GCX_MAX_SMS);
        // An error must not return before the copy into blocks has ended.
        const CUresult copied =
            driver_.cuMemcpyDtoHAsync(blocks.data(), counts.pointer(), Counts::kBytes, stream);
        const CUresult done = driver_.cuStreamSynchronize(stream);
        driver_.check(copied, "cuMemcpyDtoHAsync");
        driver_.check(done, "cuStreamSynchronize");
        seen.clear();
        for (uint32_t sm = 0; sm < GCX_MAX_SMS; sm++) {
            if (blocks[sm] != 0)
                seen.push_back(sm);
        }
        spin_ns = std::min(spin_ns * 2, kMostSpinNs);
    }
    return seen;
}

uint32_t Probe::max_cluster_size(const Device& device, CUcontext context, CUstream stream) {
    const RelaxedCapture relaxed(driver_);
    const CUkernel probe = kernel();
    const ScopedCurrent current(driver_, context);
    // Up to 8 blocks are portable: any device with clusters has them. More have to be allowed.
    GCX_CALL(driver_, cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
             probe, device.native());
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = kThreads;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    int blocks = 0;
    GCX_CALL(driver_, cuOccupancyMaxPotentialClusterSize, &blocks,
             reinterpret_cast<CUfunction>(probe), &config);
    return static_cast<uint32_t>(std::max(blocks, 1));
}

void Probe::map_family(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family) {
    std::unique_lock lock(mutex_);
    read_.wait(lock, [&] { return !being_read_.contains(family.get()); });
    if (family->sm_map() != nullptr)
        return;
    being_read_.insert(family.get());
    const auto done = [&] {
        being_read_.erase(family.get());
        read_.notify_all();
    };
    lock.unlock();
    try {
        SmMap map = read_map(cache, device, family);
        lock.lock();
        family->set_sm_map(std::move(map));
        done();
    } catch (...) {
        if (!lock.owns_lock())
            lock.lock();
        done(); // one that waits tries itself
        throw;
    }
}

SmMap Probe::read_map(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family) {
    const AtomShape& shape = family->shape();
    const Code code(shape.unit_count);
    std::vector<uint32_t> number(GCX_MAX_SMS, 0);
    const auto probe_set = [&](const AtomSet& set) {
        ContextCache::Ref context = cache.make_for_once({&device, family, set, std::nullopt});
        Stream stream(cache, *context, 0);
        std::vector<uint32_t> seen =
            sms_of(context->native, stream.place().native, context->sm_count());
        stream.close();
        return seen;
    };
    for (uint32_t bit = 0; bit < code.bits; bit++) {
        for (const uint32_t sm : probe_set(code.set_of_bit(bit)))
            number[sm] |= 1U << bit;
    }
    SmMap map(shape.atom_count());
    for (const uint32_t sm : probe_set(family->all())) {
        const uint32_t atom = number[sm] == 0 ? shape.unit_count : number[sm] - 1;
        if (atom < map.size())
            map[atom].push_back(sm);
    }
    for (uint32_t atom = 0; atom < map.size(); atom++) {
        const uint32_t size = shape.is_odd(atom) ? shape.odd_size : shape.unit_size;
        if (map[atom].size() != size)
            fail(GCX_ERROR_NOT_READY,
                 format(
                     "atom %u of %s has %u SMs, but kernels were seen on %zu: other work held the "
                     "SMs, or the driver's contexts don't keep to theirs. Map again when the "
                     "device is idle",
                     atom, device.label().c_str(), size, map[atom].size()));
    }
    return map;
}

} // namespace gcx
