#include "bytes.hpp"

#include <gcx.h>

#include <cstdio>
#include <cstdlib>

namespace fuzz {

void violated(const char* what, const char* detail) {
    std::fprintf(stderr, "violated: %s %s\n    last error of gcx: %s\n", what, detail,
                 gcx_last_error_message());
    std::abort();
}

} // namespace fuzz
