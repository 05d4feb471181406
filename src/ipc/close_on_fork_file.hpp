// An open file that neither the children of a fork nor programs started by exec inherit. A lock on
// it therefore belongs to this process only, and is released when this process ends.
#pragma once

#include <sys/types.h>

#include <memory>

namespace gcx {

class CloseOnForkFile {
  public:
    CloseOnForkFile() = default;
    // Opens a file as openat() does. On failure the object is empty, and errno says why.
    CloseOnForkFile(int dir, const char* path, int flags, mode_t mode = 0);

    // Returns the descriptor, or -1 if the object is empty, if this process is the child of a fork,
    // or if the program closed the descriptor: its number may then belong to another file.
    int get() const;
    explicit operator bool() const { return get() >= 0; }
    // Keeps the locks on the file even if the program closes the descriptor, as daemons do that
    // close all of them. Has no effect on a file that can't be mapped.
    void outlive_descriptor() const;
    // Lets children and the programs that they start inherit the file from now on.
    void make_inheritable();
    bool inheritable() const;
    // Returns whether the path leads to another file by now, or to none.
    bool is_gone_from(const char* path) const;

  private:
    struct Node;
    struct Close {
        void operator()(Node* node) const;
    };
    friend struct OpenFiles;

    std::unique_ptr<Node, Close> node_;
};

// Returns how many forks lie between this process and the first one that opened such a file.
unsigned fork_count();

} // namespace gcx
