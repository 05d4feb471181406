// Memory operations of streams: they write values, and wait for values.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <atomic>

namespace gcx::sim {
namespace {

// Assumed.
constexpr uint64_t kOperationNs = 1'000;

// Returns the memory, or null if it is gone. The program may use it at the same time.
template <class T>
T* word_at(Machine& machine, CUdeviceptr address) {
    return reinterpret_cast<T*>(device_bytes(machine, address, sizeof(T)));
}

// The header: how the flags compare.
template <class T>
bool matches(T found, T value, unsigned comparison) {
    switch (comparison) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::make_signed_t<T>>(found - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return found == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (found & value) != 0;
    default:
        return static_cast<T>(~(found | value)) != 0;
    }
}

template <class T>
void require_word(Machine& machine, CUdeviceptr address) {
    require(address % sizeof(T) == 0 && word_at<T>(machine, address) != nullptr);
}

// No wait is left for memory that is gone.
template <class T>
Work wait_work(Machine& machine, CUdeviceptr address, T value, unsigned flags) {
    const unsigned comparison = flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH};
    require(comparison <= CU_STREAM_WAIT_VALUE_NOR);
    require_word<T>(machine, address);
    Work work(Work::Kind::MemoryOperation);
    work.awaited = [=](Machine& later) {
        T* const word = word_at<T>(later, address);
        return word == nullptr || matches(std::atomic_ref(*word).load(), value, comparison);
    };
    return work;
}

template <class T>
Work write_work(Machine& machine, CUdeviceptr address, T value, unsigned flags) {
    require(flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
    require_word<T>(machine, address);
    Work work(Work::Kind::MemoryOperation);
    work.duration_ns = kOperationNs;
    work.effect = [=](Machine& later) {
        if (T* const word = word_at<T>(later, address); word != nullptr)
            std::atomic_ref(*word).store(value);
    };
    return work;
}

// Barriers and flushes have no effect here: all memory is the process's.
Work operation_work(Machine& machine, const CUstreamBatchMemOpParams& p) {
    const auto& wait = p.waitValue;
    const auto& write = p.writeValue;
    switch (p.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return wait_work<cuuint32_t>(machine, wait.address, wait.value, wait.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_work<cuuint64_t>(machine, wait.address, wait.value64, wait.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return write_work<cuuint32_t>(machine, write.address, write.value, write.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return write_work<cuuint64_t>(machine, write.address, write.value64, write.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return Work(Work::Kind::MemoryOperation);
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

// Refuses the whole batch if an operation is wrong. A capture gets a node for each, not for all.
void submit_batch(Machine& machine, CUstream handle, unsigned count,
                  const CUstreamBatchMemOpParams* operations, unsigned flags) {
    Stream& stream = stream_of(machine, handle);
    require(count != 0 && count <= 256 && operations != nullptr && flags == 0);
    std::vector<Work> all;
    all.reserve(count);
    for (unsigned i = 0; i < count; i++)
        all.push_back(operation_work(machine, operations[i]));
    for (Work& work : all)
        submit(machine, stream, std::move(work));
}

} // namespace

// The functions that write or await one value, in both versions.
// NOLINTBEGIN(bugprone-macro-parentheses): types
#define GCX_SIM_VALUES(name, version, type, make)                                                  \
    GCX_SIM_STREAM_API(name##version, _ptsz,                                                       \
                       (CUstream handle, CUdeviceptr address, type value, unsigned flags),         \
                       (handle, address, value, flags)) {                                          \
        GCX_SIM_BODY({                                                                             \
            Stream& stream = stream_of(machine, handle);                                           \
            submit(machine, stream, make<type>(machine, address, value, flags));                   \
        });                                                                                        \
    }
// NOLINTEND(bugprone-macro-parentheses)
#define GCX_SIM_MEMORY_OPERATIONS(version)                                                         \
    GCX_SIM_VALUES(cuStreamWaitValue32, version, cuuint32_t, wait_work)                            \
    GCX_SIM_VALUES(cuStreamWaitValue64, version, cuuint64_t, wait_work)                            \
    GCX_SIM_VALUES(cuStreamWriteValue32, version, cuuint32_t, write_work)                          \
    GCX_SIM_VALUES(cuStreamWriteValue64, version, cuuint64_t, write_work)                          \
    GCX_SIM_STREAM_API(                                                                            \
        cuStreamBatchMemOp##version, _ptsz,                                                        \
        (CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags),   \
        (handle, count, operations, flags)) {                                                      \
        GCX_SIM_BODY(submit_batch(machine, handle, count, operations, flags));                     \
    }

GCX_SIM_MEMORY_OPERATIONS()
GCX_SIM_MEMORY_OPERATIONS(_v2)
#undef GCX_SIM_MEMORY_OPERATIONS
#undef GCX_SIM_VALUES

} // namespace gcx::sim
