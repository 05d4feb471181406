// NVTX: what gcx tells profilers. It does nothing unless a tool has attached itself to the process,
// and is not there at all if gcx was built without the headers of NVTX 3.
#pragma once

#include "driver/cuda_api.h"

#include <string>

#if !defined(GCX_NO_NVTX) && __has_include(<nvtx3/nvToolsExtCuda.h>)
#define GCX_HAS_NVTX
#endif

namespace gcx::nvtx {

#ifdef GCX_HAS_NVTX
// Returns whether a tool listens. The first call loads the one that NVTX_INJECTION64_PATH names.
bool listens() noexcept;
void name_stream(CUstream stream, const std::string& name) noexcept;
// A range of the calling thread in the domain "gcx".
void begin_range(const std::string& text) noexcept;
void end_range() noexcept;
#else
constexpr bool listens() noexcept {
    return false;
}
inline void name_stream(CUstream /*stream*/, const std::string& /*name*/) noexcept {
}
inline void begin_range(const std::string& /*text*/) noexcept {
}
inline void end_range() noexcept {
}
#endif

// A range until the end of the scope. Asks for its text only if a tool listens.
class Range {
  public:
    template <class Text>
    explicit Range(const Text& text) : open_(listens()) {
        if (open_)
            begin_range(text());
    }
    ~Range() {
        if (open_)
            end_range();
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

  private:
    const bool open_;
};

} // namespace gcx::nvtx
