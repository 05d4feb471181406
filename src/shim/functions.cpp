#include "shim/functions.hpp"

// The functions by their symbols alone; what types they have is of no matter here.
#define E(base, symbol, since) extern "C" void row_##symbol() __asm__(#symbol);
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since)                                                                         \
    E(base, per_thread, since)
#include "shim/counted.inc"
#ifdef GCX_SHIM_MOVES
#include "shim/moved.inc"
#endif
#undef E
#undef P

namespace gcx::shim {

const Changed kChanged[] = {
#define E(base, symbol, since) {#base, #symbol, since, false, &row_##symbol},
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since){#base, #per_thread, since, true, &row_##per_thread},
#include "shim/counted.inc"
#ifdef GCX_SHIM_MOVES
#include "shim/moved.inc"
#endif
#undef E
#undef P
};
const std::size_t kChangedCount = sizeof kChanged / sizeof kChanged[0];

} // namespace gcx::shim
