#include "interpose/functions.hpp"

#include <algorithm>

// The functions by their symbols alone; what types they have is of no matter here.
#define E(base, symbol, since) extern "C" void row_##symbol() __asm__(#symbol);
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since)                                                                         \
    E(base, per_thread, since)
#define S(base, symbol, since, ...) P(base, symbol, since, symbol##_ptsz)
#define N(base, symbol, since, ...) E(base, symbol, since)
#define SE S
#define NE N
#define D(base, symbol, ...) E(base, symbol##_ptds, kPerThreadSince)
#define L D
#include "interpose/counted.inc"
#ifdef GCX_SHIM_MOVES
#include "interpose/entry_points.inc"
#include "interpose/moved.inc"
#endif
#undef E
#undef P
#undef S
#undef D

namespace gcx::shim {
namespace {

// Which driver had the first functions with a default stream for each thread.
[[maybe_unused]] constexpr int kPerThreadSince = 7000;

} // namespace

const Changed kChanged[] = {
#define E(base, symbol, since) {#base, #symbol, since, false, &row_##symbol},
#define P(base, symbol, since, per_thread)                                                         \
    E(base, symbol, since){#base, #per_thread, since, true, &row_##per_thread},
#define S(base, symbol, since, ...)                                                                \
    E(base, symbol, since){#base, #symbol "_ptsz", std::max(since, kPerThreadSince), true,         \
                           &row_##symbol##_ptsz},
#define D(base, symbol, ...) {#base, #symbol "_ptds", kPerThreadSince, true, &row_##symbol##_ptds},
#include "interpose/counted.inc"
#ifdef GCX_SHIM_MOVES
#include "interpose/entry_points.inc"
#include "interpose/moved.inc"
#endif
#undef E
#undef P
#undef S
#undef N
#undef SE
#undef NE
#undef D
#undef L
};
const std::size_t kChangedCount = sizeof kChanged / sizeof kChanged[0];

} // namespace gcx::shim
