#include "base/unforked_file.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace gcx {

struct UnforkedFile::Node {
    std::atomic<int> number{-1};
    Node* next = nullptr; // of those that a child closes
    Node* before = nullptr;
    bool bequeathed = false;
};

// Those that are open. No fork comes between the opening of one and its entry here: the child would
// keep it open, and with it what the parent locks by it.
struct UnforkedFiles {
    std::mutex mutex;
    UnforkedFile::Node* first = nullptr;
    bool watching = false;
    std::atomic<unsigned> forks{0};

    void enter(UnforkedFile::Node& node) {
        node.next = first;
        if (first != nullptr)
            first->before = &node;
        first = &node;
    }
    void take_out(UnforkedFile::Node& node) {
        if (node.next != nullptr)
            node.next->before = node.before;
        if (node.before != nullptr)
            node.before->next = node.next;
        else if (first == &node)
            first = node.next;
        node.next = node.before = nullptr;
    }

    static void before_fork();
    static void in_parent();
    static void in_child();
};

namespace {

constinit UnforkedFiles files;

} // namespace

void UnforkedFiles::before_fork() {
    files.mutex.lock();
}

void UnforkedFiles::in_parent() {
    files.mutex.unlock();
}

void UnforkedFiles::in_child() {
    for (UnforkedFile::Node* node = files.first; node != nullptr; node = node->next)
        close(node->number.exchange(-1));
    files.first = nullptr;
    files.forks++;
    files.mutex.unlock();
}

UnforkedFile::UnforkedFile(int folder, const char* path, int flags, mode_t mode) {
    auto node = std::make_unique<Node>();
    const std::lock_guard lock(files.mutex);
    if (!files.watching && pthread_atfork(UnforkedFiles::before_fork, UnforkedFiles::in_parent,
                                          UnforkedFiles::in_child) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch for forks");
    files.watching = true;
    const int number = openat(folder, path, flags | O_CLOEXEC, mode);
    if (number < 0)
        return;
    node->number = number;
    files.enter(*node);
    node_.reset(node.release());
}

unsigned forks_seen() {
    return files.forks.load();
}

int UnforkedFile::get() const {
    return node_ == nullptr ? -1 : node_->number.load();
}

void UnforkedFile::bequeath() {
    const std::lock_guard lock(files.mutex);
    files.take_out(*node_);
    node_->bequeathed = true;
    // Out of the way of shells and programs that put files of their own under the lowest numbers.
    constexpr int kLeast = 700;
    const int number = node_->number.load();
    const int moved = fcntl(number, F_DUPFD, kLeast);
    if (moved < 0) {
        fcntl(number, F_SETFD, 0);
        return;
    }
    node_->number.store(moved);
    close(number);
}

bool UnforkedFile::bequeathed() const {
    return node_ != nullptr && node_->bequeathed;
}

void UnforkedFile::Close::operator()(Node* node) const {
    const int error = errno;
    {
        const std::lock_guard lock(files.mutex);
        files.take_out(*node);
        const int number = node->number.load();
        if (number >= 0)
            close(number);
    }
    delete node;
    errno = error;
}

} // namespace gcx
