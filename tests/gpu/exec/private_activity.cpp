// What CUPTI sees of the work on a GPU, for private_tables.py, which builds it with KERNEL, MEMCPY and
// MEMSET, the newest types of these records in the header. Results are CUPTI's.
#include <cuda.h>
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kBufferSize = 1 << 20;
std::mutex mutex;
std::string* const lines = new std::string; // CUPTI may deliver records while the process ends

void CUPTIAPI give_buffer(uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferSize));
    *size = *buffer != nullptr ? kBufferSize : 0;
    *most_records = 0;
}

void add(const char* kind, uint32_t stream, const char* name) {
    *lines += std::string(kind) + " " + std::to_string(stream) + " " + name + "\n";
}

void add(const CUpti_Activity* record) {
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* const kernel = reinterpret_cast<const KERNEL*>(record);
        add("kernel", kernel->streamId, kernel->name != nullptr ? kernel->name : "?");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        add("copy", reinterpret_cast<const MEMCPY*>(record)->streamId, "copy");
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        add("fill", reinterpret_cast<const MEMSET*>(record)->streamId, "fill");
        break;
    default:
        break;
    }
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, std::size_t, std::size_t valid) {
    const std::lock_guard lock(mutex);
    CUpti_Activity* record = nullptr;
    while (valid != 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        add(record);
    std::free(buffer);
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int activity_start() {
    CUptiResult result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                          CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
        if (result == CUPTI_SUCCESS)
            result = cuptiActivityEnable(kind);
    }
    return result;
}

// Writes one line "KIND STREAM NAME" for each record since the last call, as many as fit.
EXPORTED int activity_read(char* text, std::size_t size) {
    const CUptiResult result = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(mutex);
    std::snprintf(text, size, "%s", lines->c_str());
    lines->clear();
    return result;
}

// Finds the number of a stream of the current context in the records.
EXPORTED int activity_stream(void* stream, uint32_t* number) {
    return cuptiGetStreamIdEx(nullptr, static_cast<CUstream>(stream), 0, number);
}

EXPORTED const char* activity_error(int result) {
    const char* text = nullptr;
    const auto code = static_cast<CUptiResult>(result);
    return cuptiGetResultString(code, &text) == CUPTI_SUCCESS && text != nullptr ? text : "?";
}
