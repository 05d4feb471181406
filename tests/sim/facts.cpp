#include "facts.hpp"
#include "check.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace sim_test {

Facts::Facts(const std::string& path, std::vector<Mask> masks)
    : path_(path), masks_(std::move(masks)) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        lines_.push_back(line);
    CHECK(!lines_.empty());
}

const std::string& Facts::next() const {
    static const std::string none;
    return at_end() ? none : lines_[at_];
}

std::string Facts::mask(std::string line) const {
    // How wide columns are is no fact.
    line = std::regex_replace(line, std::regex(" +"), " ");
    line = std::regex_replace(line, std::regex(" $"), "");
    for (const Mask& mask : masks_)
        line = std::regex_replace(line, mask.pattern, mask.replacement);
    return line;
}

void Facts::expect(const std::string& line) {
    if (at_end()) {
        wrong_++;
        std::fprintf(stderr, "%s: the log ends before \"%s\"\n", path_.c_str(), line.c_str());
        return;
    }
    const std::string& logged = lines_[at_++];
    const std::string masked = mask(logged);
    if (masked == mask(line)) {
        const std::string plain = std::regex_replace(
            std::regex_replace(logged, std::regex(" +"), " "), std::regex(" $"), "");
        (masked == plain ? matched_ : masked_)++;
        return;
    }
    wrong_++;
    std::fprintf(stderr, "%s:%zu:\n  logged    %s\n  simulated %s\n", path_.c_str(), at_,
                 logged.c_str(), line.c_str());
}

void Facts::state(const std::string& beginning, bool holds) {
    const bool here = next().starts_with(beginning);
    if (here)
        at_++;
    if (here && holds) {
        stated_++;
        return;
    }
    wrong_++;
    std::fprintf(stderr, "%s:%zu: %s: \"%s\"\n", path_.c_str(), at_,
                 here ? "does not hold" : "is not the log's line", beginning.c_str());
}

bool Facts::summary() const {
    std::printf("%s: %d lines equal, %d equal but for masks, %d stated and checked, %zu in all\n",
                path_.c_str(), matched_, masked_, stated_, lines_.size());
    const bool all = static_cast<std::size_t>(matched_) + static_cast<std::size_t>(masked_) +
                         static_cast<std::size_t>(stated_) ==
                     lines_.size();
    CHECK(at_end());
    CHECK(all);
    CHECK_EQ(wrong_, 0);
    return all && wrong_ == 0;
}

double number_after(const std::string& line, const std::string& word) {
    const auto at = line.find(word);
    return at == std::string::npos ? -1 : std::strtod(line.c_str() + at + word.size(), nullptr);
}

void check_cost(const char* what, double measured, double simulated) {
    if (!CHECK(std::abs(simulated - measured) <= measured / 4))
        std::fprintf(stderr, "  %s: measured %g, simulated %g\n", what, measured, simulated);
}

std::string format(const char* pattern, ...) {
    char buffer[2048];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
    va_end(arguments);
    return buffer;
}

} // namespace sim_test
