// An open file that the children of a fork don't get, nor what exec starts: what is locked by it is
// locked by this process alone, and is free as soon as this process ends.
#pragma once

#include <sys/types.h>

#include <memory>

namespace gcx {

class UnforkedFile {
  public:
    UnforkedFile() = default;
    // As openat. If that fails there is none, and errno says why.
    UnforkedFile(int folder, const char* path, int flags, mode_t mode = 0);

    // -1: there is none, this is the child of a fork, or the program closed the descriptor: its
    // number may be that of another file by then.
    int get() const;
    explicit operator bool() const { return get() >= 0; }
    // Keeps what is locked by it locked, whatever descriptors the program closes: many a daemon
    // closes all. Where the file can't be mapped, that is not so.
    void outlive_descriptor() const;
    // From now on it stays open over fork and exec.
    void bequeath();
    bool bequeathed() const;
    // Whether the path leads to another file by now, or to none.
    bool left(const char* path) const;

  private:
    struct Node;
    struct Close {
        void operator()(Node* node) const;
    };
    friend struct UnforkedFiles;

    std::unique_ptr<Node, Close> node_;
};

// How often this process is the child of a fork from one that had opened such a file.
unsigned forks_seen();

} // namespace gcx
