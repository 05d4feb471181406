// The command gcx: runs a command and prints what it returns.
#include "cli/args.hpp"
#include "cli/device.hpp"
#include "cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace gcx::cli {
namespace {

// Opens /dev/null for each closed descriptor of the first three: the next file opened would take
// its number and receive what is printed. A command that this process becomes finds it closed.
// Returns whether standard output was open.
bool open_standard_descriptors() {
    const bool open_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) == -1)
            static_cast<void>(open("/dev/null", O_RDWR | O_CLOEXEC));
    }
    return open_output;
}

class Program {
  public:
    Program(std::span<char* const> words, bool open_output)
        : words_(words), open_output_(open_output), json_(asks_for_json(words)) {}

    int run() {
        int status = 1;
        try {
            return run_command();
        } catch (const UsageError& error) {
            status = error.status;
            fail(GCX_ERROR_INVALID_VALUE, error.what());
        } catch (const Failure& failure) {
            fail(failure.result, failure.what());
        } catch (const error& error) {
            fail(error.result(), message_of(error));
        } catch (const std::bad_alloc&) {
            fail(GCX_ERROR_OUT_OF_MEMORY, "out of memory");
        } catch (const std::exception& error) {
            fail(GCX_ERROR_UNKNOWN, error.what());
        }
        return failure_status_ != 0 ? failure_status_ : status;
    }

  private:
    // Asked before the words are read, so that a mistake in them is reported in JSON as well.
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
        const Invocation invocation = parse(words_);
        const Command* const command = invocation.command;
        json_ = invocation.arguments.has("--json");
        if (command != nullptr) {
            command_ = command->name;
            failure_status_ = command->failure_status;
        }
        const bool needs_output = command == nullptr || !command->runs_another() || invocation.help;
        if (needs_output && !open_output_)
            throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                          "can't write to standard output: it is closed");
        const Report report = report_of(invocation);
        if (report.show_live)
            return report.show_live() ? 0 : 1;
        const bool printed = print(json_ ? report.json.dump() : report.text);
        for (const std::string& problem : report.problems)
            complain(problem);
        if (!report.problems.empty())
            return report.status;
        return printed ? 0 : 1;
    }

    void fail(gcx_result result, const std::string& message) const {
        complain(message);
        if (!json_ || !open_output_)
            return;
        print(Json::object()
                  .set("simulated", is_simulated())
                  .set("error", error_json(result, message))
                  .dump());
    }

    void complain(const std::string& message) const {
        std::fprintf(stderr, "gcx%s%s: %s%s\n", command_.empty() ? "" : " ", command_.c_str(),
                     is_simulated() ? "SIMULATED: " : "", visible(message).c_str());
    }

    // Returns false, with a message, if not all of the text could be written.
    bool print(const std::string& text) const {
        errno = 0;
        if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
            std::fflush(stdout) == 0)
            return true;
        complain(format("can't write to standard output: %s", std::strerror(errno)));
        return false;
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
    const bool open_output = gcx::cli::open_standard_descriptors();
    const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
    return gcx::cli::Program(words.subspan(argc > 0 ? 1 : 0), open_output).run();
}
