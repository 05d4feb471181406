// Checks that are counted, print where they failed, and determine the exit status.
#pragma once

#include <atomic>
#include <cstdio>
#include <sstream>
#include <string>

namespace check {

inline std::atomic<int> passed{0};
inline std::atomic<int> failed{0};

template <class T>
std::string text(const T& value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

inline bool that(bool holds, const char* file, int line, const std::string& what) {
    (holds ? passed : failed)++;
    if (!holds)
        std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
    return holds;
}

template <class A, class B>
bool equal(const A& a, const B& b, const char* file, int line, const char* what) {
    const bool holds = a == b;
    return that(holds, file, line,
                holds ? std::string() : std::string(what) + ": " + text(a) + " and " + text(b));
}

// Returns the exit status of main. A run without checks fails.
inline int summary(const char* name) {
    std::printf("%s: %d passed, %d failed\n", name, passed.load(), failed.load());
    return failed.load() == 0 && passed.load() > 0 ? 0 : 1;
}

} // namespace check

#define CHECK(...) check::that(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)
#define CHECK_EQ(a, b) check::equal((a), (b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_OK(call) CHECK_EQ(static_cast<int>(call), 0)
