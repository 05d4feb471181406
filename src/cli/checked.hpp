// gcx's functions with their results checked: failures as exceptions, handles with an owner.
#pragma once

#include <gcx.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace gcx::cli {

// Something that was asked for failed: exit status 1.
struct Failure : std::runtime_error {
    Failure(gcx_result code, const std::string& message)
        : std::runtime_error(message), result(code) {}
    gcx_result result;
};

// Throws Failure with gcx's message, in the command's words, if result isn't GCX_SUCCESS.
void check(gcx_result result);

gcx_device_info device_info(int32_t device);
gcx_resource_info resource_info(const gcx_resource& resource);

// Owns a handle.
template <class Handle, gcx_result (*Destroy)(Handle)>
class Owned {
  public:
    Owned() = default;
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (handle_ != nullptr)
            Destroy(handle_);
    }

    Handle get() const { return handle_; }
    Handle* out() { return &handle_; }
    void destroy() { check(Destroy(std::exchange(handle_, nullptr))); }

  private:
    Handle handle_ = nullptr;
};
using Context = Owned<gcx_context, gcx_context_destroy>;
using Stream = Owned<gcx_stream, gcx_stream_destroy>;

// Makes a context current in the calling thread for a scope.
class Pushed {
  public:
    explicit Pushed(gcx_context context) { check(gcx_context_push(context)); }
    Pushed(const Pushed&) = delete;
    Pushed& operator=(const Pushed&) = delete;
    ~Pushed() { gcx_context_pop(nullptr); }
};

} // namespace gcx::cli
