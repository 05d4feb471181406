// Records each test's error messages, because no other check notices a wrong one. UPDATE_MESSAGES=1
// records new and changed ones; review them in the diff.
#include "support.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace support {
namespace {

using Lines = std::set<std::string>;

constexpr char kMark[] = "# Generated with UPDATE_MESSAGES=1, see tests/api/messages.cpp";

// Opens the file before children exist, which append to it too.
const int noted = [] {
    char path[] = "/tmp/gcx-messages-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || unlink(path) != 0 || fcntl(file, F_SETFL, O_APPEND) != 0) {
        std::perror("a file for messages");
        std::exit(2);
    }
    return file;
}();

Lines lines_of(std::istream& text) {
    Lines lines;
    for (std::string line; std::getline(text, line);)
        lines.insert(line);
    return lines;
}

Lines noted_lines() {
    struct stat info{};
    std::string text;
    if (fstat(noted, &info) == 0)
        text.resize(static_cast<std::size_t>(info.st_size));
    CHECK_EQ(pread(noted, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    std::istringstream stream(text);
    return lines_of(stream);
}

void print_missing(const char* what, const Lines& from, const Lines& in) {
    for (const std::string& line : from)
        if (!in.contains(line))
            std::fprintf(stderr, "%s: %s\n", what, line.c_str());
}

// std::regex would take most of the tests' time.
void hide_handles(std::string& line) {
    for (std::size_t at = line.find("0x"); at != line.npos; at = line.find("0x", at + 1)) {
        const std::size_t digits = at + 2;
        const std::size_t end =
            std::min(line.find_first_not_of("0123456789abcdef", digits), line.size());
        if (end > digits)
            line.replace(digits, end - digits, "...");
    }
}

// Replaces the folders of a path, up to its last part.
void hide_folders(std::string& line) {
    for (std::size_t at = line.find('/'); at != line.npos; at = line.find('/', at)) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        const std::size_t last = line.rfind('/', end - 1);
        if (last == at)
            at++;
        else
            line.erase(at, last - at + 1);
    }
}

} // namespace

void note_message(gcx_result result) {
    std::string line = gcx_result_name(result) + std::string(" ") + gcx_last_error_message();
    for (char& c : line)
        c = c == '\n' ? ' ' : c;
    // Handles and folders differ from run to run and machine to machine.
    hide_handles(line);
    hide_folders(line);
    line += '\n';
    CHECK_EQ(write(noted, line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

int summary(const char* name) {
    const char* const folder = std::getenv("GCX_TEST_MESSAGES");
    CHECK(folder != nullptr);
    const std::string path = std::string(folder != nullptr ? folder : "") + "/" + name + ".txt";
    const Lines said = noted_lines();
    if (std::getenv("UPDATE_MESSAGES") != nullptr) {
        std::ofstream file(path);
        file << kMark << '\n';
        for (const std::string& line : said)
            file << line << '\n';
    }
    std::ifstream file(path);
    Lines recorded = lines_of(file);
    recorded.erase(kMark);
    // Under a sanitizer some tests do less.
    const bool known = std::includes(recorded.begin(), recorded.end(), said.begin(), said.end());
    if (!CHECK(known && (check::slow || said == recorded))) {
        print_missing("new message", said, recorded);
        print_missing("not said any more", recorded, said);
        std::fprintf(stderr,
                     "if that is meant: UPDATE_MESSAGES=1 meson test -C BUILD --suite api\n");
    }
    return check::summary(name);
}

} // namespace support
