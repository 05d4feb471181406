#include "runner.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>

namespace random_programs {
namespace {

constexpr char kHeader[] = "random program 1";
// A set whose model allows hardly anything ends too.
constexpr uint64_t kStepsPerOperation = 50;

// One list of decisions with its set: the only one, or that of a thread.
struct Line {
    std::unique_ptr<Source> source;
    std::unique_ptr<Choices> choices;
    std::unique_ptr<Set> set;
    std::vector<uint8_t> entries; // an operation occurs as often as its weight says
    std::vector<uint64_t> calls;  // of each operation
    uint64_t operations = 0;
    uint64_t limit = 0;
    uint64_t steps = 0;

    bool ended() const {
        return choices->ended() || operations >= limit || steps / kStepsPerOperation >= limit;
    }
};

class Run {
  public:
    Run(const Program& program, const MakeSet& make_set) : program_(program) {
        const bool free = program.threads == Threads::kFree;
        lines_.resize(free ? program.thread_count : 1);
        for (std::size_t i = 0; i < lines_.size(); i++) {
            Line& line = lines_[i];
            if (i < program.bytes.size())
                line.source = std::make_unique<Bytes>(program.bytes[i]);
            else
                line.source = std::make_unique<Generator>(program.seed * 1'000'003 + i);
            line.choices = std::make_unique<Choices>(*line.source);
            line.set = make_set(free ? 1 : program.thread_count);
            line.limit = program.bytes.empty() ? program.operations / lines_.size() : UINT64_MAX;
            const std::vector<Operation>& operations = line.set->operations();
            line.calls.resize(operations.size());
            for (std::size_t entry = 0; entry < operations.size(); entry++)
                line.entries.insert(line.entries.end(), operations[entry].weight,
                                    static_cast<uint8_t>(entry));
        }
    }

    Result run() {
        std::vector<std::thread> threads;
        for (unsigned thread = 0; thread < program_.thread_count; thread++)
            threads.emplace_back([this, thread] {
                if (program_.threads == Threads::kFree)
                    run_freely(lines_[thread]);
                else
                    take_turns(lines_[0], thread);
            });
        for (std::thread& thread : threads)
            thread.join();
        for (Line& line : lines_)
            if (!stop_)
                attempt(line, 0, "the end", [&] { line.set->finish(); });
        return report();
    }

  private:
    void run_freely(Line& line) {
        const unsigned thread = 0; // of its own set
        attempt(line, thread, "the preparation of a thread", [&] { line.set->enter(thread); });
        while (!stop_ && !line.ended())
            step(line, thread);
        if (!stop_)
            attempt(line, thread, "the end of a thread", [&] { line.set->leave(thread); });
    }

    void take_turns(Line& line, unsigned thread) {
        std::unique_lock lock(turn_);
        attempt(line, thread, "the preparation of a thread", [&] { line.set->enter(thread); });
        entered_++;
        changed_.notify_all();
        changed_.wait(lock, [&] { return entered_ == program_.thread_count; });
        for (;;) {
            changed_.wait(lock, [&] { return now_ == thread || done_; });
            if (done_)
                break;
            while (!stop_ && !line.ended() && now_ == thread) {
                step(line, thread);
                // The next operation is another thread's in a quarter of all cases.
                if (const uint8_t byte = line.choices->byte(); byte < 64)
                    now_ = byte % program_.thread_count;
            }
            if (now_ == thread)
                done_ = true;
            changed_.notify_all();
        }
        if (!stop_)
            attempt(line, thread, "the end of a thread", [&] { line.set->leave(thread); });
    }

    void step(Line& line, unsigned thread) {
        const uint8_t entry = line.choices->of(line.entries);
        if (line.choices->ended())
            return;
        const Operation& operation = line.set->operations()[entry];
        Turn turn{*line.choices, thread, {}};
        const bool right = attempt(line, thread, operation.name, [&] {
            if (!operation.call(turn))
                return;
            line.operations++;
            line.calls[entry]++;
        });
        if (!right && !turn.noted.empty())
            std::fprintf(stderr, "the operation: %s\n", turn.noted.c_str());
        if (program_.trace && !turn.noted.empty())
            std::fprintf(stderr, "%llu thread %u: %s: %s\n",
                         static_cast<unsigned long long>(line.steps), thread_of(line, thread),
                         operation.name, turn.noted.c_str());
        line.steps++;
    }

