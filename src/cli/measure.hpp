// Comparing two ways of doing the same, in turns within one run.
#pragma once

#include "cli/json.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gcx::cli {

// Microseconds are medians over the rounds.
struct Comparison {
    std::string name;
    uint32_t rounds = 0;
    double gcx_us = 0;
    double driver_us = 0;
    double pairwise_ratio = 0; // the median of each round's ratio, gcx / driver

    double ratio() const { return driver_us > 0 ? gcx_us / driver_us : 0; }
    Json json() const;
    std::string line() const; // of the table
    static std::string heading();
};

// Tells a person who waits what is going on; not in a log. Leaves nothing on the line at the end.
class Progress {
  public:
    Progress() = default;
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress();
    void operator()(const std::string& what) const;
};

double median(std::vector<double> values);

// One round's time in microseconds, of which only the part that counts is timed.
using Timed = std::function<double()>;

// Runs both in each round, the one first and then the other first: what warms up or slows down
// in the course of the run meets both alike.
Comparison compare(const std::string& name, uint32_t rounds, const Timed& gcx, const Timed& driver);

} // namespace gcx::cli
