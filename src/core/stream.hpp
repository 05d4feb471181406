// What handles stand for: contexts, streams and events. Each has check_alive(), which throws
// GCX_ERROR_CONTEXT_IS_DESTROYED once the device was reset, and the close() of handle_table.hpp.
#pragma once

#include "core/lease.hpp"

#include <memory>

namespace gcx {

class Stream {
  public:
    // A new stream of a context.
    Stream(ContextCache& cache, GreenContext& context, int priority);
    // Someone else's stream.
    Stream(ContextCache& cache, const Driver& driver, CUstream native);
    // One that follows a lease.
    Stream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority);

    // Gives the stream up: to the next who wants one of its context, or to the driver. Throws, and
    // changes nothing, if the driver refuses.
    void close();

    // Where its work goes. One that follows a lease goes where the lease is first, and is there as
    // long as the place is held.
    struct Target {
        CUstream native = nullptr;
        CUcontext context = nullptr;   // that it belongs to
        GreenContext* green = nullptr; // null if that isn't one of gcx's
        ContextCache::Ref keep_alive;  // of one that follows a lease
    };
    using Purpose = LeaseStream::Purpose;
    Target target(Purpose purpose = Purpose::submit);
    // To be passed by who submits work of gcx's own; null: there is nothing to pass.
    SubmitLock* submit_lock() const;
    void check_alive() const;
    void get_info(gcx_stream_info& info);
    uint32_t sm_count(const Target& target) const;
    // Whether it follows a lease whose SMs others may have too.
    bool follows_shared_lease() const {
        return follower_ != nullptr && follower_->lease().terms.shared;
    }
    int32_t device() const { return device_; }

  private:
    ContextCache& cache_;
    const Driver& driver_;
    std::unique_ptr<LeaseStream> follower_; // if it follows a lease; the next three are null then
    ContextCache::Ref green_;
    CUstream native_ = nullptr;
    CUcontext external_ = nullptr;
    int32_t device_ = 0;
    bool owned_;
    int priority_ = 0;
};

// A stream for a moment.
class TemporaryStream {
  public:
    TemporaryStream(ContextCache& cache, GreenContext& context) : stream_(cache, context, 0) {}
    ~TemporaryStream();
    TemporaryStream(const TemporaryStream&) = delete;
    TemporaryStream& operator=(const TemporaryStream&) = delete;
    CUstream native() { return stream_.target().native; }

  private:
    Stream stream_;
};

// Fills in all but the struct_size.
void get_kernel_fit(const Device& device, Stream& stream, CUfunction function,
                    const gcx_kernel_fit_params& params, gcx_kernel_fit& fit);

} // namespace gcx
