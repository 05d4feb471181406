// Part of gcx.hpp: what owners of handles have in common.
#pragma once

#include "error.hpp"

#include <utility>

namespace gcx {

namespace detail {

// A handle, given up once.
template <class Handle, gcx_result (*Destroy)(Handle)>
class owner {
  public:
    owner(owner&& other) noexcept : handle_(other.release()) {}
    owner& operator=(owner&& other) noexcept {
        owner(std::move(other)).swap(*this);
        return *this;
    }
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
        if (handle_ != nullptr)
            Destroy(handle_);
    }

    // gcx_..._destroy. After a failure the handle is still here.
    void close() {
        if (handle_ != nullptr) {
            check(Destroy(handle_));
            handle_ = nullptr;
        }
    }

    // For gcx.h's functions; stays here.
    Handle handle() const noexcept { return handle_; }
    // The caller's from now on.
    Handle release() noexcept { return std::exchange(handle_, nullptr); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

  protected:
    owner() noexcept = default;
    Handle* receive() noexcept { return &handle_; }

  private:
    void swap(owner& other) noexcept { std::swap(handle_, other.handle_); }

    Handle handle_ = nullptr;
};

// A native handle; or the error behind a NULL, which asking for something else tells.
template <class Native, class Ask>
Native* native_or_throw(Native* native, const Ask& ask) {
    if (native == nullptr) {
        const gcx_result why = ask();
        fail(why != GCX_SUCCESS && why != GCX_ERROR_NOT_READY ? why : GCX_ERROR_UNKNOWN);
    }
    return native;
}

} // namespace detail

} // namespace gcx
