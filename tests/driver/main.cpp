// Asks the driver how it behaves, one line for each check.
//
//     driver-conformance [NAME...]                 prints "name: answer"
//     driver-conformance --record FILE             writes the lines of all checks
//     driver-conformance --compare FILE [--except FILE]...
//                                                  prints the lines that differ from a record
//     driver-conformance --list                    prints the names
//
// A list for --except has lines "name: reason"; a name that ends in * stands for all that begin so.
// Comparing fails if a line differs that is not listed, or if one that is listed does not differ.
// --jobs N prepares N processes at a time (8). --driver PATH asks another library than libcuda.so.1.
// --slow-ms MS is how long slow work takes (5).
#include "driver.hpp"
#include "runner.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <set>

namespace {

using namespace conformance;
using Lines = std::map<std::string, std::string>;

struct Options {
    std::vector<std::string> names;
    std::string record;
    std::string compare;
    std::vector<std::string> except;
    std::size_t jobs = 8;
    bool list = false;
};

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "driver-conformance: %s\n", message.c_str());
    std::exit(2);
}

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        const auto value = [&]() -> std::string {
            if (++i == argc)
                fail(word + " needs a value");
            return argv[i];
        };
        if (word == "--record")
            options.record = value();
        else if (word == "--compare")
            options.compare = value();
        else if (word == "--except")
            options.except.push_back(value());
        else if (word == "--driver")
            setenv(kLibraryVariable, value().c_str(), 1);
        else if (word == "--slow-ms")
            setenv(kSlowVariable, value().c_str(), 1);
        else if (word == "--jobs")
            options.jobs = std::max<std::size_t>(1, std::strtoul(value().c_str(), nullptr, 10));
        else if (word == "--list")
            options.list = true;
        else if (word.starts_with("--"))
            fail("unknown option " + word);
        else
            options.names.push_back(word);
    }
    return options;
}

// Reads lines "name: text". Lines that are empty or begin with # are skipped.
Lines read_lines(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        fail("cannot read " + path);
    Lines lines;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#')
            continue;
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos)
            fail(path + ": no \"name: text\": " + line);
        if (!lines.emplace(line.substr(0, colon), line.substr(colon + 2)).second)
            fail(path + ": twice: " + line);
    }
    return lines;
}

// The checks that may differ from a record.
class Exceptions {
  public:
    void read(const std::string& path) {
        for (const auto& [name, reason] : read_lines(path))
            entries_[name].reason = reason;
    }
    bool has(const std::string& name) {
        bool found = false;
        for (auto& [pattern, entry] : entries_)
            if (pattern == name ||
                (pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1))))
                found = entry.used = true;
        return found;
    }
    Lines unused() const {
        Lines lines;
        for (const auto& [name, entry] : entries_)
            if (!entry.used)
                lines.emplace(name, entry.reason);
        return lines;
    }

  private:
    struct Entry {
        std::string reason;
        bool used = false;
    };
    std::map<std::string, Entry> entries_;
};

std::vector<const Check*> select(const Checks& checks, const std::vector<std::string>& names) {
    std::set<std::string> wanted(names.begin(), names.end());
    std::vector<const Check*> selected;
    for (const Check& check : checks.all())
        if (names.empty() || wanted.erase(check.name) != 0)
            selected.push_back(&check);
    if (!wanted.empty())
        fail("no such check: " + *wanted.begin());
    return selected;
}

std::string driver_release() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string word;
    while (file >> word)
        if (word.find('.') != std::string::npos && std::strchr("0123456789", word[0]) != nullptr)
            return word + ", ";
    return "";
}

int write_record(const std::string& path, const std::vector<const Check*>& checks,
                 std::size_t jobs) {
    std::ofstream file(path);
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    std::string gpu_name;
    std::string version;
    run_checks({&name_of_gpu, &version_of_driver}, 2,
               [&](const Check& check, const std::string& answer) {
                   (&check == &name_of_gpu ? gpu_name : version) = answer;
               });
    file << "# GPU: " << gpu_name << "\n# driver: " << driver_release() << version
         << "\n# date: " << date << '\n';
    run_checks(checks, jobs, [&](const Check& check, const std::string& answer) {
        file << check.name << ": " << answer << '\n' << std::flush;
    });
    return file ? 0 : 1;
}

int compare(const Options& options, const std::vector<const Check*>& checks) {
    Lines recorded = read_lines(options.compare);
    Exceptions listed;
    for (const std::string& path : options.except)
        listed.read(path);
    unsigned agree = 0;
    unsigned excepted = 0;
    unsigned differ = 0;
    const auto report = [&](const std::string& name, const char* what, const std::string& answer,
                            const std::string& before) {
        std::printf("%s: %s\n    now:      %s\n    recorded: %s\n", name.c_str(), what,
                    answer.c_str(), before.c_str());
        std::fflush(stdout);
        differ++;
    };
    run_checks(checks, options.jobs, [&](const Check& check, const std::string& answer) {
        const auto found = recorded.find(check.name);
        const std::string before = found == recorded.end() ? "(no line)" : found->second;
        const bool same = answer == before;
        const bool is_listed = listed.has(check.name);
        if (same && is_listed)
            report(check.name, "listed, but does not differ", answer, before);
        else if (!same && !is_listed)
            report(check.name, "differs", answer, before);
        else
            ++(same ? agree : excepted);
        recorded.erase(check.name);
    });
    if (options.names.empty()) {
        for (const auto& [name, before] : recorded)
            report(name, "recorded, but there is no such check", "(no line)", before);
        for (const auto& [name, reason] : listed.unused())
            report(name, "listed, but there is no such check", "(no line)", reason);
    }
    std::printf("%u checks agree, %u listed, %u differ\n", agree, excepted, differ);
    return differ == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    Checks checks;
    add_first_calls(checks);
    add_order(checks);
    add_copies(checks);
    add_streams(checks);
    add_captures(checks);
    add_memory(checks);
    add_contexts(checks);
    add_graphs(checks);
    add_faults(checks);
    add_own_contexts(checks);
    add_batches(checks);
    add_ipc(checks);
    add_full_streams(checks);
    if (is_child(argc, argv))
        run_child(checks, argc, argv);
    if (argc == 3 && std::strcmp(argv[1], "--exit") == 0)
        exit_as(argv[2]);
    if (argc == 2 && std::strcmp(argv[1], "--ipc") == 0)
        answer_ipc();
    const Options options = read_options(argc, argv);
    const std::vector<const Check*> selected = select(checks, options.names);
    if (options.list) {
        for (const Check* check : selected)
            std::printf("%s\n", check->name.c_str());
        return 0;
    }
    if (!options.record.empty())
        return write_record(options.record, selected, options.jobs);
    if (!options.compare.empty())
        return compare(options, selected);
    run_checks(selected, options.jobs, [](const Check& check, const std::string& answer) {
        std::printf("%s: %s\n", check.name.c_str(), answer.c_str());
        std::fflush(stdout);
    });
    return 0;
}
