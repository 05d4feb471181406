// Diagnostics. The library prints nothing unless it was asked to.
#pragma once

#include <gcx.h>

#include <string>

namespace gcx::log {

// Whether anyone listens at this level: ask before building a costly message.
bool wanted(gcx_log_level level);
// Takes a message in, which deliver() gives out. May be called under any lock.
void write(gcx_log_level level, const std::string& message) noexcept;
// Whether the calling thread has written what deliver() would give out.
bool pending() noexcept;
// Gives out what the calling thread has written, in order. Called at the edges of the library,
// where no lock of gcx is held: the callback may wait for a lock of the application's whose holder
// waits for gcx.
void deliver() noexcept;

// Waits for the callback before. Throws if called from one.
void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data);

// In the child of a fork, where only the calling thread lives on.
void forget_other_threads() noexcept;

} // namespace gcx::log
