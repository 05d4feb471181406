// Error logs. The simulation writes none: the functions exist, and there is never anything to read.
#include "sim/edge/entry.hpp"

#include <cstdio>

namespace gcx::sim {

GCX_SIM_API(cuLogsRegisterCallback, void (*callback)(void*, int, char*, std::size_t), void*,
            void** out) {
    GCX_SIM_BODY({
        require(callback != nullptr);
        if (out != nullptr)
            give(out, new_handle());
    });
}

GCX_SIM_API(cuLogsUnregisterCallback, void* callback) {
    GCX_SIM_BODY(require(callback != nullptr));
}

GCX_SIM_API(cuLogsCurrent, unsigned* out, unsigned flags) {
    GCX_SIM_BODY({
        require(flags == 0);
        give(out, 0U);
    });
}

GCX_SIM_API(cuLogsDumpToFile, unsigned*, const char* path, unsigned flags) {
    GCX_SIM_BODY({
        require(path != nullptr && flags == 0);
        std::FILE* const file = std::fopen(path, "w");
        require(file != nullptr && std::fclose(file) == 0);
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
