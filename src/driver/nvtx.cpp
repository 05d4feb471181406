#include "driver/nvtx.hpp"

#ifdef GCX_HAS_NVTX

#include <nvtx3/nvToolsExtCuda.h>
#include <sys/auxv.h>

namespace gcx::nvtx {
namespace {

// Null if no tool listens. Its first call loads the library that NVTX_INJECTION64_PATH names, which a
// program with more rights than its caller must not do.
nvtxDomainHandle_t domain() noexcept {
    static const nvtxDomainHandle_t created =
        getauxval(AT_SECURE) != 0 ? nullptr : nvtxDomainCreateA("gcx");
    return created;
}

} // namespace

bool listens() noexcept {
    return domain() != nullptr;
}

void name_stream(CUstream stream, const std::string& name) noexcept {
    nvtxNameCuStreamA(stream, name.c_str());
}

void begin_range(const std::string& text) noexcept {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain(), &attributes);
}

void end_range() noexcept {
    nvtxDomainRangePop(domain());
}

} // namespace gcx::nvtx

#endif
