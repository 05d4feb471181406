// A recorded log, to be replayed: lines are produced one by one and each must be the log's next.
// Only what the list of masks names may differ.
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace sim_test {

struct Mask {
    std::regex pattern;
    std::string replacement;
};

class Facts {
  public:
    Facts(const std::string& path, std::vector<Mask> masks);

    // The next line of the log, without consuming it; "" at the end.
    const std::string& next() const;
    bool at_end() const { return at_ == lines_.size(); }

    // The simulation's line: compared with the log's next one.
    void expect(const std::string& line);

    // A line of prose that begins so, and what it states holds.
    void state(const std::string& beginning, bool holds);

    // Prints how many lines were matched, masked and checked; false if any was not.
    bool summary() const;

  private:
    std::string mask(std::string line) const;

    std::string path_;
    std::vector<std::string> lines_;
    std::vector<Mask> masks_;
    std::size_t at_ = 0;
    int matched_ = 0;
    int masked_ = 0;
    int stated_ = 0;
    int wrong_ = 0;
};

// The number after the word, in a log's line: number_after("stream create 4.1 destroy", "create ")
double number_after(const std::string& line, const std::string& word);

// Costs: within a quarter of what was measured.
void check_cost(const char* what, double measured, double simulated);

// printf into a string
__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);

} // namespace sim_test
