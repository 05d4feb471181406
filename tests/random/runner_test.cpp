// The runner of random programs, with a set of operations that needs no GPU.
#include "runner.hpp"

#include "check.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

using namespace random_programs;

namespace {

// What sets did, over all of them.
struct Log {
    std::vector<std::pair<unsigned, unsigned>> steps; // the thread and the decision of each
    std::atomic<int> inside = 0;
    std::atomic<bool> overlapped = false;
    std::atomic<unsigned> sets = 0;
    std::atomic<unsigned> entered = 0;
    std::atomic<unsigned> left = 0;
    std::atomic<unsigned> finished = 0;
};

constexpr unsigned kNever = 256;

class Decisions : public Set {
  public:
    // The decision `wrong` is one that does not hold, and `refused` one that is not allowed.
    Decisions(Log& log, unsigned wrong, unsigned refused, bool keep) : log_(log) {
        log.sets++;
        operations_.push_back({"decide", 3, [this, wrong, refused, keep](Turn& turn) {
                                   log_.overlapped = log_.overlapped || log_.inside++ != 0;
                                   const unsigned decision = turn.choices.byte();
                                   if (keep)
                                       log_.steps.emplace_back(turn.thread, decision);
                                   log_.inside--;
                                   if (decision == wrong)
                                       throw Wrong("the wrong decision");
                                   return decision != refused;
                               }});
        operations_.push_back({"do nothing", 1, [](Turn&) { return true; }});
    }
    void enter(unsigned) override { log_.entered++; }
    void leave(unsigned) override { log_.left++; }
    void finish() override { log_.finished++; }

  private:
    Log& log_;
};

Result run_decisions(const Program& program, Log& log, unsigned wrong = kNever,
                     unsigned refused = kNever) {
    const bool keep = program.threads == Threads::kGlobal;
    return run(program,
               [&](unsigned) { return std::make_unique<Decisions>(log, wrong, refused, keep); });
}

std::string file_name() {
    return "random-runner-" + std::to_string(getpid()) + ".failed";
}

void seed_decides_program() {
    Program program;
    program.operations = 500;
    Log first;
    Log same;
    Log other;
    CHECK_EQ(run_decisions(program, first).operations, 500U);
    run_decisions(program, same);
    program.seed = 2;
    run_decisions(program, other);
    CHECK(first.steps == same.steps);
    CHECK(first.steps != other.steps);
}

void threads_take_turns() {
    Program program;
    Log log;
    CHECK_EQ(run_decisions(program, log).wrong, 0U);
    std::set<unsigned> threads;
    for (const auto& [thread, decision] : log.steps)
        threads.insert(thread);
    CHECK_EQ(threads.size(), 4U);
    CHECK(!log.overlapped);
    CHECK_EQ(log.sets, 1U);
    CHECK_EQ(log.entered, 4U);
    CHECK_EQ(log.left, 4U);
    CHECK_EQ(log.finished, 1U);
}

void free_threads_have_own_sets() {
    Program program;
    program.threads = Threads::kFree;
    Log log;
    CHECK_EQ(run_decisions(program, log).operations, 10'000U);
    CHECK_EQ(log.sets, 4U);
    CHECK_EQ(log.entered, 4U);
    CHECK_EQ(log.left, 4U);
    CHECK_EQ(log.finished, 4U);
}

void refused_operations_do_not_count() {
    Program program;
    program.operations = 2000;
    Log log;
    CHECK_EQ(run_decisions(program, log, kNever, 7).operations, 2000U);
    Log all;
    run_decisions(program, all);
    CHECK(log.steps.size() > all.steps.size());
}

void failed_program_runs_again_from_its_file() {
    Program program;
    program.failed_file = file_name();
    program.words = {"--some", "word"};
    Log log;
    CHECK_EQ(run_decisions(program, log, 77).wrong, 1U);
    CHECK_EQ(log.finished, 0U);
    const Recording recording = read_recording(program.failed_file);
    CHECK(recording.words == program.words);
    program.bytes = recording.bytes;
    Log again;
    CHECK_EQ(run_decisions(program, again, 77).wrong, 1U);
    CHECK(log.steps == again.steps);
    // The bytes end where the program failed.
    Log right;
    CHECK_EQ(run_decisions(program, right).wrong, 0U);
    CHECK(log.steps == right.steps);
    unlink(program.failed_file.c_str());
}

void failed_threads_run_again_from_their_file() {
    Program program;
    program.threads = Threads::kFree;
    program.failed_file = file_name();
    Log log;
    CHECK(run_decisions(program, log, 77).wrong >= 1);
    program.bytes = read_recording(program.failed_file).bytes;
    CHECK_EQ(program.bytes.size(), 4U);
    Log again;
    CHECK(run_decisions(program, again, 77).wrong >= 1);
    unlink(program.failed_file.c_str());
}

bool is_refused(const std::string& content) {
    std::ofstream(file_name(), std::ios::binary) << content;
    bool refused = false;
    try {
        read_recording(file_name());
    } catch (const std::runtime_error&) {
        refused = true;
    }
    unlink(file_name().c_str());
    return refused;
}

void damaged_recording_is_refused() {
    CHECK(!is_refused("random program 1\nbytes 3\nabc\n"));
    CHECK(is_refused(""));
    CHECK(is_refused("something else\nbytes 3\nabc\n"));
    CHECK(is_refused("random program 1\n--seed\n1\n"));
    CHECK(is_refused("random program 1\nbytes 4\nabc"));
    CHECK(is_refused("random program 1\nbytes 18446744073709551615\nabc\n"));
}

} // namespace

int main() {
    seed_decides_program();
    threads_take_turns();
    free_threads_have_own_sets();
    refused_operations_do_not_count();
    failed_program_runs_again_from_its_file();
    failed_threads_run_again_from_their_file();
    damaged_recording_is_refused();
    return check::summary("runner of random programs");
}
