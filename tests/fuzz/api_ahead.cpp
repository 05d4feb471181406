// The operations on what is kept: contexts made ahead of time, limits, trimming; and what of a
// kernel fits a stream.

#include "api.hpp"

namespace fuzz {
namespace {

struct Ahead {
    Bytes& bytes;
    gcx_cancel cancel;
    uint32_t done;
    uint8_t give_up_at;
};

// It may call gcx, also for the call that is under way.
void on_progress(uint32_t done, uint32_t count, void* user_data) {
    auto& ahead = *static_cast<Ahead*>(user_data);
    must(done == ++ahead.done && done <= count, "progress goes one by one");
    if (done == ahead.give_up_at)
        CALL(gcx_cancel_signal(ahead.cancel));
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    if (ahead.bytes.next() == 0x77)
        CALL(gcx_cache_trim(0, &trimmed));
}

CUfunction forged(Bytes& bytes) {
    return reinterpret_cast<CUfunction>(uint64_t{bytes.word()});
}

// A kernel while it is looked at; none if the driver was told to fail.
class Kernel {
  public:
    Kernel() {
        constexpr char kPtx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                ".visible .entry fuzz_kernel() { ret; }\n";
        if (cuLibraryLoadData(&library_, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
            CUDA_SUCCESS)
            library_ = nullptr;
    }
    ~Kernel() {
        // Once more if that was the call to fail.
        if (library_ != nullptr && cuLibraryUnload(library_) != CUDA_SUCCESS)
            cuLibraryUnload(library_);
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    CUfunction function() const {
        CUkernel kernel = nullptr;
        if (library_ == nullptr ||
            cuLibraryGetKernel(&kernel, library_, "fuzz_kernel") != CUDA_SUCCESS)
            return nullptr;
        return reinterpret_cast<CUfunction>(kernel);
    }

  private:
    CUlibrary library_ = nullptr;
};

} // namespace

void prepare(Bytes& bytes, Shared& shared) {
    std::vector<gcx_resource> resources(bytes.next() & 7);
    for (gcx_resource& resource : resources)
        resource = shared.resource(bytes);
    auto params = sized<gcx_prepare_params>(bytes).value;
    Ahead ahead = {bytes, shared.cancels.pick(bytes), 0, bytes.next()};
    params.flags = bytes.next() % 3;
    params.cancel = bytes.flag() ? ahead.cancel : nullptr;
    params.progress = bytes.flag() ? on_progress : nullptr;
    params.user_data = &ahead;
    const auto count = static_cast<uint32_t>(resources.size());
    if (CALL(gcx_cache_prepare(resources.data(), count, bytes.flag() ? &params : nullptr)) ==
        GCX_SUCCESS)
        must(ahead.done == 0 || ahead.done == count, "progress of all");
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
    CUfunction function = bytes.flag() ? kernel.function() : forged(bytes);
    if (CALL_OUT(fit, gcx_stream_get_kernel_fit(stream, function, &params, &fit.value)) ==
        GCX_SUCCESS)
        must(fit.value.max_blocks <= fit.value.blocks_per_sm * fit.value.sm_count,
             "more blocks than the SMs hold");
}

} // namespace fuzz