    unsigned thread_of(const Line& line, unsigned thread) const {
        return lines_.size() == 1 ? thread : static_cast<unsigned>(&line - lines_.data());
    }

    template <class Body>
    bool attempt(const Line& line, unsigned thread, const char* operation, const Body& body) {
        try {
            body();
            return true;
        } catch (const Wrong& wrong) {
            const std::lock_guard lock(wrong_);
            stop_ = true;
            wrongs_++;
            std::fprintf(stderr, "wrong: seed %llu, thread %u, step %llu, %s: %s\n",
                         static_cast<unsigned long long>(program_.seed), thread_of(line, thread),
                         static_cast<unsigned long long>(line.steps), operation, wrong.what());
            return false;
        }
    }

    Result report() const {
        if (program_.counts)
            print_counts();
        if (wrongs_ != 0 && !program_.failed_file.empty())
            write_recording();
        Result result{0, wrongs_};
        for (const Line& line : lines_)
            result.operations += line.operations;
        return result;
    }

    void print_counts() const {
        const std::vector<Operation>& operations = lines_[0].set->operations();
        for (std::size_t entry = 0; entry < operations.size(); entry++) {
            uint64_t calls = 0;
            for (const Line& line : lines_)
                calls += line.calls[entry];
            std::printf("%10llu %s\n", static_cast<unsigned long long>(calls),
                        operations[entry].name);
        }
        for (const Line& line : lines_)
            std::printf("%s", line.set->summary().c_str());
    }

    void write_recording() const {
        std::ofstream file(program_.failed_file, std::ios::binary);
        file << kHeader << "\n";
        for (const std::string& word : program_.words)
            file << word << "\n";
        for (const Line& line : lines_) {
            const std::vector<uint8_t>& made = line.choices->made();
            file << "bytes " << made.size() << "\n";
            file.write(reinterpret_cast<const char*>(made.data()),
                       static_cast<std::streamsize>(made.size()));
            file << "\n";
        }
        file.close();
        std::fprintf(stderr, "%s %s\n",
                     file ? "run it again with --replay" : "can't write the program to",
                     program_.failed_file.c_str());
    }

    const Program& program_;
    std::vector<Line> lines_;
    std::mutex wrong_;
    std::atomic<bool> stop_ = false;
    unsigned wrongs_ = 0;

    // Of threads that take turns.
    std::mutex turn_;
    std::condition_variable changed_;
    unsigned entered_ = 0;
    unsigned now_ = 0;
    bool done_ = false;
};

} // namespace

void Turn::note(const char* text, ...) {
    char line[400];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    noted += noted.empty() ? "" : "; ";
    noted += line;
}

Result run(const Program& program, const MakeSet& make_set) {
    return Run(program, make_set).run();
}

Recording read_recording(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Recording recording;
    std::string line;
    if (!std::getline(file, line) || line != kHeader)
        throw std::runtime_error(path + " is no recorded program");
    while (std::getline(file, line)) {
        if (!line.starts_with("bytes ")) {
            recording.words.push_back(line);
            continue;
        }
        std::vector<uint8_t>& bytes = recording.bytes.emplace_back();
        // The size is read in parts, so that a damaged one costs no memory.
        for (uint64_t left = std::strtoull(line.c_str() + 6, nullptr, 10); left > 0;) {
            char part[4096];
            const auto size = static_cast<std::streamsize>(std::min<uint64_t>(left, sizeof part));
            if (!file.read(part, size))
                throw std::runtime_error(path + " is incomplete");
            bytes.insert(bytes.end(), part, part + size);
            left -= static_cast<uint64_t>(size);
        }
        std::getline(file, line);
    }
    if (recording.bytes.empty())
        throw std::runtime_error(path + " has no bytes");
    return recording;
}

} // namespace random_programs
