#include "cli/run_command.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gcx::cli {

void set_environment(const char* name, const std::string& value) {
    if (setenv(name, value.c_str(), 1) != 0)
        throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                      format("can't set %s: %s", name, std::strerror(errno)));
}

Report cannot_run(const std::string& command, int reason, bool on_simulation) {
    Report report;
    report.status = reason == ENOENT ? 127 : 126;
    report.problems.push_back(format("can't run %s: %s", command.c_str(), std::strerror(reason)));
    report.json.set("simulated", on_simulation)
        .set("error", Json::object()
                          .set("result", gcx_result_name(GCX_ERROR_OPERATING_SYSTEM))
                          .set("code", static_cast<int>(GCX_ERROR_OPERATING_SYSTEM))
                          .set("message", report.problems[0]));
    return report;
}

Report become(const std::vector<std::string>& words, bool on_simulation) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    return cannot_run(words[0], errno, on_simulation);
}

} // namespace gcx::cli
