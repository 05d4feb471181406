#include "probe/probe.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace gcx {
namespace {

// gcx_probe(uint32_t* counts, uint32_t max_sms, uint32_t spin_ns): each block increments the count
// of the SM that it runs on and stays there for spin_ns, so that other blocks must go to other SMs.
// In PTX, which every driver compiles for its GPU: building gcx needs no CUDA compiler.
constexpr char kProbeKernelName[] = "gcx_probe";
constexpr char kProbeKernelPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64

.visible .entry gcx_probe(
    .param .u64 counts,
    .param .u32 max_sms,
    .param .u32 spin_ns
)
{
    .reg .pred  %p<4>;
    .reg .b32   %r<6>;
    .reg .b64   %rd<9>;

    ld.param.u64    %rd1, [counts];
    ld.param.u32    %r1, [max_sms];
    ld.param.u32    %r2, [spin_ns];
    mov.u64         %rd2, %globaltimer;

    mov.u32         %r3, %tid.x;
    setp.ne.u32     %p1, %r3, 0;
    @%p1 bra        SPIN;
    mov.u32         %r4, %smid;
    setp.ge.u32     %p2, %r4, %r1;
    @%p2 bra        SPIN;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.u32    %rd4, %r4, 4;
    add.s64         %rd5, %rd3, %rd4;
    red.global.add.u32 [%rd5], 1;

SPIN:
    cvt.u64.u32     %rd6, %r2;
SPIN_MORE:
    mov.u64         %rd7, %globaltimer;
    sub.s64         %rd8, %rd7, %rd2;
    setp.lt.u64     %p3, %rd8, %rd6;
    @%p3 bra        SPIN_MORE;
    ret;
}
)";

// One or two blocks of 1024 threads fill an SM, so two per SM leave none empty.
constexpr unsigned kThreads = 1024;
constexpr unsigned kBlocksPerSm = 2;
constexpr int kTries = 8;
constexpr int kMaxResizes = 64;
constexpr uint32_t kFirstSpinNs = 20'000;
constexpr uint32_t kMaxSpinNs = 400'000;

