// Replaces the calls of the operating system that reservations make. A test that includes this, in
// its only source file, decides whether each of them fails.
//
// The functions below replace the C library's for libgcx too, since the program's symbols come
// first; they make the system call themselves.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace calls {

// The test defines it: returns whether the call fails, and with which error.
bool fails(int& with);

inline bool stopped() {
    const int before = errno;
    int with = 0;
    const bool failed = fails(with);
    errno = failed ? with : before;
    return failed;
}

} // namespace calls

#define STAND_IN extern "C" __attribute__((visibility("default")))

STAND_IN int openat64(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
STAND_IN int fcntl64(int file, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}
STAND_IN int flock(int file, int operation) noexcept {
    // Unlocking can't fail.
    return operation != LOCK_UN && calls::stopped()
               ? -1
               : static_cast<int>(syscall(SYS_flock, file, operation));
}
STAND_IN int fchmod(int file, mode_t mode) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_fchmod, file, mode));
}
STAND_IN int posix_fallocate64(int file, off64_t at, off64_t bytes) {
    if (calls::stopped())
        return errno;
    return syscall(SYS_fallocate, file, 0, at, bytes) == 0 ? 0 : errno;
}
STAND_IN ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
    if (calls::stopped()) { // half of it, as on a disk that fills up
        const int error = errno;
        syscall(SYS_pwrite64, file, bytes, count / 2, at);
        errno = error;
        return -1;
    }
    return syscall(SYS_pwrite64, file, bytes, count, at);
}
STAND_IN ssize_t pread64(int file, void* bytes, size_t count, off64_t at) {
    return calls::stopped() ? -1 : syscall(SYS_pread64, file, bytes, count, at);
}
STAND_IN int unlinkat(int folder, const char* path, int flags) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}
STAND_IN int mkdir(const char* path, mode_t mode) noexcept {
    return calls::stopped() ? -1 : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
STAND_IN int renameat(int from, const char* path, int to, const char* name) noexcept {
    return calls::stopped() ? -1
                            : static_cast<int>(syscall(SYS_renameat2, from, path, to, name, 0));
}

#undef STAND_IN
