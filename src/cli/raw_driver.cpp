#include "cli/raw_driver.hpp"

#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/text.hpp"

#include <dlfcn.h>

namespace gcx::cli {

void check_raw(RawResult result, const char* call) {
    if (result != 0) {
        const auto code = static_cast<gcx_result>(result);
        throw Failure(code, format("the driver's own %s failed with %d: %s", call, result,
                                   gcx_result_string(code)));
    }
}

RawLibrary::RawLibrary(const gcx_driver_info& driver)
    : path_(library_path(driver)), library_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    // It is never closed: the functions are used until the process ends.
    if (library_ == nullptr) {
        const char* const reason = dlerror();
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't open the driver a second time: %s", reason));
    }
}

void* RawLibrary::symbol(const char* name) const {
    void* const found = dlsym(library_, name);
    if (found == nullptr)
        throw Failure(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                      format("the driver %s has no %s", path_.c_str(), name));
    return found;
}

RawDriver::RawDriver(const gcx_driver_info& driver) {
    const RawLibrary library(driver);
    const auto need = [&](const char* name, auto& function) { library.need(name, function); };
    need("cuDeviceGet", DeviceGet);
    need("cuDeviceTotalMem_v2", DeviceTotalMem);
    need("cuDeviceGetAttribute", DeviceGetAttribute);
    need("cuDeviceGetDevResource", DeviceGetDevResource);
    need("cuDevSmResourceSplitByCount", DevSmResourceSplitByCount);
    need("cuDevResourceGenerateDesc", DevResourceGenerateDesc);
    need("cuGreenCtxCreate", GreenCtxCreate);
    need("cuGreenCtxDestroy", GreenCtxDestroy);
    need("cuCtxFromGreenCtx", CtxFromGreenCtx);
    need("cuCtxPushCurrent_v2", CtxPushCurrent);
    need("cuCtxPopCurrent_v2", CtxPopCurrent);
    need("cuStreamCreateWithPriority", StreamCreateWithPriority);
    need("cuStreamDestroy_v2", StreamDestroy);
    need("cuMemGetInfo_v2", MemGetInfo);
    gcx_capability_info streams = GCX_CAPABILITY_INFO_INIT;
    check(gcx_capability_get_info(GCX_CAPABILITY_STREAM_CREATE, &streams));
    GreenCtxStreamCreate = nullptr;
    if (streams.available != 0)
        need("cuGreenCtxStreamCreate", GreenCtxStreamCreate);
}

int RawDriver::device(int32_t ordinal) const {
    int device = 0;
    check_raw(DeviceGet(&device, ordinal), "cuDeviceGet");
    return device;
}

RawHandle RawDriver::make_stream(RawHandle green) const {
    RawHandle stream = nullptr;
    if (GreenCtxStreamCreate != nullptr) {
        check_raw(GreenCtxStreamCreate(&stream, green, kStreamNonBlocking, 0),
                  "cuGreenCtxStreamCreate");
        return stream;
    }
    RawHandle context = nullptr;
    check_raw(CtxFromGreenCtx(&context, green), "cuCtxFromGreenCtx");
    check_raw(CtxPushCurrent(context), "cuCtxPushCurrent");
    const RawResult made = StreamCreateWithPriority(&stream, kStreamNonBlocking, 0);
    check_raw(CtxPopCurrent(&context), "cuCtxPopCurrent");
    check_raw(made, "cuStreamCreateWithPriority");
    return stream;
}

} // namespace gcx::cli
