// Replays recorded logs. Each line has a kind, which produces the line that the simulation yields.
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
Piece cost(double simulated); // matches a number that differs by a quarter at most

// Compares a line with the log's next one, ignoring the width of columns. In the line, {} matches a
// number or an address and {*184} matches 184 characters.
void say(std::initializer_list<Piece> pieces);

// A kind of line, identified by the longest beginning that matches, where # matches an integer. Its
// function says the line and the ones that belong to it.
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

Kind literal(const std::string& line);                                  // equal in each run
Kind states(const std::string& beginning, std::function<bool()> holds); // prose
Kind states(const std::string& beginning, std::function<bool(const Line&)> holds);

// Returns whether a simulated cost differs by a quarter of the measured one at most.
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
