// The function table. Does not include cuda.h, so that it can declare all functions alike.
#include <cstddef>

namespace gcx::sim {

struct FunctionRow {
    const char* base;
    const char* symbol;
    int since;
    void (*address)();
    void (*per_thread_address)();
};
extern const FunctionRow kFunctions[];
extern const std::size_t kFunctionCount;

} // namespace gcx::sim

#define F(base, symbol, since) extern "C" void symbol();
#define P(base, symbol, since, per_thread)                                                         \
    extern "C" void symbol();                                                                      \
    extern "C" void per_thread();
#include "sim/entry/functions.inc"
#undef F
#undef P

namespace gcx::sim {

// The arguments are names of functions.
// NOLINTBEGIN(bugprone-macro-parentheses)
const FunctionRow kFunctions[] = {
#define F(base, symbol, since) {#base, #symbol, since, &symbol, nullptr},
#define P(base, symbol, since, per_thread) {#base, #symbol, since, &symbol, &per_thread},
#include "sim/entry/functions.inc"
#undef F
#undef P
};
// NOLINTEND(bugprone-macro-parentheses)
const std::size_t kFunctionCount = sizeof(kFunctions) / sizeof(kFunctions[0]);

} // namespace gcx::sim
