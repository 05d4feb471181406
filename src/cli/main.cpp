// The command gcx: runs what was asked for, prints what it reports, and says how it went.
#include "cli/args.hpp"
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace gcx::cli {
namespace {

// Where a descriptor of the first three is closed, the next file opened would take its place, and
// what is meant for the terminal would end up in it. A command that this one becomes finds it
// closed as before. Returns whether standard output was open.
bool hold_standard_descriptors() {
    const bool open_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) == -1)
            static_cast<void>(open("/dev/null", O_RDWR | O_CLOEXEC));
    }
    return open_output;
}

void complain(const std::string& command, const std::string& message) {
    std::fprintf(stderr, "gcx%s%s: %s%s\n", command.empty() ? "" : " ", command.c_str(),
                 is_simulated() ? "SIMULATED: " : "", visible(message).c_str());
}

// False, with a message, if not all of it could be written.
bool print(const std::string& command, const std::string& text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
        return true;
    complain(command, format("can't write to standard output: %s", std::strerror(errno)));
    return false;
}

class Program {
  public:
    Program(std::span<char* const> words, bool open_output)
        : words_(words), open_output_(open_output), json_(asks_for_json(words)) {}

    int run() {
        try {
            return run_command();
        } catch (const UsageError& error) {
            fail(GCX_ERROR_INVALID_VALUE, error.what());
            return failure_status_ != 0 ? failure_status_ : error.status;
        } catch (const Failure& failure) {
            fail(failure.result, failure.what());
        } catch (const std::bad_alloc&) {
            fail(GCX_ERROR_OUT_OF_MEMORY, "this machine's memory is exhausted");
        } catch (const std::exception& error) {
            fail(GCX_ERROR_UNKNOWN, error.what());
        }
        return failure_status_ != 0 ? failure_status_ : 1;
    }

  private:
    // Before the words are understood: a mistake in them is reported in JSON as well.
    static bool asks_for_json(std::span<char* const> words) {
        for (const std::string_view word : words) {
            if (word == "--")
                return false;
            if (word == "--json")
                return true;
        }
        return false;
    }

    int run_command() {
        const Invocation invocation = parse(commands, words_);
        json_ = invocation.arguments.has("--json");
        if (invocation.command != nullptr) {
            command_ = invocation.command->name;
            failure_status_ = invocation.command->failure_status;
        }
        // The output of another program is its own affair.
        const bool runs_another =
            invocation.command != nullptr && invocation.command->operands.starts_with("--");
        const bool needs_output = !runs_another || invocation.help;
        if (needs_output && !open_output_)
            throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                          "can't write to standard output: it is closed");
        const Report report = report_of(invocation);
        if (report.live)
            return show_live(*report.live) ? 0 : 1;
        const bool printed = print(command_, json_ ? report.json.dump() : report.text);
        for (const std::string& problem : report.problems)
            complain(command_, problem);
        if (!report.problems.empty())
            return report.status;
        return printed ? 0 : 1;
    }

    static Report report_of(const Invocation& invocation) {
        if (invocation.version)
            return version_report();
        if (invocation.command == nullptr) {
            if (!invocation.help)
                throw UsageError("there is no command; gcx help lists them, e.g. gcx info");
            return overview_report();
        }
        if (invocation.help)
            return help_report(*invocation.command);
        return invocation.command->run(invocation.arguments);
    }

    void fail(gcx_result result, const std::string& message) const {
        complain(command_, message);
        if (!json_ || !open_output_)
            return;
        Json json = Json::object();
        json.set("simulated", is_simulated())
            .set("error", Json::object()
                              .set("result", gcx_result_name(result))
                              .set("code", static_cast<int>(result))
                              .set("message", message));
        print(command_, json.dump());
    }

    std::span<char* const> words_;
    bool open_output_;
    bool json_;
    std::string command_;
    int failure_status_ = 0;
};

} // namespace
} // namespace gcx::cli

int main(int argc, char** argv) {
    const bool open_output = gcx::cli::hold_standard_descriptors();
    const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
    return gcx::cli::Program(words.subspan(argc > 0 ? 1 : 0), open_output).run();
}
