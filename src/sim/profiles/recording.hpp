// The files that profiles lie in.
#pragma once

#include <string>

namespace gcx::sim {

// Reads a whole file. On failure returns false and says why: it may be a folder, a pipe, or too
// large to be a recording.
bool read_recording(const std::string& path, std::string& text, std::string& error);

} // namespace gcx::sim
