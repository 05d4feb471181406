// The driver's own calls, of the library that gcx opened: what gcx bench compares gcx with, and
// what gcx info --record asks that gcx has no function for. The few prototypes are written down
// here, so that the command needs no cuda.h; they have been the same since CUDA 12.4.
#pragma once

#include <gcx.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gcx::cli {

// CUdevResource: 144 bytes whose content is the driver's.
struct alignas(8) RawResource {
    std::array<unsigned char, 144> bytes{};
};

// A CUresult, and the pointers behind the driver's handles.
using RawResult = int;
using RawHandle = void*;

// The library that gcx holds open: the same driver in the same state.
class RawLibrary {
  public:
    explicit RawLibrary(const gcx_driver_info& driver);

    // The address of a function; throws Failure if there is none.
    template <class Function>
    void need(const char* name, Function& function) const {
        function = reinterpret_cast<Function>(symbol(name));
    }

  private:
    void* symbol(const char* name) const;

    std::string path_;
    void* library_;
};

struct RawDriver {
    explicit RawDriver(const gcx_driver_info& driver);

    RawResult (*DeviceGet)(int* device, int ordinal);
    RawResult (*DeviceTotalMem)(std::size_t* bytes, int device);
    RawResult (*DeviceGetAttribute)(int* value, int attribute, int device);
    RawResult (*DeviceGetDevResource)(int device, RawResource* resource, int type);
    RawResult (*DevSmResourceSplitByCount)(RawResource* groups, unsigned* group_count,
                                           const RawResource* input, RawResource* remainder,
                                           unsigned flags, unsigned min_count);
    RawResult (*DevResourceGenerateDesc)(RawHandle* description, RawResource* resources,
                                         unsigned count);
    RawResult (*GreenCtxCreate)(RawHandle* context, RawHandle description, int device,
                                unsigned flags);
    RawResult (*GreenCtxDestroy)(RawHandle context);
    RawResult (*CtxFromGreenCtx)(RawHandle* context, RawHandle green);
    RawResult (*CtxPushCurrent)(RawHandle context);
    RawResult (*CtxPopCurrent)(RawHandle* context);
    RawResult (*StreamCreateWithPriority)(RawHandle* stream, unsigned flags, int priority);
    RawResult (*StreamDestroy)(RawHandle stream);
    RawResult (*MemGetInfo)(std::size_t* free, std::size_t* total);
    // From 12.5 on; null before.
    RawResult (*GreenCtxStreamCreate)(RawHandle* stream, RawHandle green, unsigned flags,
                                      int priority);

    static constexpr int kResourceTypeSm = 1;
    static constexpr unsigned kGreenCtxDefaultStream = 1;
    static constexpr unsigned kStreamNonBlocking = 1;

    // The CUdevice of an ordinal.
    int device(int32_t ordinal) const;
    // A stream of a green context, as a program for this driver would make it.
    RawHandle make_stream(RawHandle green) const;
};

// Throws Failure with the call's name if it failed.
void check_raw(RawResult result, const char* call);

} // namespace gcx::cli
