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

    // -1: there is none, or this is the child of a fork.
    int get() const;
    explicit operator bool() const { return get() >= 0; }
    // From now on it stays open over fork and exec.
    void bequeath();
    bool bequeathed() const;

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
