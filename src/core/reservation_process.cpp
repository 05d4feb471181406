#include "core/reservation_process.hpp"

#include "base/error.hpp"
#include "base/file_text.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <memory>
#include <vector>

namespace gcx::reservations {
namespace {

enum class Keeps : uint8_t { yes, no, unknown };

std::string proc_path(int32_t pid, const char* what) {
    return "/proc/" + std::to_string(pid) + "/" + what;
}

// Names that are numbers: processes in /proc, descriptors in /proc/PID/fd. errno says why there are
// none.
std::vector<int32_t> numbers_in(const std::string& folder) {
    errno = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
    std::vector<int32_t> numbers;
    if (entries == nullptr)
        return numbers;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): on a stream of its own
    while (const dirent* const entry = readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        int32_t number = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (error == std::errc() && end == name.data() + name.size())
            numbers.push_back(number);
    }
    return numbers;
}

// A descriptor without a lock is that of a process which only looks at the file.
bool has_locked_descriptor(int32_t pid, const std::vector<int32_t>& descriptors,
                           const std::string& ending) {
    return std::any_of(descriptors.begin(), descriptors.end(), [&](int32_t number) {
        std::array<char, PATH_MAX> target{};
        const ssize_t size =
            readlink(proc_path(pid, ("fd/" + std::to_string(number)).c_str()).c_str(),
                     target.data(), target.size());
        return size > 0 &&
               std::string_view(target.data(), static_cast<std::size_t>(size)).ends_with(ending) &&
               file_text(proc_path(pid, ("fdinfo/" + std::to_string(number)).c_str()))
                       .find("\nlock:") != std::string::npos;
    });
}

// The file's name has a random number of 64 bits in it, so that its path need not be known: another
// process may see the folder elsewhere.
Keeps keeps(int32_t pid, const std::string& ending) {
    const std::vector<int32_t> descriptors = numbers_in(proc_path(pid, "fd"));
    if (descriptors.empty() && errno != 0)
        return errno == ENOENT || errno == ESRCH ? Keeps::no : Keeps::unknown;
    const bool found = has_locked_descriptor(pid, descriptors, ending) ||
                       file_text(proc_path(pid, "maps")).find(ending + "\n") != std::string::npos;
    return found ? Keeps::yes : Keeps::no;
}

// As it is called now. The kernel cuts names off, so that a longer one in the record is better.
std::string name_of(int32_t pid, const Record& record) {
    std::string name = file_text(proc_path(pid, "comm"));
    if (!name.empty() && name.back() == '\n')
        name.pop_back();
    const bool took_it = pid == record.pid;
    const std::string recorded = record.process_name;
    return name.empty() || (took_it && (record.inherit == 0 || recorded.starts_with(name)))
               ? recorded
               : name;
}

} // namespace

Process process_of(const Record& record) {
    // Only an inherited one goes on in other programs and processes as a rule, and this is looked
    // up for messages while the folder is locked.
    if (record.inherit == 0 && access(proc_path(record.pid, "").c_str(), F_OK) == 0)
        return {record.pid, record.process_name};
    const std::string ending = "/" + file_name(record);
    const Keeps taker = keeps(record.pid, ending);
    if (taker == Keeps::yes)
        return {record.pid, name_of(record.pid, record)};
    if (taker == Keeps::unknown)
        return {record.pid, record.process_name};
    std::vector<int32_t> pids = numbers_in("/proc");
    if (pids.empty())
        return {record.pid, record.process_name};
    std::sort(pids.begin(), pids.end());
    for (const int32_t pid : pids) {
        if (pid != record.pid && keeps(pid, ending) == Keeps::yes)
            return {pid, name_of(pid, record)};
    }
    return {0, record.process_name};
}

std::string describe(const Process& process) {
    return process.pid != 0
               ? format("process %d (%s)", process.pid, process.name.c_str())
               : format("a process that isn't visible here (%s)", process.name.c_str());
}

} // namespace gcx::reservations
