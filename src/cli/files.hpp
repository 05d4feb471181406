// Files that the command writes.
#pragma once

#include <string>

namespace gcx::cli {

// Writes a whole file; throws Failure with the path and the reason.
void write_file(const std::string& path, const std::string& content);

} // namespace gcx::cli
