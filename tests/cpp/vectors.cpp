// Runs the vectors of one file through gcx.hpp: see tests/vectors/README.md. Leaves out "twice",
// since closing twice does nothing in C++.
#include "vector.hpp"

#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace vectors;

// Runs a step; returns an empty text if it answers as expected.
std::string difference(Vector& vector, const Words& fields) {
    const std::size_t inputs = Vector::inputs(fields.at(0));
    if (fields.size() < 2 + inputs)
        throw Broken{"too few fields for " + fields[0]};
    const auto past_inputs = fields.begin() + 2 + static_cast<std::ptrdiff_t>(inputs);
    const Words in(fields.begin() + 2, past_inputs);
    const Words expected(past_inputs, fields.end());
    try {
        const Words got = vector.run(fields[0], in);
        if (fields[1] != "GCX_SUCCESS")
            return "expected " + fields[1] + ", got success";
        std::string text = "expected and got";
        for (const Words& words : {expected, got})
            for (const std::string& word : words)
                text += (&word == words.data() ? ": " : " ") + word;
        return got == expected ? "" : text;
    } catch (const gcx::error& error) {
        if (error.name() != fields[1])
            return "expected " + fields[1] + ", got " + error.what();
        for (const std::string& piece : expected.empty() ? Words() : split_at(expected[0], '|'))
            if (std::string_view(error.what()).find(piece) == std::string_view::npos)
                return "the message lacks " + piece + ": " + error.what();
        return "";
    }
}

} // namespace

int main(int argc, char** argv) {
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) {
        std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    unsigned agree = 0;
    unsigned differ = 0;
    unsigned left_out = 0;
    unsigned line_number = 0;
    std::string name;
    std::optional<Vector> vector;
    bool differs = false;
    const auto attempt = [&](const std::string& what, const std::function<std::string()>& step) {
        std::string why;
        try {
            why = step();
        } catch (const Broken& broken) {
            why = broken.why;
        } catch (const gcx::error& error) {
            why = error.what();
        }
        if (!why.empty())
            std::printf("%s:%u: %s: %s: %s\n", argv[1], line_number, name.c_str(), what.c_str(),
                        why.c_str());
        differs = differs || !why.empty();
    };
    const auto end = [&] {
        if (!vector)
            return;
        attempt("end", [&] { return vector->end(), std::string(); });
        vector.reset();
        (differs ? differ : agree)++;
    };
    for (std::string line; std::getline(file, line);) {
        line_number++;
        const Words fields = split_at(line, '\t');
        if (fields.empty() || line[0] == '#')
            continue;
        if (fields[0] == "vector") {
            end();
            name = fields.at(1);
            differs = false;
            bool twice = false;
            for (std::size_t i = 2; i < fields.size(); i++)
                twice = twice || fields[i] == "twice";
            left_out += twice;
            if (!twice)
                vector.emplace();
        } else if (vector && !differs) {
            attempt(fields[0], [&] { return difference(*vector, fields); });
        }
    }
    end();
    std::printf("%s: %u vectors agree, %u differ, %u left out\n", argv[1], agree, differ, left_out);
    return agree != 0 && differ == 0 ? 0 : 1;
}
