// Runs random CUDA programs and checks that they keep the order that plain CUDA keeps: plain or
// inside `gcx exec`, on a GPU or on the simulated driver.
//
//   random-order [--operations N] [--seed S] [--threads free|global] [--max-us U] [--driver PATH]
//                [--in-green | --in-created] [--trace] [--counts] [--failed FILE] [--replay FILE]
#include "order.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace random_programs;

struct Arguments {
    Program program;
    OrderOptions order;
    std::string driver = "libcuda.so.1";
    Within within = Within::kPrimary;
    std::string replay;
};

uint64_t number(const std::string& text) {
    char* end = nullptr;
    const uint64_t value = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0')
        throw std::runtime_error("\"" + text + "\" is no number");
    return value;
}

// Words that select a program are written to the file of a failed one.
void read_words(const std::vector<std::string>& words, Arguments& arguments) {
    Program& program = arguments.program;
    for (std::size_t i = 0; i < words.size(); i++) {
        const std::string& word = words[i];
        const auto value = [&]() -> const std::string& {
            if (++i == words.size())
                throw std::runtime_error(word + " needs a value");
            return words[i];
        };
        const std::size_t first = i;
        bool selects = true;
        if (word == "--seed")
            program.seed = number(value());
        else if (word == "--max-us")
            arguments.order.max_ns = number(value()) * 1000;
        else if (word == "--in-green")
            arguments.within = Within::kGreen;
        else if (word == "--in-created")
            arguments.within = Within::kCreated;
        else if (word == "--threads" && value() == "free")
            program.threads = Threads::kFree;
        else if (word == "--threads" && words[i] == "global")
            program.threads = Threads::kGlobal;
        else
            selects = false;
        if (selects) {
            program.words.insert(program.words.end(), words.begin() + static_cast<long>(first),
                                 words.begin() + static_cast<long>(i) + 1);
            continue;
        }
        if (word == "--operations")
            program.operations = number(value());
        else if (word == "--driver")
            arguments.driver = value();
        else if (word == "--failed")
            program.failed_file = value();
        else if (word == "--replay")
            arguments.replay = value();
        else if (word == "--trace")
            program.trace = true;
        else if (word == "--counts")
            program.counts = true;
        else
            throw std::runtime_error("unknown option " + word);
    }
}

int run(std::vector<std::string> words) {
    Arguments arguments;
    read_words(words, arguments);
    if (!arguments.replay.empty()) {
        Recording recording = read_recording(arguments.replay);
        read_words(recording.words, arguments);
        arguments.program.bytes = std::move(recording.bytes);
    }
    Program& program = arguments.program;
    if (program.failed_file.empty())
        program.failed_file = "random-order-" + std::to_string(program.seed) + ".failed";
    // Recorded: in a green context the driver refuses the thread's stream, invalidates no capture,
    // and says of each stream that it is non-blocking. What is left to find is a wrong value.
    const bool in_green = arguments.within == Within::kGreen;
    arguments.order.thread_streams = !in_green;
    arguments.order.null_ends_captures = !in_green;
    arguments.order.flags = !in_green;
    arguments.order.shared_context = program.threads == Threads::kFree;
    const Cuda cuda(arguments.driver, arguments.within);
    const Result result =
        run(program, [&](unsigned) { return std::make_unique<Order>(cuda, arguments.order); });
    std::printf("%llu operations, %u wrong\n", static_cast<unsigned long long>(result.operations),
                result.wrong);
    return result.wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "random-order: %s\n", error.what());
        return 2;
    }
}
