// A view in the terminal that is drawn again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace gcx::cli {

struct Screen {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

struct Live {
    unsigned interval_ms;
    // What is to be seen now, in lines; those that don't fit are cut off.
    std::function<std::string(const Screen&)> frame;
};

// Whether standard output is a terminal on which lines can be drawn anew.
bool can_show_live();

// Shows it until q, Ctrl-C or a signal that ends programs, and leaves the terminal as it was.
// False if the terminal went away.
bool show_live(const Live& live);

} // namespace gcx::cli
