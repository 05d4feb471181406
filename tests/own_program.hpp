// A test's own program once more, in the place of this process: by qemu where that runs it now.
#pragma once

#include <unistd.h>

#include <initializer_list>
#include <vector>

// self is argv[0], an absolute path or one by which it can be found from here. Returns on failure.
inline void become_own_program(const char* self, std::initializer_list<const char*> arguments) {
    // Meson says in MESON_EXE_WRAPPER what runs the tests, if it isn't this machine by itself.
    std::vector<const char*> words = {"sh", "-c", "exec $MESON_EXE_WRAPPER \"$0\" \"$@\"", self};
    words.insert(words.end(), arguments);
    words.push_back(nullptr);
    execv("/bin/sh", const_cast<char* const*>(words.data()));
}
