// Tests that results below 10000 have CUresult's numbers, and that each has a name and a sentence.

#include "check.hpp"

#include <gcx.h>

#include <cuda.h>

#include <cstring>
#include <set>
#include <string>

// Lists every gcx_result that any cuda.h since 12.4 has by the same name. Results newer than the
// headers in use are not checked.
// clang-format off
#define RESULTS_OF_12_4(X) \
    X(INVALID_VALUE) \
    X(OUT_OF_MEMORY) \
    X(NOT_INITIALIZED) \
    X(DEINITIALIZED) \
    X(PROFILER_DISABLED) \
    X(PROFILER_NOT_INITIALIZED) \
    X(PROFILER_ALREADY_STARTED) \
    X(PROFILER_ALREADY_STOPPED) \
    X(STUB_LIBRARY) \
    X(DEVICE_UNAVAILABLE) \
    X(NO_DEVICE) \
    X(INVALID_DEVICE) \
    X(DEVICE_NOT_LICENSED) \
    X(INVALID_IMAGE) \
    X(INVALID_CONTEXT) \
    X(CONTEXT_ALREADY_CURRENT) \
    X(MAP_FAILED) \
    X(UNMAP_FAILED) \
    X(ARRAY_IS_MAPPED) \
    X(ALREADY_MAPPED) \
    X(NO_BINARY_FOR_GPU) \
    X(ALREADY_ACQUIRED) \
    X(NOT_MAPPED) \
    X(NOT_MAPPED_AS_ARRAY) \
    X(NOT_MAPPED_AS_POINTER) \
    X(ECC_UNCORRECTABLE) \
    X(UNSUPPORTED_LIMIT) \
    X(CONTEXT_ALREADY_IN_USE) \
    X(PEER_ACCESS_UNSUPPORTED) \
    X(INVALID_PTX) \
    X(INVALID_GRAPHICS_CONTEXT) \
    X(NVLINK_UNCORRECTABLE) \
    X(JIT_COMPILER_NOT_FOUND) \
    X(UNSUPPORTED_PTX_VERSION) \
    X(JIT_COMPILATION_DISABLED) \
    X(UNSUPPORTED_EXEC_AFFINITY) \
    X(UNSUPPORTED_DEVSIDE_SYNC) \
    X(INVALID_SOURCE) \
    X(FILE_NOT_FOUND) \
    X(SHARED_OBJECT_SYMBOL_NOT_FOUND) \
    X(SHARED_OBJECT_INIT_FAILED) \
    X(OPERATING_SYSTEM) \
    X(INVALID_HANDLE) \
    X(ILLEGAL_STATE) \
    X(LOSSY_QUERY) \
    X(NOT_FOUND) \
    X(NOT_READY) \
    X(ILLEGAL_ADDRESS) \
    X(LAUNCH_OUT_OF_RESOURCES) \
    X(LAUNCH_TIMEOUT) \
    X(LAUNCH_INCOMPATIBLE_TEXTURING) \
    X(PEER_ACCESS_ALREADY_ENABLED) \
    X(PEER_ACCESS_NOT_ENABLED) \
    X(PRIMARY_CONTEXT_ACTIVE) \
    X(CONTEXT_IS_DESTROYED) \
    X(ASSERT) \
    X(TOO_MANY_PEERS) \
    X(HOST_MEMORY_ALREADY_REGISTERED) \
    X(HOST_MEMORY_NOT_REGISTERED) \
    X(HARDWARE_STACK_ERROR) \
    X(ILLEGAL_INSTRUCTION) \
    X(MISALIGNED_ADDRESS) \
    X(INVALID_ADDRESS_SPACE) \
    X(INVALID_PC) \
    X(LAUNCH_FAILED) \
    X(COOPERATIVE_LAUNCH_TOO_LARGE) \
    X(NOT_PERMITTED) \
    X(NOT_SUPPORTED) \
    X(SYSTEM_NOT_READY) \
    X(SYSTEM_DRIVER_MISMATCH) \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE) \
    X(MPS_CONNECTION_FAILED) \
    X(MPS_RPC_FAILURE) \
    X(MPS_SERVER_NOT_READY) \
    X(MPS_MAX_CLIENTS_REACHED) \
    X(MPS_MAX_CONNECTIONS_REACHED) \
    X(MPS_CLIENT_TERMINATED) \
    X(CDP_NOT_SUPPORTED) \
    X(CDP_VERSION_MISMATCH) \
    X(STREAM_CAPTURE_UNSUPPORTED) \
    X(STREAM_CAPTURE_INVALIDATED) \
    X(STREAM_CAPTURE_MERGE) \
    X(STREAM_CAPTURE_UNMATCHED) \
    X(STREAM_CAPTURE_UNJOINED) \
    X(STREAM_CAPTURE_ISOLATION) \
    X(STREAM_CAPTURE_IMPLICIT) \
    X(CAPTURED_EVENT) \
    X(STREAM_CAPTURE_WRONG_THREAD) \
    X(TIMEOUT) \
    X(GRAPH_EXEC_UPDATE_FAILURE) \
    X(EXTERNAL_DEVICE) \
    X(INVALID_CLUSTER_SIZE) \
    X(INVALID_RESOURCE_TYPE) \
    X(INVALID_RESOURCE_CONFIGURATION) \
    X(FUNCTION_NOT_LOADED) \
    X(UNKNOWN)
