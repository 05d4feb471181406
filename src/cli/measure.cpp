#include "cli/measure.hpp"

#include "cli/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gcx::cli {
namespace {

void print_progress(const std::string& text) {
    if (isatty(STDERR_FILENO) != 0)
        std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

} // namespace

Progress::~Progress() {
    print_progress("");
}

void Progress::operator()(const std::string& what) const {
    print_progress("measuring: " + what);
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0)
        return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Comparison compare(const std::string& name, uint32_t rounds, const Timed& gcx,
                   const Timed& driver) {
    std::vector<double> gcx_times;
    std::vector<double> driver_times;
    std::vector<double> ratios;
    for (uint32_t round = 0; round < rounds; round++) {
        const bool gcx_first = round % 2 == 0;
        if (gcx_first)
            gcx_times.push_back(gcx());
        driver_times.push_back(driver());
        if (!gcx_first)
            gcx_times.push_back(gcx());
        if (driver_times.back() > 0)
            ratios.push_back(gcx_times.back() / driver_times.back());
    }
    Comparison result;
    result.name = name;
    result.rounds = rounds;
    result.gcx_us = median(gcx_times);
    result.driver_us = median(driver_times);
    result.pairwise_ratio = ratios.empty() ? 0 : median(ratios);
    return result;
}

Json Comparison::json() const {
    return Json::object()
        .set("name", name)
        .set("rounds", rounds)
        .set("gcx_us", gcx_us)
        .set("driver_us", driver_us)
        .set("ratio", ratio())
        .set("pairwise_ratio", pairwise_ratio);
}

std::string Comparison::heading() {
    return "                                        gcx us    driver us  gcx / driver   rounds\n";
}

std::string Comparison::line() const {
    return format("%-34s %11.3f  %11.3f  %12.5f  %7u\n", name.c_str(), gcx_us, driver_us, ratio(),
                  rounds);
}

} // namespace gcx::cli
