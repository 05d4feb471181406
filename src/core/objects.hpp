// What handles stand for: contexts, streams and events. Each has check_alive(), which throws
// GCX_ERROR_CONTEXT_IS_DESTROYED once the device was reset, and the close() of handle_table.hpp.
#pragma once

#include "core/context_cache.hpp"
#include "core/lease.hpp"

#include <atomic>

namespace gcx {

// A caller's reservation on a green context, which other handles may share.
struct Context {
    ContextCache::Ref green;

    void check_alive() const { green.check_alive(); }
    void close() { green = ContextCache::Ref(); }
};

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
    struct Place {
        CUstream native = nullptr;
        CUcontext context = nullptr;   // that it belongs to
        GreenContext* green = nullptr; // null if that isn't one of gcx's
        ContextCache::Ref hold;        // of one that follows a lease
    };
    using Purpose = LeaseStream::Purpose;
    Place place(Purpose purpose = Purpose::submit);
    // To be passed by who submits work of gcx's own; null: there is nothing to pass.
    Gate* gate() const;
    void check_alive() const;
    void get_info(gcx_stream_info& info);
    uint32_t sm_count(const Place& place) const;
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
    CUcontext foreign_ = nullptr;
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
    CUstream native() { return stream_.place().native; }

  private:
    Stream stream_;
};

class Event {
  public:
    Event(Device& device, uint32_t flags);
    // Someone else's event.
    Event(const Driver& driver, CUevent native);

    void close();
    CUevent native() const { return native_; }
    void check_alive() const;
    // Throws if it is known that work of this device can't be recorded in the event.
    void check_recordable(int32_t device) const;
    // Throws if it is known that no time lies between the two: events of two devices.
    void check_comparable(const Event& end) const;
    // Throws, calling the event by this name, if it is why the driver knows no time for it.
    void check_timed(const char* name) const;

    // The handle of the capturing stream that it was recorded in last; 0: the last wasn't one.
    uint64_t captured_in() const { return captured_in_.load(std::memory_order_relaxed); }
    void note_recorded(uint64_t capturing_stream) {
        captured_in_.store(capturing_stream, std::memory_order_relaxed);
    }

  private:
    const Driver& driver_;
    Device* device_ = nullptr; // null: someone else's, whose device the driver doesn't tell
    Device::PrimaryHold primary_;
    CUevent native_ = nullptr;
    bool timing_ = true;
    std::atomic<uint64_t> captured_in_{0};
};

} // namespace gcx
