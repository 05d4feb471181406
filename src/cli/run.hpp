// Becoming another program, as env(1) does, and whether a partition can reach that program.
#pragma once

#include "cli/output.hpp"

#include <string>
#include <vector>

namespace gcx::cli {

// Throws Failure.
void set_environment(const char* name, const std::string& value);

// Becomes the command, which is looked for in PATH. Returns only if it can't be run: with exit
// status 127 if there is no such command, else 126, as shells do.
Report become(const std::vector<std::string>& words, bool on_simulation);

// Returns become's report for a command that can't be run; reason is an errno.
Report cannot_run(const std::string& command, int reason, bool on_simulation);

// Returns why execvp would not find a program of this name, ENOENT or EACCES; 0 if it finds one.
int why_not_found(const std::string& name);

// Which programs gcx exec puts into the partition. It works through the dynamic loader; some
// programs have none, or have one that takes no auditor.
struct ProgramKind {
    enum class Reach {
        kProgram,  // the program, and those that it starts
        kChildren, // only the programs that it starts
        kNone,     // neither: the system clears the environment
    };
    Reach reach = Reach::kProgram;
    std::string why; // "uv is statically linked"; empty for kProgram
};

// Looks at the file that execvp would run for this name, or at a script's interpreter. A file that
// can't be found or read is kProgram: running it reports the reason.
ProgramKind program_kind(const std::string& name);

} // namespace gcx::cli