// clang-format on
#define RESULTS_SINCE_12_8(X) X(CONTAINED) X(TENSOR_MEMORY_LEAK) X(KEY_ROTATION)
#define RESULTS_SINCE_13_0(X) X(CALL_REQUIRES_NEWER_DRIVER)
#define RESULTS_SINCE_13_1(X) X(STREAM_DETACHED)
// clang-format off
#define RESULTS_SINCE_13_5(X) \
    X(INSUFFICIENT_LOADER_VERSION) \
    X(MULTICAST_RESOURCE_FULL) \
    X(GRAPH_RECAPTURE_FAILURE) \
    X(FABRIC_NOT_READY)
// clang-format on

// gcx's own results, from 10000 on.
#define OWN_RESULTS(X)                                                                             \
    X(CANCELLED)                                                                                   \
    X(TOO_LATE)                                                                                    \
    X(DRIVER_ALREADY_OPEN)                                                                         \
    X(UNSAFE_FOLDER)                                                                               \
    X(IN_CALLBACK)                                                                                 \
    X(DUPLICATE_LIBRARY)                                                                           \
    X(SMS_NOT_MAPPED)                                                                              \
    X(SHARED_SMS_UNKNOWN)                                                                          \
    X(CORRUPT_FILE)                                                                                \
    X(INSUFFICIENT_CAPACITY)                                                                       \
    X(CACHE_LIMIT_EXCEEDED)                                                                        \
    X(LEASE_PARKED)

#define SAME_NUMBER(name)                                                                          \
    static_assert(static_cast<int>(GCX_ERROR_##name) == static_cast<int>(CUDA_ERROR_##name));
static_assert(static_cast<int>(GCX_SUCCESS) == static_cast<int>(CUDA_SUCCESS));
RESULTS_OF_12_4(SAME_NUMBER)
#if CUDA_VERSION >= 12080
RESULTS_SINCE_12_8(SAME_NUMBER)
#endif
#if CUDA_VERSION >= 13000
RESULTS_SINCE_13_0(SAME_NUMBER)
#endif
#if CUDA_VERSION >= 13010
RESULTS_SINCE_13_1(SAME_NUMBER)
#endif
#if CUDA_VERSION >= 13050
RESULTS_SINCE_13_5(SAME_NUMBER)
#endif
#define OWN_NUMBER(name) static_assert(GCX_ERROR_##name >= 10000);
OWN_RESULTS(OWN_NUMBER)

namespace {

struct Row {
    gcx_result result;
    const char* name;
};
#define ROW(name) {GCX_ERROR_##name, "GCX_ERROR_" #name},
const Row kRows[] = {{GCX_SUCCESS, "GCX_SUCCESS"},
                     RESULTS_OF_12_4(ROW) RESULTS_SINCE_12_8(ROW) RESULTS_SINCE_13_0(ROW)
                         RESULTS_SINCE_13_1(ROW) RESULTS_SINCE_13_5(ROW) OWN_RESULTS(ROW)};

bool is_named(gcx_result result) {
    for (const Row& row : kRows) {
        if (row.result == result)
            return true;
    }
    return false;
}

void results_have_names_and_sentences() {
    std::set<std::string> sentences;
    std::set<int> numbers;
    for (const Row& row : kRows) {
        CHECK(numbers.insert(row.result).second);
        CHECK_EQ(std::string(gcx_result_name(row.result)), std::string(row.name));
        const std::string sentence = gcx_result_string(row.result);
        CHECK(sentence.size() > 5);
        CHECK(sentences.insert(sentence).second);
    }
}

void unknown_numbers_are_unrecognized() {
    for (int number = -2; number < 10100; number++) {
        gcx_result result = GCX_SUCCESS;
        std::memcpy(&result, &number, sizeof result); // any int, as C lets a caller pass
        const std::string name = gcx_result_name(result);
        CHECK_EQ(name != "GCX_ERROR_UNRECOGNIZED", is_named(result));
        CHECK(*gcx_result_string(result) != '\0');
    }
}

void results_need_no_driver() {
    CHECK_EQ(gcx_version(), static_cast<uint32_t>(GCX_VERSION));
    CHECK_EQ(std::string(gcx_last_error_message()), std::string());
    CHECK_EQ(gcx_driver_open("libno-such-cuda.so.1"), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    CHECK(std::strstr(gcx_last_error_message(), "libno-such-cuda.so.1") != nullptr);
}

} // namespace

int main() {
    results_have_names_and_sentences();
    unknown_numbers_are_unrecognized();
    results_need_no_driver();
    return check::summary("results");
}
