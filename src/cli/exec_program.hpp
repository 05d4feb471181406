// Whether a program can be in a partition, by what its file is: `gcx exec` speaks to programs by
// their dynamic loader, and some have none or have one that may not listen.
#pragma once

#include <string>

namespace gcx::cli {

struct ProgramKind {
    enum class Reach {
        kProgram,  // it, and what it starts
        kChildren, // what it starts, not itself
        kNobody,   // neither: the system takes the environment away
    };
    Reach reach = Reach::kProgram;
    std::string why; // "uv is statically linked"; empty for kProgram
};

// Why execvp would not find a program of this name: ENOENT or EACCES. 0 if it finds one.
int why_not_found(const std::string& name);

// Of the file that execvp would run for this name; of a script's interpreter. What can't be found
// or read is kProgram: running it tells.
ProgramKind program_kind(const std::string& name);

} // namespace gcx::cli
