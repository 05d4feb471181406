// Messages of the library as the command's: they speak of options, not of C functions and fields.
#pragma once

#include <string>
#include <string_view>

namespace gcx::cli {

// A message of the library in words for the command's user: without the function's name that it
// begins with, with options in the place of parameters, and without advice on which function to
// call. What stands in quotes is not changed.
std::string plain_message(std::string_view message);

// The same of the library's last message.
std::string library_message();

} // namespace gcx::cli
