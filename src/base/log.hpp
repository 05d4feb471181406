// The log. Without GCX_LOG or a callback, nothing is written.
#pragma once

#include <gcx.h>

#include <string>

namespace gcx::log {

// Returns whether messages of this level are delivered. Check it before building a costly message.
bool enabled(gcx_log_level level);
// Queues a message for deliver(). May be called while holding any lock.
void write(gcx_log_level level, const std::string& message) noexcept;
// Returns whether the calling thread has queued messages.
bool pending() noexcept;
// Delivers the calling thread's messages in order. Called when an API function returns and no lock
// of gcx is held: the callback may wait for a lock of the application, whose owner may wait for
// gcx.
void deliver() noexcept;

// Waits until the previous callback has returned. Throws if called from a callback.
void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data);

// Called in the child of a fork, where only the calling thread exists.
void forget_other_threads() noexcept;

} // namespace gcx::log
