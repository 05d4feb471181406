// Interprets an input as a command line: words that end with a zero byte. The command runs in this
// process, starts no program, and writes into a temporary folder.

#include "bytes.hpp"
#include "harness.hpp"

#define main gcx_main
#include "cli/main.cpp"
#undef main

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using fuzz::must;

// Replace the C library's functions, so that gcx sim run and gcx exec start nothing.
extern "C" int execv(const char* path, char* const* arguments) {
    must(arguments[0] != nullptr, "a command without a name");
    errno = access(path, X_OK) == 0 ? ENOEXEC : ENOENT;
    return -1;
}

extern "C" int execvp(const char* file, char* const* arguments) {
    return execv(file, arguments);
}

namespace {

constexpr std::size_t kMaxWords = 32;

// Removes folders from names, and limits rounds to one digit.
std::string harmless(std::string word, const std::string& before) {
    std::erase(word, '/');
    const bool rounds = before == "--rounds" || word.starts_with("--rounds=");
    const std::size_t begin = word.find('=') + 1; // 0 if there is none
    if (rounds && word.size() > begin + 1 && word[begin] >= '0' && word[begin] <= '9')
        word.resize(begin + 1);
    return word;
}

std::vector<std::string> words_of(const uint8_t* data, std::size_t size) {
    std::vector<std::string> words = {"gcx"};
    std::string word;
    for (std::size_t i = 0; i <= size && words.size() < kMaxWords; i++) {
        if (i < size && data[i] != 0) {
            word += static_cast<char>(data[i]);
            continue;
        }
        words.push_back(harmless(std::move(word), words.back()));
        word.clear();
    }
    // 10,000 rounds, the default, would time the fuzzer out.
    if (words.size() > 1 && words[1] == "bench" &&
        std::find(words.begin(), words.end(), "--rounds") == words.end())
        words.insert(words.begin() + 2, {"--rounds", "3"});
    return words;
}

// Enters a new folder and makes PATH name a new one with one program, true: a word of the input must
// not find a program of this machine.
bool enter_folder() {
    const std::string files = fuzz::folder() + "/files";
    const std::string programs = fuzz::folder() + "/programs";
    if (mkdir(files.c_str(), 0700) != 0 || mkdir(programs.c_str(), 0700) != 0)
        return false;
    std::ofstream(programs + "/true") << "#!/bin/sh\n";
    return chmod((programs + "/true").c_str(), 0700) == 0 && chdir(files.c_str()) == 0 &&
           setenv("PATH", programs.c_str(), 1) == 0;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    static const bool entered = enter_folder();
    must(entered, "the folder can't be made");
    fuzz::begin_input("sim:h100@13.5");
    std::vector<std::string> words = words_of(data, size);
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const int status = gcx_main(static_cast<int>(words.size()), pointers.data());
    must((status >= 0 && status <= 2) || (status >= 125 && status <= 127), "an exit status");
    fuzz::close_library();
    return 0;
}
