// What handles stand for: contexts, streams and events. Each has check_alive(), which throws
// GCX_ERROR_CONTEXT_IS_DESTROYED once the device was reset, and the close() of handle_table.hpp.
#pragma once

#include "core/context_cache.hpp"

namespace gcx {

// A caller's hold on a green context, which other handles may share.
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

    // Gives the stream up: to the next who wants one of its context, or to the driver. Throws, and
    // changes nothing, if the driver refuses.
    void close();

    CUstream native() const { return native_; }
    // The CUcontext it belongs to.
    CUcontext context() const { return green_ ? green_->native : foreign_; }
    // Null if its context isn't one of gcx's.
    GreenContext* green() const { return green_ ? &*green_ : nullptr; }
    void check_alive() const;
    void get_info(gcx_stream_info& info) const;
    uint32_t sm_count() const;

  private:
    ContextCache& cache_;
    const Driver& driver_;
    ContextCache::Ref green_;
    CUstream native_ = nullptr;
    CUcontext foreign_ = nullptr;
    bool owned_;
    int priority_ = 0; // as asked for
};

class Event {
  public:
    Event(Device& device, uint32_t flags);

    void close();
    CUevent native() const { return native_; }
    void check_alive() const;

  private:
    Device& device_;
    Device::PrimaryHold primary_;
    CUevent native_ = nullptr;
};

} // namespace gcx
