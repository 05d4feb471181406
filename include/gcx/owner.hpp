// Part of gcx.hpp: the base class of owners of handles.
#pragma once

#include "error.hpp"

#include <utility>

namespace gcx {

namespace detail {

// Owns a handle and destroys it once.
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

    // Calls the destroy function. If that fails, the handle is kept.
    void close() {
        if (handle_ != nullptr) {
            check(Destroy(handle_));
            handle_ = nullptr;
        }
    }

    // The handle for functions of gcx.h; still owned.
    Handle handle() const noexcept { return handle_; }
    // Returns the handle and gives up its ownership.
    Handle release() noexcept { return std::exchange(handle_, nullptr); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

  protected:
    owner() noexcept = default;
    Handle* receive() noexcept { return &handle_; }

  private:
    void swap(owner& other) noexcept { std::swap(handle_, other.handle_); }

    Handle handle_ = nullptr;
};

// Returns a native handle. If it is NULL, throws the error that another query returns.
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
