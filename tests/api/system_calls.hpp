// Intercepts the system calls of reservations: a test that includes this in its only source file is
// asked before each of them.
//
// The functions below replace those of the C library for libgcx too, since the symbols of a program
// come first. They make the system calls themselves.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace calls {

// Defined by the test: returns whether the call fails, and with which error.
bool fails(int& with);

// How many calls of posix_fallocate a signal is to interrupt.
inline int interruptions = 0;

inline bool stopped() {
    const int before = errno;
    int with = 0;
    const bool failed = fails(with);
    errno = failed ? with : before;
    return failed;
}

} // namespace calls

#define INTERCEPT extern "C" __attribute__((visibility("default")))

INTERCEPT int openat64(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
INTERCEPT int fcntl64(int file, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}
INTERCEPT int flock(int file, int operation) noexcept {
    // Unlocking can't fail.
    return operation != LOCK_UN && calls::stopped()
               ? -1
               : static_cast<int>(syscall(SYS_flock, file, operation));
}
INTERCEPT int fchmod(int file, mode_t mode) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_fchmod, file, mode));
}
INTERCEPT int posix_fallocate64(int file, off64_t at, off64_t bytes) {
    if (calls::interruptions != 0) {
        calls::interruptions--;
        return EINTR;
    }
    if (calls::stopped())
        return errno;
    return syscall(SYS_fallocate, file, 0, at, bytes) == 0 ? 0 : errno;
}
INTERCEPT ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
    if (calls::stopped()) { // writes half of it, as on a full disk
        const int error = errno;
        syscall(SYS_pwrite64, file, bytes, count / 2, at);
        errno = error;
        return -1;
    }
    return syscall(SYS_pwrite64, file, bytes, count, at);
}
INTERCEPT ssize_t pread64(int file, void* bytes, size_t count, off64_t at) {
    return calls::stopped() ? -1 : syscall(SYS_pread64, file, bytes, count, at);
}
INTERCEPT int unlinkat(int folder, const char* path, int flags) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}
INTERCEPT int mkdir(const char* path, mode_t mode) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
INTERCEPT int renameat(int from, const char* path, int to, const char* name) noexcept {
    return calls::stopped() ? -1
                            : static_cast<int>(syscall(SYS_renameat2, from, path, to, name, 0));
}

#undef INTERCEPT
