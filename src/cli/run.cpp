#include "cli/run.hpp"

#include <elf.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace gcx::cli {
namespace {

constexpr int kInterpreters = 5;             // as many as Linux follows
constexpr std::size_t kFirstLineBytes = 256; // of a script, as many as Linux reads

// Reads at most size bytes and returns how many; 0 if the file was not opened.
std::size_t read_at(std::ifstream& file, std::size_t offset, void* bytes, std::size_t size) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
    return static_cast<std::size_t>(file.gcount());
}

template <class T>
std::optional<T> read_struct(std::ifstream& file, std::size_t offset) {
    T value{};
    return read_at(file, offset, &value, sizeof value) == sizeof value ? std::optional(value)
                                                                       : std::nullopt;
}

// Returns the file that execvp would run for this name; if there is none, the first that it would
// run if it were executable; else an empty text.
std::string found_in_path(const std::string& name) {
    if (name.find('/') != std::string::npos)
        return name;
    const char* const path = std::getenv("PATH");
    std::string unusable;
    for (const std::string& folder : split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
        std::string file = (folder.empty() ? "." : folder) + "/" + name;
        struct stat status{};
        if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        if (access(file.c_str(), X_OK) == 0)
            return file;
        if (unusable.empty())
            unusable = file;
    }
    return unusable;
}

// Whether the program gets rights that its caller lacks: its loader then ignores LD_AUDIT.
bool gains_rights(const std::string& path) {
    struct stat status{};
    struct statvfs mount{};
    if (stat(path.c_str(), &status) != 0 || statvfs(path.c_str(), &mount) != 0 ||
        (mount.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return false;
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid())
        return true;
    constexpr mode_t kSetgid = S_ISGID | S_IXGRP; // S_ISGID alone means mandatory locks
    if ((status.st_mode & kSetgid) == kSetgid && status.st_gid != getegid())
        return true;
    return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

std::optional<std::string> interpreter_of_script(std::ifstream& file) {
    std::array<char, kFirstLineBytes> bytes{};
    std::string_view line(bytes.data(), read_at(file, 0, bytes.data(), bytes.size()));
    if (!line.starts_with("#!"))
        return std::nullopt;
    line = line.substr(2, line.find('\n') == std::string_view::npos ? std::string_view::npos
                                                                    : line.find('\n') - 2);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return std::string(line.substr(0, line.find_first_of(" \t")));
}

// Whether a shell can read the file: it has no zero byte in its first line, as in bash.
bool is_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, kFirstLineBytes> bytes{};
    const std::string_view line(bytes.data(), read_at(file, 0, bytes.data(), bytes.size()));
    return file.is_open() && line.substr(0, line.find('\n')).find('\0') == std::string_view::npos;
}

// Returns an empty string if the program has none.
std::string loader_of(std::ifstream& file, const ElfW(Ehdr) & header) {
    for (std::size_t i = 0; i < header.e_phnum; i++) {
        const auto segment = read_struct<ElfW(Phdr)>(file, header.e_phoff + i * header.e_phentsize);
        if (!segment || segment->p_type != PT_INTERP)
            continue;
        std::string loader(std::min<std::size_t>(segment->p_filesz, 4096), '\0');
        loader.resize(read_at(file, segment->p_offset, loader.data(), loader.size()));
        loader.resize(std::strlen(loader.c_str()));
        return loader;
    }
    return "";
}

bool same_file(const std::string& a, const std::string& b) {
    struct stat one{};
    struct stat other{};
    return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Returns why the program's loader won't put it into the partition; empty if it will.
std::string why_not(const std::string& path, std::ifstream& file) {
    std::ifstream gcx("/proc/self/exe", std::ios::binary);
    const auto own = read_struct<ElfW(Ehdr)>(gcx, 0);
    const auto header = read_struct<ElfW(Ehdr)>(file, 0);
    if (!header || !own || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "";
    if (header->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] || header->e_machine != own->e_machine)
        return "is for another processor architecture than gcx";
    const std::string loader = loader_of(file, *header);
    // A loader itself runs the program that its first argument names.
    if (loader.empty())
        return same_file(path, loader_of(gcx, *own)) ? "" : "is statically linked";
    if (loader.find("ld-musl") != std::string::npos)
        return "uses musl, whose loader takes no auditor,";
    return "";
}

} // namespace

void set_environment(const char* name, const std::string& value) {
    if (setenv(name, value.c_str(), 1) != 0)
        throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                      format("can't set %s: %s", name, std::strerror(errno)));
}

Report cannot_run(const std::string& command, int reason, bool on_simulation) {
    const bool found = reason != ENOENT || why_not_found(command) == 0;
    Report report;
    report.status = found ? 126 : 127;
    if (command.empty())
        report.problems.emplace_back("can't run the command: its name is empty; give one after --");
    else
        report.problems.push_back(format(
            "can't run %s: %s", command.c_str(),
            found && reason == ENOENT ? "the interpreter or loader that it names does not exist"
                                      : std::strerror(reason)));
    report.json.set("simulated", on_simulation)
        .set("error", error_json(GCX_ERROR_OPERATING_SYSTEM, report.problems[0]));
    return report;
}

Report become(const std::vector<std::string>& words, bool on_simulation) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string path = found_in_path(words[0]);
    execv(path.c_str(), arguments.data());
    const int reason = errno;
    // A script without an interpreter's name is run by a shell.
    if (reason == ENOEXEC && is_text(path))
        execvp(arguments[0], arguments.data());
    return cannot_run(words[0], reason, on_simulation);
}

int why_not_found(const std::string& name) {
    const std::string path = found_in_path(name);
    if (path.empty())
        return ENOENT;
    struct stat status{};
    if (stat(path.c_str(), &status) != 0)
        return errno;
    return S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
}

ProgramKind program_kind(const std::string& name) {
    std::string path = found_in_path(name);
    std::error_code ignored;
    // Opening a pipe would wait for its other end.
    for (int i = 0; i < kInterpreters && std::filesystem::is_regular_file(path, ignored); i++) {
        std::ifstream file(path, std::ios::binary);
        if (auto interpreter = interpreter_of_script(file)) {
            path = std::move(*interpreter);
            continue;
        }
        if (gains_rights(path))
            return {ProgramKind::Reach::kNone,
                    format("%s gains privileges (setuid, setgid or capabilities)", path.c_str())};
        const std::string why = why_not(path, file);
        if (why.empty())
            break;
        return {ProgramKind::Reach::kChildren, format("%s %s", path.c_str(), why.c_str())};
    }
    return {};
}

} // namespace gcx::cli
