// Diagnostics. The library prints nothing unless it was asked to.
#pragma once

#include <gcx.h>

#include <string>

namespace gcx::log {

// Whether anyone listens at this level: ask before building a costly message.
bool wanted(gcx_log_level level);
void write(gcx_log_level level, const std::string& message);
void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data);

} // namespace gcx::log
