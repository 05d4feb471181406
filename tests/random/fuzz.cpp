// A harness for libFuzzer: the bytes of an input are the decisions of a random program, whose
// threads take turns.
#include "order.hpp"

#include <cstdlib>
#include <memory>

using namespace random_programs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    static const Cuda cuda(FUZZ_SIM_LIBRARY, Within::kPrimary);
    Program program;
    program.bytes = {{data, data + size}};
    if (run(program, [](unsigned) { return std::make_unique<Order>(cuda, OrderOptions{}); }).wrong)
        std::abort();
    return 0;
}
