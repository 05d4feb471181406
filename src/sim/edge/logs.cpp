// Error logs. The simulation writes none: the functions exist, and there is never anything to read.
#include "sim/edge/entry.hpp"

#include <cstdio>

namespace gcx::sim {

GCX_SIM_API(cuLogsRegisterCallback, void (*callback)(void*, int, char*, std::size_t), void*,
            void** out) {
    GCX_SIM_BODY({
        if (callback == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (out != nullptr)
            *out = to_pointer<void*>(new_handle());
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLogsUnregisterCallback, void* callback) {
    GCX_SIM_BODY({ return callback == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
}

GCX_SIM_API(cuLogsCurrent, unsigned* out, unsigned flags) {
    GCX_SIM_BODY({
        if (out == nullptr || flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
        *out = 0;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuLogsDumpToFile, unsigned*, const char* path, unsigned flags) {
    GCX_SIM_BODY({
        std::FILE* const file = path == nullptr || flags != 0 ? nullptr : std::fopen(path, "w");
        if (file == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

GCX_SIM_API(cuLogsDumpToMemory, unsigned*, char* buffer, std::size_t* size, unsigned flags) {
    GCX_SIM_BODY({
        if (buffer == nullptr || size == nullptr || *size == 0 || flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
        *buffer = '\0';
        *size = 0;
        return CUDA_SUCCESS;
    });
}

} // namespace gcx::sim
