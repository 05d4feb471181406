// Error logs. The simulation writes none. It has the two functions that a recording asks for.
#include "sim/entry/entry.hpp"

namespace gcx::sim {

GCX_SIM_API(cuLogsRegisterCallback, void (*callback)(void*, int, char*, std::size_t), void*,
            void** out) {
    GCX_SIM_BODY({
        require(callback != nullptr);
        if (out != nullptr)
            give(out, new_handle());
    });
}

GCX_SIM_API(cuLogsDumpToMemory, unsigned*, char* buffer, std::size_t* size, unsigned flags) {
    GCX_SIM_BODY({
        require(buffer != nullptr && size != nullptr && *size != 0 && flags == 0);
        *buffer = '\0';
        *size = 0;
    });
}

} // namespace gcx::sim
