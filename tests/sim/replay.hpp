// Replays recorded logs: each line is of a kind, and each kind says what the simulation makes of
// it.
#pragma once

#include "support.hpp"

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace sim_test {

// A part of a line.
struct Piece {
    Piece(const char* given) : text(given) {}
    Piece(std::string given) : text(std::move(given)) {}
    Piece(CUresult result) : text(name_of(result)) {}
    template <std::integral T>
    Piece(T number) : text(std::to_string(number)) {}
    std::string text;
};
std::string line_of(std::initializer_list<Piece> pieces);
Piece cost(double simulated); // for a number of which this is within a quarter

// The simulation's line: it must be the log's next. How wide columns are is no fact, and in it
// stand {} for a number or an address, and {*184} for 184 characters, whatever they are.
void say(std::initializer_list<Piece> pieces);

// A kind of line, known by how it begins: a # there stands for a whole number. The longest
// beginning that fits counts. What it does says the line, and those that belong to it.
struct Line {
    std::string text;
    std::vector<unsigned> numbers;
};
struct Kind {
    std::string beginning;
    std::function<void(const Line&)> says;

    Kind(std::string begins, std::function<void(const Line&)> does)
        : beginning(std::move(begins)), says(std::move(does)) {}
    Kind(std::string begins, std::function<void()> does)
        : Kind(std::move(begins), [does = std::move(does)](const Line&) { does(); }) {}
};

Kind literal(const std::string& line);                                  // the same in each run
Kind states(const std::string& beginning, std::function<bool()> holds); // prose
Kind states(const std::string& beginning, std::function<bool(const Line&)> holds);

// Costs: within a quarter of what was measured.
bool is_about(double measured, double simulated);

template <class Body>
double taken_us(const Body& body) {
    const uint64_t before = clock_ns();
    body();
    return static_cast<double>(clock_ns() - before) / 1000;
}

// A recorded log, and what is simulated for it.
struct Log {
    Log() = default;
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    virtual ~Log() = default;
    virtual std::vector<Kind> kinds() = 0;
};
std::unique_ptr<Log> probe_log();
std::unique_ptr<Log> misuse_log();
std::unique_ptr<Log> clusters_log();
std::unique_ptr<Log> sets_and_graphs_log();
std::unique_ptr<Log> queues_log();

} // namespace sim_test
