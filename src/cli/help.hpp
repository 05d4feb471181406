// The help texts, made of what the commands say of themselves.
#pragma once

#include "cli/args.hpp"

#include <span>
#include <string>

namespace gcx::cli {

std::string help_text(std::span<const Command> known);
std::string help_text(const Command& command);

} // namespace gcx::cli
