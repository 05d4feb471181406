// Streams: the objects of stream handles. A stream belongs to a context, follows a lease, or wraps
// a native stream that gcx did not make.
#pragma once

#include "core/lease.hpp"

#include <memory>

namespace gcx {

// The object of a stream handle.
class Stream {
  public:
    // Makes a stream of a context.
    Stream(ContextCache& cache, GreenContext& context, int priority);
    // Wraps a stream that gcx did not make.
    Stream(ContextCache& cache, const Driver& driver, CUstream native);
    // Makes a stream that follows a lease.
    Stream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority);

    // Releases the native stream to the context's cache or to the driver. Throws, and changes
    // nothing, if the driver refuses.
    void close();

    // Where work of the stream runs.
    struct Target {
        CUstream native = nullptr;
        CUcontext context = nullptr;   // the native stream's context
        GreenContext* green = nullptr; // null if gcx did not make the context
        ContextCache::Ref keep_alive;  // keeps a lease's context alive while the target is used
    };
    using Purpose = LeaseStream::Purpose;
    Target target(Purpose purpose = Purpose::submit);
    // Returns the lock to share while gcx submits work to the stream; null: none is needed.
    SubmitLock* submit_lock() const;
    void check_alive() const;
    void get_info(gcx_stream_info& info);
    uint32_t sm_count(const Target& target) const;
    // Returns whether the stream follows a lease that shares SMs with others.
    bool follows_shared_lease() const {
        return follower_ != nullptr && follower_->lease().terms.shared;
    }
    int32_t device() const { return device_; }

  private:
    ContextCache& cache_;
    const Driver& driver_;
    std::unique_ptr<LeaseStream> follower_; // if it follows a lease; the next three are then empty
    ContextCache::Ref green_;
    CUstream native_ = nullptr;
    CUcontext external_ = nullptr;
    int32_t device_ = 0;
    bool owned_;
    int priority_ = 0;
};

// A stream for the duration of a scope.
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

// Fills in how much of a kernel runs at once on a stream's SMs; all fields but struct_size.
void get_kernel_fit(const Device& device, Stream& stream, CUfunction function,
                    const gcx_kernel_fit_params& params, gcx_kernel_fit& fit);

} // namespace gcx
