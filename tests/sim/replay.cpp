// replay NAME GPU LOG LINES: replays LOG on a simulated GPU and checks that it has LINES lines,
// each of a known kind.
#include "replay.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

namespace sim_test {
namespace {

std::string squeezed(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c != ' ' || out.empty() || out.back() != ' ')
            out += c;
    if (!out.empty() && out.back() == ' ')
        out.pop_back();
    return out;
}

// Returns how many characters of the log a placeholder in braces matches, or npos.
std::size_t measure(const std::string& braced, const std::string& logged) {
    if (braced.starts_with('*'))
        return std::strtoul(braced.c_str() + 1, nullptr, 10);
    const std::size_t length =
        std::min(logged.find_first_not_of("0123456789abcdefx."), logged.size());
    const bool right = braced.empty() || is_about(std::strtod(logged.c_str(), nullptr),
                                                  std::strtod(braced.c_str(), nullptr));
    return length > 0 && right ? length : std::string::npos;
}

bool equal(const std::string& simulated, const std::string& logged) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < simulated.size(); i++) {
        if (simulated[i] == '{') {
            const std::size_t end = simulated.find('}', i);
            const std::size_t length =
                measure(simulated.substr(i + 1, end - i - 1), logged.substr(at));
            if (length > logged.size() - at)
                return false;
            at += length;
            i = end;
        } else if (at == logged.size() || simulated[i] != logged[at]) {
            return false;
        } else {
            at++;
        }
    }
    return at == logged.size();
}

bool fits(const Kind& kind, Line& line) {
    const char* at = line.text.c_str();
    line.numbers.clear();
    for (const char c : kind.beginning) {
        if (c == '#') {
            char* end = nullptr;
            line.numbers.push_back(static_cast<unsigned>(std::strtoul(at, &end, 10)));
            if (end == at)
                return false;
            at = end;
        } else if (*at++ != c) {
            return false;
        }
    }
    return true;
}

struct Replay {
    std::vector<std::string> lines;
    std::size_t at = 0;
    std::size_t equal = 0;
    std::size_t braced = 0;
    std::size_t stated = 0;

    std::string next() const { return at < lines.size() ? lines[at] : "(the log's end)"; }

    void count(std::size_t& counter, bool right, const std::string& simulated) {
        check::that(right, "line", static_cast<int>(at) + 1,
                    "\n  logged    " + next() + "\n  simulated " + simulated);
        counter += right ? 1 : 0;
        at++;
    }
} g_replay;

void run(const std::vector<Kind>& kinds) {
    std::set<std::string> used;
    while (g_replay.at < g_replay.lines.size()) {
        const std::size_t before = g_replay.at;
        Line line{g_replay.next(), {}};
        const Kind* best = nullptr;
        for (const Kind& kind : kinds)
            if ((best == nullptr || kind.beginning.size() > best->beginning.size()) &&
                fits(kind, line))
                best = &kind;
        if (best != nullptr && fits(*best, line)) {
            used.insert(best->beginning);
            best->says(line);
        }
        if (g_replay.at == before)
            g_replay.count(g_replay.equal, false, "says nothing of this kind");
    }
    for (const Kind& kind : kinds) // the log must contain every kind
        if (!CHECK(used.contains(kind.beginning)))
            std::fprintf(stderr, "  no line begins \"%s\"\n", kind.beginning.c_str());
}

} // namespace

std::string line_of(std::initializer_list<Piece> pieces) {
    std::string line;
    for (const Piece& piece : pieces)
        line += piece.text;
    return line;
}

Piece cost(double simulated) {
    return "{" + std::to_string(simulated) + "}";
}

bool is_about(double measured, double simulated) {
    const bool holds = std::abs(simulated - measured) <= measured / 4;
    if (!holds)
        std::fprintf(stderr, "  measured %g, simulated %g\n", measured, simulated);
    return holds;
}

void say(std::initializer_list<Piece> pieces) {
    const std::string line = line_of(pieces);
    const bool has_braces = line.find('{') != std::string::npos;
    g_replay.count(has_braces ? g_replay.braced : g_replay.equal,
                   equal(squeezed(line), squeezed(g_replay.next())), line);
}

Kind literal(const std::string& line) {
    return {line, [line] { say({line}); }};
}

Kind states(const std::string& beginning, std::function<bool(const Line&)> holds) {
    return {beginning, [holds = std::move(holds)](const Line& line) {
                const bool right = holds(line);
                g_replay.count(g_replay.stated, right, "does not hold");
            }};
}

Kind states(const std::string& beginning, std::function<bool()> holds) {
    return states(beginning, [holds = std::move(holds)](const Line&) { return holds(); });
}

} // namespace sim_test

int main(int argc, char** argv) {
    using namespace sim_test;
    const std::map<std::string, std::unique_ptr<Log> (*)()> logs = {
        {"probe", probe_log},
        {"misuse", misuse_log},
        {"clusters", clusters_log},
        {"sets_and_graphs", sets_and_graphs_log},
        {"queues", queues_log}};
    if (argc != 5 || !logs.contains(argv[1]))
        return 2;
    CHECK_EQ(gcx_sim_configure(argv[2]), 0);
    std::ifstream file(argv[3]);
    for (std::string line; std::getline(file, line);)
        g_replay.lines.push_back(line);
    const std::unique_ptr<Log> log = logs.at(argv[1])();
    run(log->kinds());
    const std::size_t lines = std::strtoul(argv[4], nullptr, 10);
    std::printf("%zu lines equal, %zu equal but for braces, %zu stated and checked, %zu in all\n",
                g_replay.equal, g_replay.braced, g_replay.stated, g_replay.lines.size());
    CHECK_EQ(g_replay.lines.size(), lines);
    CHECK_EQ(g_replay.equal + g_replay.braced + g_replay.stated, lines);
    return check::summary(argv[1]);
}
