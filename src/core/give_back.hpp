// Giving things back to the driver.
#pragma once

#include "driver/driver.hpp"

namespace gcx {

// Gives something back where nobody could repeat a call that failed: in destructors.
// What isn't given back then is lost for good, so a failure of the moment, as for want of host
// memory, gets a second chance. Answers what the last try did.
template <class Call>
CUresult give_back(Call&& call) {
    const CUresult result = call();
    return result == CUDA_SUCCESS ? result : call();
}

// Answers to a destroy call that mean that there is nothing left to destroy.
inline bool gone(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_INVALID_HANDLE;
}

} // namespace gcx