// A buffer that is allocated in stream order: cuMemAlloc and cuMemFree wait for the whole device.
class Counts {
  public:
    Counts(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {
        GCX_CALL(driver, cuMemAllocAsync, &pointer_, kBytes, stream);
    }
    ~Counts() {
        const CUresult result =
            retry_once([&] { return driver_.cuMemFreeAsync(pointer_, stream_); });
        if (result == CUDA_SUCCESS)
            driver_.cuStreamSynchronize(stream_); // returns the memory to the device
        else
            log::write(GCX_LOG_ERROR, "the probe's buffer of 4 KiB can't be freed: " +
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

// Numbers the atoms from 1 and probes one set of atoms for each bit of these numbers: the bits of
// an SM's atom are the sets in which the SM is seen. A few contexts thus identify all atoms. The
// remainder atom has the number 0 and is in no set, since some drivers can't combine it with
// others.
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

uint32_t size_of(const AtomShape& shape, std::size_t atom) {
    return shape.is_remainder(static_cast<uint32_t>(atom)) ? shape.remainder_size : shape.unit_size;
}

// Shared SMs are seen in every set. They belong to the atom that lacks as many SMs.
void add_shared(SmMap& map, const AtomShape& shape, const std::vector<uint32_t>& shared) {
    for (std::size_t atom = 0; atom < map.size() && !shared.empty(); atom++) {
        std::vector<uint32_t>& sms = map[atom];
        if (sms.size() + shared.size() != size_of(shape, atom))
            continue;
        sms.insert(sms.end(), shared.begin(), shared.end());
        std::sort(sms.begin(), sms.end());
        return;
    }
}

void check_map(const SmMap& map, const AtomShape& shape, const Device& device,
               const std::vector<uint32_t>& shared) {
    for (std::size_t atom = 0; atom < map.size(); atom++) {
        if (map[atom].size() == size_of(shape, atom))
            continue;
        const std::string advice =
            shared.empty()
                ? "map again when the device is idle"
                : format("map again when the device is idle, or before loading the module with "
                         "dynamic parallelism, because of which all partitions share SMs %u and %u",
                         shared[0], shared[1]);
        fail(GCX_ERROR_TIMEOUT,
             format("atom %zu of %s has %u SMs, but kernels were seen on %zu: other work occupied "
                    "the SMs, or the driver's contexts use others; %s",
                    atom, device.label().c_str(), size_of(shape, atom), map[atom].size(),
                    advice.c_str()));
    }
}

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

void Probe::refuse_capturing(CUstream stream) {
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    GCX_CALL(driver_, cuStreamIsCapturing, stream, &capturing);
    if (capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph, and a probe has to run now; end the capture first");
}

void Probe::launch(CUkernel probe, CUstream stream, CUdeviceptr counts, uint32_t expected,
                   uint32_t spin_ns) {
    uint32_t max_sms = GCX_MAX_SMS;
    void* arguments[] = {&counts, &max_sms, &spin_ns};
    // A CUkernel can be launched as a CUfunction. It runs in the stream's context.
    GCX_CALL(driver_, cuLaunchKernel, reinterpret_cast<CUfunction>(probe), expected * kBlocksPerSm,
             1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
}

// Waits for the stream, and returns the SMs that were counted.
std::vector<uint32_t> Probe::read(CUdeviceptr counts, CUstream stream) {
    std::vector<uint32_t> blocks(GCX_MAX_SMS);
    // Wait for the copy into blocks before returning an error.
    const CUresult copied =
        driver_.cuMemcpyDtoHAsync(blocks.data(), counts, Counts::kBytes, stream);
    const CUresult done = driver_.cuStreamSynchronize(stream);
    driver_.check(copied, "cuMemcpyDtoHAsync");
    driver_.check(done, "cuStreamSynchronize");
    std::vector<uint32_t> seen;
    for (uint32_t sm = 0; sm < GCX_MAX_SMS; sm++) {
        if (blocks[sm] != 0)
            seen.push_back(sm);
    }
    return seen;
}

std::vector<uint32_t> Probe::sms_of(CUcontext context, CUstream stream, uint32_t expected) {
    refuse_capturing(stream);
    const RelaxedCapture relaxed(driver_); // other streams may be captured
    const CUkernel probe = kernel();
    const ScopedCurrent current(driver_, context);
    const Counts counts(driver_, stream);
    GCX_CALL(driver_, cuMemsetD32Async, counts.pointer(), 0, GCX_MAX_SMS, stream);
    std::vector<uint32_t> seen;
    uint32_t spin_ns = kFirstSpinNs;
    for (int i = 0; i < kTries && seen.size() < expected; i++) {
        launch(probe, stream, counts.pointer(), expected, spin_ns);
        seen = read(counts.pointer(), stream);
        spin_ns = std::min(spin_ns * 2, kMaxSpinNs);
    }
    return seen;
}

Probe::Seen Probe::stream_sms(ContextCache& cache, Device& device, EventPool& events,
                              Stream& stream) {
    for (int i = 0; i < kMaxResizes; i++) {
        if (auto seen = leased_sms(cache, device, events, stream))
            return *std::move(seen);
    }
    fail(GCX_ERROR_TIMEOUT, format("the lease's SMs changed %d times while its stream was being "
                                   "probed; probe again when nothing changes them",
                                   kMaxResizes));
}

std::optional<Probe::Seen> Probe::leased_sms(ContextCache& cache, Device& device, EventPool& events,
                                             Stream& stream) {
    const Stream::Target target = stream.target(Stream::Purpose::ask);
    refuse_capturing(target.native);
    const uint32_t expected = stream.sm_count(target);
    const RelaxedCapture relaxed(driver_);
    const CUkernel probe = kernel();
    const ScopedCurrent current(driver_, target.context);
    // Allocate and copy in another stream of the context: a resize may detach the stream itself
    // and give it to another user before that is done.
    TemporaryStream helper(cache, *target.green);
    const Counts counts(driver_, helper.native());
    GCX_CALL(driver_, cuMemsetD32Async, counts.pointer(), 0, GCX_MAX_SMS, helper.native());
    const EventPool::Event ready = events.take();
    GCX_CALL(driver_, cuEventRecord, ready.native(), helper.native());
    std::vector<uint32_t> seen;
    uint32_t spin_ns = kFirstSpinNs;
    for (int i = 0; i < kTries && seen.size() < expected; i++) {
        const EventPool::Event done = events.take();
        CUresult result = CUDA_SUCCESS;
        {
            SubmitLock* locks[] = {stream.submit_lock()};
            const SubmitLock::Shared submitting(locks);
            const Stream::Target now = stream.target();
            if (now.green != target.green)
                return std::nullopt;
            refuse_capturing(now.native);
            GCX_CALL(driver_, cuStreamWaitEvent, now.native, ready.native(), CU_EVENT_WAIT_DEFAULT);
            launch(probe, now.native, counts.pointer(), expected, spin_ns);
            result = driver_.cuEventRecord(done.native(), now.native);
            if (result != CUDA_SUCCESS)
                driver_.cuStreamSynchronize(now.native); // it still uses the buffer
        }
        driver_.check(result, "cuEventRecord");
        GCX_CALL(driver_, cuEventSynchronize, done.native());
        seen = read(counts.pointer(), helper.native());
        spin_ns = std::min(spin_ns * 2, kMaxSpinNs);
    }
    note_extra(device, seen, expected);
    return Seen{std::move(seen), expected};
}

std::vector<uint32_t> Probe::stream_sms(Device& device, CUcontext context, CUstream stream,
                                        uint32_t promised) {
    std::vector<uint32_t> seen = sms_of(context, stream, promised);
    note_extra(device, seen, promised);
    return seen;
}

void Probe::note_extra(Device& device, const std::vector<uint32_t>& seen, uint32_t promised) {
    if (!device.may_share_sms() || seen.size() != promised + Device::kSharedSms)
        return;
    // Virtual numbers differ between contexts, so they don't identify an SM.
    if (mps_of(driver_, device.native()).state != GCX_MPS_ON)
        device.note_extra_sms(seen);
    if (device.shared_sms().empty())
        log::write(GCX_LOG_WARNING,
                   format("kernels of a stream with %u SMs of %s were seen on %zu: after a module "
                          "with dynamic parallelism is loaded, all partitions of a process share "
                          "%u SMs; gcx_device_find_shared_sms finds out which",
                          promised, device.label().c_str(), seen.size(), Device::kSharedSms));
}

std::vector<uint32_t> Probe::shared_sms(ContextCache& cache, Device& device) {
    if (!device.may_share_sms())
        return {};
    if (std::vector<uint32_t> known = device.shared_sms(); !known.empty())
        return known;
    std::shared_ptr<Family> family = device.family(GCX_SM_FAMILY_COSCHEDULED);
    if (family->atom_count() < 2) // a small MIG slice
        family = device.family(GCX_SM_FAMILY_FINE);
    const auto probe_atom = [&](std::size_t atom) {
        AtomSet set;
        set.add(atom);
        const ContextCache::Ref context =
            cache.get({&device, family, set, std::nullopt}, ContextCache::Sharing::shared);
        TemporaryStream stream(cache, *context);
        // Expect the shared SMs too, so that the probe is repeated while other work occupies them.
        return sms_of(context->native, stream.native(), context->sm_count() + Device::kSharedSms);
    };
    const std::vector<uint32_t> first = probe_atom(0);
    const std::vector<uint32_t> second = probe_atom(1);
    std::vector<uint32_t> both;
    std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                          std::back_inserter(both));
    if (both.size() == Device::kSharedSms)
        device.note_extra_sms(both);
    return device.shared_sms();
}

uint32_t Probe::max_cluster_size(const Device& device, CUcontext context, CUstream stream) {
    const RelaxedCapture relaxed(driver_);
    const CUkernel probe = kernel();
    const ScopedCurrent current(driver_, context);
    // Clusters of up to 8 blocks are portable; larger ones must be allowed.
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
        done(); // a waiting thread tries next
        throw;
    }
}

SmMap Probe::read_map(ContextCache& cache, Device& device, const std::shared_ptr<Family>& family) {
    const AtomShape& shape = family->shape();
    const Code code(shape.unit_count);
    std::vector<uint32_t> number(GCX_MAX_SMS, 0);
    bool shares = !device.shared_sms().empty();
    const auto probe_set = [&](const AtomSet& set) {
        ContextCache::Ref context = cache.make_uncached({&device, family, set, std::nullopt});
        Stream stream(cache, *context, 0);
        std::vector<uint32_t> seen =
            sms_of(context->native, stream.target().native, context->sm_count());
        stream.close();
        shares = shares || seen.size() > context->sm_count();
        return seen;
    };
    for (uint32_t bit = 0; bit < code.bits; bit++) {
        for (const uint32_t sm : probe_set(code.set_of_bit(bit)))
            number[sm] |= 1U << bit;
    }
    const std::vector<uint32_t> all = probe_set(family->all());
    std::vector<uint32_t> shared;
    if (shares)
        shared = shared_sms(cache, device);
    SmMap map(shape.atom_count());
    for (const uint32_t sm : all) {
        const uint32_t atom = number[sm] == 0 ? shape.unit_count : number[sm] - 1;
        if (atom < map.size() && !std::binary_search(shared.begin(), shared.end(), sm))
            map[atom].push_back(sm);
    }
    add_shared(map, shape, shared);
    check_map(map, shape, device, shared);
    return map;
}

} // namespace gcx
