#include "base/unforked_file.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace gcx {

struct UnforkedFile::Node {
    std::atomic<int> number{-1};
    dev_t device = 0;
    ino_t inode = 0;
    void* page = MAP_FAILED; // of the file: keeps it open without the descriptor
    Node* next = nullptr;    // of those that a child closes
    Node* before = nullptr;
    bool bequeathed = false;

    bool is(const struct stat& info) const { return info.st_dev == device && info.st_ino == inode; }
    // The descriptor, if it is the file's still; otherwise -1.
    int own_number() const {
        struct stat info{};
        const int now = number.load();
        return now >= 0 && fstat(now, &info) == 0 && is(info) ? now : -1;
    }
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

constexpr std::size_t kByte = 1; // the kernel maps the page that has it

// A program that began without them takes the lowest numbers for its input, output and errors.
int beyond_standard(int number) {
    if (number > STDERR_FILENO)
        return number;
    const int moved = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(number);
    errno = error;
    return moved;
}

} // namespace

void UnforkedFiles::before_fork() {
    files.mutex.lock();
}

void UnforkedFiles::in_parent() {
    files.mutex.unlock();
}

void UnforkedFiles::in_child() {
    for (UnforkedFile::Node* node = files.first; node != nullptr; node = node->next) {
        node->page = MAP_FAILED; // the child doesn't have it
        if (const int number = node->own_number(); number >= 0 && !node->bequeathed)
            close(number);
        node->number.store(-1);
    }
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
    int number = openat(folder, path, flags | O_CLOEXEC, mode);
    if (number >= 0)
        number = beyond_standard(number);
    if (number < 0)
        return;
    struct stat info{};
    if (fstat(number, &info) != 0) {
        const int error = errno;
        close(number);
        errno = error;
        return;
    }
    node->device = info.st_dev;
    node->inode = info.st_ino;
    node->number = number;
    files.enter(*node);
    node_.reset(node.release());
}

unsigned forks_seen() {
    return files.forks.load();
}

int UnforkedFile::get() const {
    return node_ == nullptr ? -1 : node_->own_number();
}

void UnforkedFile::outlive_descriptor() const {
    const std::lock_guard lock(files.mutex); // a child that is forked in between would keep it
    const int number = get();
    if (number < 0 || node_->page != MAP_FAILED)
        return;
    void* const page = mmap(nullptr, kByte, PROT_NONE, MAP_PRIVATE, number, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, kByte, MADV_DONTFORK) == 0)
        node_->page = page;
    else
        munmap(page, kByte);
}

bool UnforkedFile::left(const char* path) const {
    struct stat info{};
    if (stat(path, &info) != 0)
        return errno == ENOENT || errno == ENOTDIR;
    return node_ != nullptr && !node_->is(info);
}

void UnforkedFile::bequeath() {
    const std::lock_guard lock(files.mutex);
    const int number = get();
    if (number < 0)
        return;
    node_->bequeathed = true;
    // Out of the way of shells and programs that put files of their own under the lowest numbers.
    constexpr int kLeast = 700;
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
        if (const int number = node->own_number(); number >= 0)
            close(number);
        if (node->page != MAP_FAILED)
            munmap(node->page, kByte);
    }
    delete node;
    errno = error;
}

} // namespace gcx
