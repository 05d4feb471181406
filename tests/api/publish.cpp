#include "publish.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace publish {
namespace {

template <class T, gcx_result (*List)(T*, uint32_t, uint32_t*)>
std::vector<T> all() {
    std::vector<T> found(4096);
    uint32_t count = 0;
    CHECK_OK(List(found.data(), static_cast<uint32_t>(found.size()), &count));
    found.resize(count);
    return found;
}

template <std::size_t size>
bool ends(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

} // namespace

Folder::Folder() {
    char path[] = "/tmp/gcx-publish-XXXXXX";
    CHECK(mkdtemp(path) != nullptr);
    path_ = path;
    CHECK(fs::create_directory(inner()));
    fs::permissions(inner(), fs::perms::owner_all);
    setenv("GCX_RESERVATION_DIR", inner().c_str(), 1);
}

Folder::~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
}

fs::path Folder::published() const {
    return inner() / ("user-" + std::to_string(geteuid()));
}

std::vector<fs::path> Folder::files() const {
    std::vector<fs::path> found;
    for (const fs::path& folder : {inner(), published()}) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder, error)) {
            if (entry.path() != published())
                found.push_back(entry.path());
        }
    }
    return found;
}

std::vector<gcx_published_process> processes() {
    return all<gcx_published_process, gcx_published_process_list>();
}

std::vector<gcx_published_lease> leases() {
    return all<gcx_published_lease, gcx_published_lease_list>();
}

void check_listed(const std::vector<gcx_published_lease>& found) {
    bool right = true;
    for (const gcx_published_lease& lease : found) {
        const uint32_t own = sms_of(lease, lease.exclusive_atoms);
        const uint32_t shared = sms_of(lease, lease.shared_atoms);
        right = right && ends(lease.name) && ends(lease.process_name) && ends(lease.device_name);
        right = right && (lease.waits == 1
                              ? own + shared == 0
                              : lease.sm_count == own + shared && lease.exclusive_sm_count == own);
        for (const gcx_published_lease& other : found) {
            if (&other == &lease || other.process != lease.process ||
                other.family != lease.family || other.device != lease.device)
                continue;
            for (std::size_t word = 0; word < 8; word++)
                right = right && (lease.exclusive_atoms[word] &
                                  (other.exclusive_atoms[word] | other.shared_atoms[word])) == 0;
        }
    }
    if (CHECK(right))
        return;
    for (const gcx_published_lease& lease : found)
        std::fprintf(
            stderr, "    %016llx device %d lease %llu \"%.63s\" waits %u has %u of %u, %llx %llx\n",
            static_cast<unsigned long long>(lease.process), lease.device,
            static_cast<unsigned long long>(lease.id), lease.name, lease.waits,
            lease.exclusive_sm_count, lease.sm_count,
            static_cast<unsigned long long>(lease.exclusive_atoms[0]),
            static_cast<unsigned long long>(lease.shared_atoms[0]));
}

void open_machine(const std::string& spec) {
    CHECK_OK(gcx_driver_open(("sim:" + spec).c_str()));
}

Other::Other(const std::function<void(Other&)>& body) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) {
        std::perror("fork"); // never call kill() with -1
        std::exit(1);
    }
    if (pid_ != 0) {
        close(ends_[1]);
        return;
    }
    close(ends_[0]);
    alarm(100);
    check::failed = 0;
    body(*this);
    std::exit(check::failed == 0 ? 0 : 1);
}

Other::~Other() {
    if (pid_ > 0)
        kill(SIGKILL);
    close(ends_[0]);
}

void Other::point() const {
    say_arrived();
    char byte = 0;
    CHECK_EQ(read(ends_[1], &byte, 1), 1);
}

void Other::say_arrived() const {
    const char byte = 'p';
    CHECK_EQ(write(ends_[1], &byte, 1), 1);
}

void Other::arrived() const {
    char byte = 0;
    CHECK_EQ(read(ends_[0], &byte, 1), 1);
}

void Other::next() const {
    const char byte = 'n';
    CHECK_EQ(write(ends_[0], &byte, 1), 1);
}

void Other::proceed() const {
    next();
    arrived();
}

void Other::ended() {
    int status = -1;
    CHECK_EQ(waitpid(pid_, &status, 0), pid_);
    CHECK_EQ(status, 0);
    pid_ = 0;
}

void Other::kill(int signal) {
    if (!CHECK(pid_ > 0)) // 0 would be all of this test
        return;
    ::kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
}

std::vector<std::string> warnings;

void note_warning(gcx_log_level /*level*/, const char* message, void* /*user_data*/) {
    warnings.emplace_back(message);
}

bool warned(const std::string& text) {
    return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
        return warning.find(text) != warning.npos;
    });
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

OwnedFile::OwnedFile(const fs::path& path, const std::string& bytes, off_t size)
    : path_(path), file_(open((path.string() + "-").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    CHECK_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    if (size >= 0)
        CHECK_EQ(ftruncate(file_, size), 0);
    struct flock lock{};
    lock.l_type = F_RDLCK;
    CHECK_EQ(fcntl(file_, F_OFD_SETLK, &lock), 0);
    fs::rename(path_.string() + "-", path_);
}

OwnedFile::~OwnedFile() {
    close(file_);
    unlink(path_.c_str());
}

} // namespace publish
