// Counts the checks of tests. A failed check prints its place and values, and makes the process's
// exit status 1. Thread-safe.
#pragma once

#include <gcx.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>

// GCC defines macros, Clang has features.
#if defined(__SANITIZE_ADDRESS__)
#define CHECK_SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 2
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECK_SANITIZED 1
#elif __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 2
#endif
#endif
#ifndef CHECK_SANITIZED
#define CHECK_SANITIZED 0
#endif

namespace check {

// A sanitizer is slower, and does not return freed memory.
inline constexpr bool sanitized = CHECK_SANITIZED != 0;
// The suite sets the variable for an emulated processor.
inline const bool emulated = std::getenv("CHECK_EMULATED") != nullptr;
// Tests run fewer rounds where everything takes many times as long.
inline const bool slow = sanitized || emulated;
// Is the same for tests with one thread, where the thread sanitizer finds nothing.
inline const bool slow_alone = CHECK_SANITIZED == 2 || emulated;

inline std::atomic<int> passed{0};
inline std::atomic<int> failed{0};

template <class T>
std::string text(const T& value) {
    std::ostringstream out;
    if constexpr (std::is_same_v<T, gcx_result>)
        out << gcx_result_name(value);
    else if constexpr (std::is_enum_v<T>)
        out << static_cast<long long>(value);
    else
        out << value;
    return out.str();
}

inline bool count(bool ok, const char* file, int line, const std::string& what) {
    if (ok) {
        passed++;
        return true;
    }
    failed++;
    std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, what.c_str());
    if (const char* message = gcx_last_error_message(); *message != '\0')
        std::fprintf(stderr, "    last error of gcx: %s\n", message);
    return false;
}

template <class A, class B>
bool equal(const A& a, const B& b, const char* file, int line, const char* what) {
    const bool ok = a == b;
    return count(ok, file, line,
                 ok ? std::string() : std::string(what) + ": " + text(a) + " and " + text(b));
}

// Prints the counts and returns main's result. A run without checks fails.
inline int summary(const char* name) {
    std::printf("%s: %d passed, %d failed\n", name, passed.load(), failed.load());
    return failed.load() == 0 && passed.load() != 0 ? 0 : 1;
}

} // namespace check

#define CHECK(...) check::count(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)
#define CHECK_EQ(a, b) check::equal((a), (b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_OK(call) CHECK_EQ(call, GCX_SUCCESS)
