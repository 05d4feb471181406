#include "ipc/close_on_fork_file.hpp"

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

struct CloseOnForkFile::Node {
    std::atomic<int> number{-1};
    dev_t device = 0;
    ino_t inode = 0;
    void* page = MAP_FAILED; // maps the file, which keeps it open without the descriptor
    Node* next = nullptr;    // in the list of OpenFiles
    Node* previous = nullptr;
    bool inheritable = false;

    bool is(const struct stat& info) const { return info.st_dev == device && info.st_ino == inode; }
    // Returns the descriptor if it still belongs to the file, otherwise -1.
    int checked_number() const {
        struct stat info{};
        const int now = number.load();
        return now >= 0 && fstat(now, &info) == 0 && is(info) ? now : -1;
    }
};

// The files that a child of a fork has to close. The mutex keeps a fork from happening between
// opening a file and listing it here: the child would keep the file open, and the parent's locks
// with it.
struct OpenFiles {
    std::mutex mutex;
    CloseOnForkFile::Node* first = nullptr;
    bool watching = false;
    std::atomic<unsigned> forks{0};

    void add(CloseOnForkFile::Node& node) {
        node.next = first;
        if (first != nullptr)
            first->previous = &node;
        first = &node;
    }
    void remove(CloseOnForkFile::Node& node) {
        if (node.next != nullptr)
            node.next->previous = node.previous;
        if (node.previous != nullptr)
            node.previous->next = node.next;
        else if (first == &node)
            first = node.next;
        node.next = node.previous = nullptr;
    }

    static void before_fork();
    static void in_parent();
    static void in_child();
};

namespace {

constinit OpenFiles files;

constexpr std::size_t kByte = 1; // the kernel maps the whole page

// A program that was started without standard streams uses the lowest numbers for its own.
int move_past_standard_streams(int number) {
    if (number > STDERR_FILENO)
        return number;
    const int moved = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(number);
    errno = error;
    return moved;
}

} // namespace

void OpenFiles::before_fork() {
    files.mutex.lock();
}

void OpenFiles::in_parent() {
    files.mutex.unlock();
}

void OpenFiles::in_child() {
    for (CloseOnForkFile::Node* node = files.first; node != nullptr; node = node->next) {
        node->page = MAP_FAILED; // MADV_DONTFORK: the child does not have it
        if (const int number = node->checked_number(); number >= 0 && !node->inheritable)
            close(number);
        node->number.store(-1);
    }
    files.first = nullptr;
    files.forks++;
    files.mutex.unlock();
}

CloseOnForkFile::CloseOnForkFile(int folder, const char* path, int flags, mode_t mode) {
    auto node = std::make_unique<Node>();
    const std::lock_guard lock(files.mutex);
    if (!files.watching &&
        pthread_atfork(OpenFiles::before_fork, OpenFiles::in_parent, OpenFiles::in_child) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch for forks");
    files.watching = true;
    int number = openat(folder, path, flags | O_CLOEXEC, mode);
    if (number >= 0)
        number = move_past_standard_streams(number);
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
    files.add(*node);
    node_.reset(node.release());
}

unsigned fork_count() {
    return files.forks.load();
}

int CloseOnForkFile::get() const {
    return node_ == nullptr ? -1 : node_->checked_number();
}

void CloseOnForkFile::outlive_descriptor() const {
    const std::lock_guard lock(files.mutex); // no fork between mmap and madvise
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

bool CloseOnForkFile::is_gone_from(const char* path) const {
    struct stat info{};
    if (stat(path, &info) != 0)
        return errno == ENOENT || errno == ENOTDIR;
    return node_ != nullptr && !node_->is(info);
}

void CloseOnForkFile::make_inheritable() {
    const std::lock_guard lock(files.mutex);
    const int number = get();
    if (number < 0)
        return;
    node_->inheritable = true;
    // Shells and other programs put their own files at low numbers, so use a high one.
    constexpr int kLowest = 700;
    const int moved = fcntl(number, F_DUPFD, kLowest);
    if (moved < 0) {
        fcntl(number, F_SETFD, 0);
        return;
    }
    node_->number.store(moved);
    close(number);
}

bool CloseOnForkFile::inheritable() const {
    return node_ != nullptr && node_->inheritable;
}

void CloseOnForkFile::Close::operator()(Node* node) const {
    const int error = errno;
    {
        const std::lock_guard lock(files.mutex);
        files.remove(*node);
        if (const int number = node->checked_number(); number >= 0)
            close(number);
        if (node->page != MAP_FAILED)
            munmap(node->page, kByte);
    }
    delete node;
    errno = error;
}

} // namespace gcx
