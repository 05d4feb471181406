// Runs random programs: decodes operations of a set from bytes, and calls them in several threads.
// A failed program is written to a file that runs it again. Knows nothing of CUDA.
#pragma once

#include "choices.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace random_programs {

// An invariant that does not hold. Operations throw it.
class Wrong : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What an operation gets.
struct Turn {
    Choices& choices;
    unsigned thread; // that calls the operation, from 0 on
    std::string noted;

    // Says in words what the operation does, for --trace and failures.
    [[gnu::format(printf, 2, 3)]] void note(const char* text, ...);
};

struct Operation {
    const char* name;
    unsigned weight;                 // all weights of a set add up to 256 at most
    std::function<bool(Turn&)> call; // false: the model allows no such operation now
};

// The operations on some objects, their model and their invariants.
class Set {
  public:
    virtual ~Set() = default;
    const std::vector<Operation>& operations() const { return operations_; }
    // Prepares a thread. Called once in each, before its first operation.
    virtual void enter(unsigned thread) = 0;
    // Ends what only this thread can end. Called in each, after the last operation of all.
    virtual void leave(unsigned thread) = 0;
    // Checks what is left to check, and destroys the objects. Called after all threads have ended.
    virtual void finish() = 0;
    // Returns lines about what the operations reached, for --counts.
    virtual std::string summary() const { return {}; }

  protected:
    std::vector<Operation> operations_;
};

enum class Threads {
    kGlobal, // one order of all operations: the threads of one set take turns
    kFree,   // each thread has a set and decisions of its own
};

struct Program {
    uint64_t operations = 10'000; // per program, not per thread
    uint64_t seed = 1;
    Threads threads = Threads::kGlobal;
    unsigned thread_count = 4;
    bool trace = false;
    bool counts = false;
    std::string failed_file; // where a failed program is written; empty: nowhere
    // The words of the command line that select the same set, for the file.
    std::vector<std::string> words;
    // The bytes of a program that was read from a file, one list for each source.
    std::vector<std::vector<uint8_t>> bytes;
};

// Creates a set for so many threads.
using MakeSet = std::function<std::unique_ptr<Set>(unsigned threads)>;

struct Result {
    uint64_t operations = 0;
    unsigned wrong = 0; // at most one for each thread
};

// Runs a program. Prints what was wrong and writes the program to its file.
Result run(const Program& program, const MakeSet& make_set);

// Reads a file that run() wrote: the words of its command line, and its bytes.
struct Recording {
    std::vector<std::string> words;
    std::vector<std::vector<uint8_t>> bytes;
};
Recording read_recording(const std::string& path);

} // namespace random_programs
