// Copies and fills.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// Assumed: the bandwidth of the links and the memory of a data-centre GPU.
constexpr uint64_t kHostBytesPerUs = 50'000;
constexpr uint64_t kDeviceBytesPerUs = 2'000'000;
constexpr uint64_t kMinNs = 1'000;

struct Operand {
    uint64_t address = 0;
    bool on_device = false; // must be device memory; otherwise any host pointer is valid
};

// Memory of the program that CUDA neither allocated nor registered.
bool is_pageable(Machine& machine, const Operand& operand) {
    return !operand.on_device && find_allocation(machine, operand.address) == nullptr;
}

// Returns whether a call without a stream that uses the memory waits for its end. Recorded: those
// that use only device memory do not.
bool is_waited_for(Machine& machine, const Operand& operand) {
    const Allocation* const found = find_allocation(machine, operand.address);
    return found == nullptr ||
           (found->kind != MemoryKind::Device && found->kind != MemoryKind::Module &&
            found->kind != MemoryKind::Array);
}

// Returns null if there is no such memory.
std::byte* resolve(Machine& machine, const Operand& operand, std::size_t bytes) {
    return is_pageable(machine, operand) ? to_pointer<std::byte*>(operand.address)
                                         : device_bytes(machine, operand.address, bytes);
}

uint64_t duration(bool host, std::size_t bytes) {
    return kMinNs + bytes * 1000 / (host ? kHostBytesPerUs : kDeviceBytesPerUs);
}

// Performs the copy. Looks the memory up each time, since it can have been freed until then. What
// was pageable memory stays the program's pointer.
std::function<void(Machine&)> copy_effect(Machine& now, Operand to, Operand from,
                                          std::size_t bytes) {
    const auto find = [bytes](Machine& machine, const Operand& operand, bool pageable) {
        return pageable ? to_pointer<std::byte*>(operand.address)
                        : device_bytes(machine, operand.address, bytes);
    };
    return [=, to_pageable = is_pageable(now, to),
            from_pageable = is_pageable(now, from)](Machine& machine) {
        std::byte* const target = find(machine, to, to_pageable);
        const std::byte* const source = find(machine, from, from_pageable);
        if (target != nullptr && source != nullptr)
            std::memmove(target, source, bytes);
    };
}

// The same from bytes that are read now.
std::function<void(Machine&)> staged_effect(Operand to, const std::byte* source,
                                            std::size_t bytes) {
    return [=, staged = std::string(reinterpret_cast<const char*>(source), bytes)](Machine& later) {
        if (std::byte* const target = device_bytes(later, to.address, bytes))
            std::memcpy(target, staged.data(), bytes);
    };
}

// Returns the parameters for cuGraphMemcpyNodeGetParams.
std::string copy_parameters(Operand to, Operand from, std::size_t bytes) {
    CUDA_MEMCPY3D p{};
    p.srcMemoryType = from.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
    p.srcDevice = from.address;
    p.dstMemoryType = to.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
    p.dstDevice = to.address;
    p.WidthInBytes = bytes;
    p.Height = 1;
    p.Depth = 1;
    return to_bytes(p);
}

Work copy_work(Machine& machine, const Operand& to, const Operand& from, std::size_t bytes) {
    require(resolve(machine, to, bytes) != nullptr && resolve(machine, from, bytes) != nullptr);
    Work work(Work::Kind::Memcpy);
    work.duration_ns = duration(!to.on_device || !from.on_device, bytes);
    work.effect = copy_effect(machine, to, from, bytes);
    work.parameters = copy_parameters(to, from, bytes);
    return work;
}

// The stream of a call, and whether the call is one without a stream.
struct Order {
    CUstream stream = nullptr;
    bool synchronous = true;
};

Order in_stream(CUstream stream) {
    return {stream, false};
}

Stream& stream_of(Machine& machine, const Order& order) {
    Stream& stream = stream_of(machine, order.stream);
    refuse_implicit_capture(machine, stream);
    require(!order.synchronous || stream.capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return stream;
}

// The rows of a copy: the bytes of each and their distances.
struct Rows {
    std::size_t bytes = 0;
    std::size_t count = 1;
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;
};

void copy_rows(Machine& machine, Operand to, Operand from, const Rows& rows, const Order& order) {
    Stream& stream = stream_of(machine, order);
    if (rows.bytes == 0 || rows.count == 0)
        return;
    const bool captures = stream.capture != nullptr;
    // The header: a copy in a stream reads pageable memory before it returns, and has written it
    // when it returns.
    const bool staged = !order.synchronous && !captures && is_pageable(machine, from);
    const bool waits = order.synchronous
                           ? is_waited_for(machine, to) || is_waited_for(machine, from)
                           : !captures && is_pageable(machine, to);
    for (std::size_t row = 0; row < rows.count; row++) {
        Work work = copy_work(machine, to, from, rows.bytes);
        if (staged && !waits)
            work.effect = staged_effect(to, to_pointer<std::byte*>(from.address), rows.bytes);
        submit(machine, stream, std::move(work));
        to.address += rows.to_pitch;
        from.address += rows.from_pitch;
    }
    if (waits)
        wait_until(machine, stream.busy);
}

void copy(Machine& machine, const Operand& to, const Operand& from, std::size_t bytes,
          const Order& order = {}) {
    copy_rows(machine, to, from, {bytes}, order);
}

// Recorded: within one device it is a copy like others. Between two, by the programming guide, it is
// ordered with all earlier work of both.
void copy_peer(Machine& machine, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
               CUcontext from_context, std::size_t bytes) {
    const Context* const ends[] = {find(machine.contexts, to_context),
                                   find(machine.contexts, from_context)};
    if (ends[0] != nullptr && ends[1] != nullptr && ends[0]->device == ends[1]->device)
        return copy(machine, {to, true}, {from, true}, bytes);
    Stream& stream = stream_of(machine, Order{});
    if (bytes == 0)
        return;
    for (const Context* const context : ends)
        if (context != nullptr)
            extend(stream.busy, context->device->busy);
    submit(machine, stream, copy_work(machine, {to, true}, {from, true}, bytes));
    wait_until(machine, stream.busy);
}

struct Fill {
    uint64_t address;
    std::size_t pitch;
    std::size_t width; // elements of a row
    std::size_t height;
    uint32_t value;
    std::size_t element;
};

Work fill_work(Machine& machine, const Fill& fill) {
    const std::size_t row = fill.width * fill.element;
    require(fill.address % fill.element == 0 && (fill.height <= 1 || fill.pitch >= row));
    const std::size_t bytes = fill.pitch * (fill.height - 1) + row;
    require(device_bytes(machine, fill.address, bytes) != nullptr);
    Work work(Work::Kind::Memset);
    work.duration_ns = duration(false, bytes);
    work.parameters = to_bytes(CUDA_MEMSET_NODE_PARAMS{fill.address, fill.pitch, fill.value,
                                                       static_cast<unsigned>(fill.element),
                                                       fill.width, fill.height});
    work.effect = [=](Machine& later) {
        std::byte* const data = device_bytes(later, fill.address, bytes);
        for (std::size_t y = 0; data != nullptr && y < fill.height; y++) {
            std::byte* const begin = data + y * fill.pitch;
            std::memcpy(begin, &fill.value, fill.element);
            // Doubles the filled part by copying it behind itself.
            for (std::size_t done = fill.element; done < row; done *= 2)
                std::memcpy(begin + done, begin, std::min(done, row - done));
        }
    };
    return work;
}

void fill(Machine& machine, const Fill& fill, const Order& order = {}) {
    Stream& stream = stream_of(machine, order);
    if (fill.width == 0 || fill.height == 0)
        return;
    submit(machine, stream, fill_work(machine, fill));
    if (order.synchronous && is_waited_for(machine, {fill.address, true}))
        wait_until(machine, stream.busy);
}

// Fills contiguous elements.
Fill row(CUdeviceptr to, uint32_t value, std::size_t element, std::size_t count) {
    return {to, count, count, 1, value, element};
}

Operand on_device(CUdeviceptr address) {
    return {address, true};
}
Operand on_host(const void* pointer) {
    return {to_handle(pointer), false};
}
Operand anywhere(CUdeviceptr address) {
    return {address, false};
}

Operand in_array(const Machine& machine, CUarray array, std::size_t offset) {
    const auto found = machine.allocations.find(to_handle(array));
    require(found != machine.allocations.end() && found->second.kind == MemoryKind::Array,
            CUDA_ERROR_INVALID_HANDLE);
    return {found->first + offset, true};
}

// Of arrays only the first row is simulated.
Operand operand_of(const Machine& machine, CUmemorytype type, const void* host, CUdeviceptr device,
                   CUarray array) {
    if (type == CU_MEMORYTYPE_ARRAY)
        return in_array(machine, array, 0);
    if (type == CU_MEMORYTYPE_HOST)
        return on_host(host);
    return type == CU_MEMORYTYPE_DEVICE ? on_device(device) : anywhere(device);
}

Operand at(Operand operand, std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
           std::size_t height) {
    operand.address += (z * height + y) * pitch + x;
    return operand;
}

void copy_2d(Machine& machine, const CUDA_MEMCPY2D* parameters, const Order& order = {}) {
    const CUDA_MEMCPY2D& p = known(parameters);
    require((p.dstMemoryType != CU_MEMORYTYPE_ARRAY && p.srcMemoryType != CU_MEMORYTYPE_ARRAY) ||
                p.Height <= 1,
            CUDA_ERROR_NOT_SUPPORTED);
    const Operand to = operand_of(machine, p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray);
    const Operand from = operand_of(machine, p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray);
    require((p.srcPitch == 0 || p.srcPitch >= p.WidthInBytes) &&
            (p.dstPitch == 0 || p.dstPitch >= p.WidthInBytes));
    copy_rows(machine, at(to, p.dstXInBytes, p.dstY, 0, p.dstPitch, 0),
              at(from, p.srcXInBytes, p.srcY, 0, p.srcPitch, 0),
              {p.WidthInBytes, p.Height, p.dstPitch, p.srcPitch}, order);
}

// Also for copies between contexts, which have the same fields.
template <class Parameters>
void copy_3d(Machine& machine, const Parameters* parameters, const Order& order = {}) {
    const Parameters& p = known(parameters);
    const Operand to = operand_of(machine, p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray);
    const Operand from = operand_of(machine, p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray);
    require((p.srcPitch == 0 || p.srcPitch >= p.WidthInBytes) &&
            (p.dstPitch == 0 || p.dstPitch >= p.WidthInBytes));
    for (std::size_t z = 0; z < p.Depth; z++)
        copy_rows(machine, at(to, p.dstXInBytes, p.dstY, p.dstZ + z, p.dstPitch, p.dstHeight),
                  at(from, p.srcXInBytes, p.srcY, p.srcZ + z, p.srcPitch, p.srcHeight),
                  {p.WidthInBytes, p.Height, p.dstPitch, p.srcPitch}, order);
}

} // namespace

Work memset_work(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& p) {
    require((p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4) && p.width != 0 &&
            p.height != 0);
    return fill_work(machine, {p.dst, p.pitch, p.width, p.height, p.value, p.elementSize});
}

Work memcpy_work(Machine& machine, const CUDA_MEMCPY3D& p) {
    Operand to = operand_of(machine, p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray);
    Operand from = operand_of(machine, p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray);
    // Graph nodes copy only rows in the simulation.
    require(p.Height <= 1 && p.Depth <= 1, CUDA_ERROR_NOT_SUPPORTED);
    to.address += p.dstXInBytes;
    from.address += p.srcXInBytes;
    Work work = copy_work(machine, to, from, p.WidthInBytes);
    work.parameters = to_bytes(p);
    return work;
}

// A copy that waits, and the same in a stream.
#define GCX_SIM_COPIES(name, version, to_type, to_place, from_type, from_place)                    \
    GCX_SIM_STREAM_API(name##version, _ptds, (to_type to, from_type from, std::size_t bytes),      \
                       (to, from, bytes)) {                                                        \
        GCX_SIM_BODY(copy(machine, to_place(to), from_place(from), bytes));                        \
    }                                                                                              \
    GCX_SIM_STREAM_API(name##Async##version, _ptsz,                                                \
                       (to_type to, from_type from, std::size_t bytes, CUstream stream),           \
                       (to, from, bytes, stream)) {                                                \
        GCX_SIM_BODY(copy(machine, to_place(to), from_place(from), bytes, in_stream(stream)));     \
    }

GCX_SIM_COPIES(cuMemcpy, , CUdeviceptr, anywhere, CUdeviceptr, anywhere)
GCX_SIM_COPIES(cuMemcpyHtoD, _v2, CUdeviceptr, on_device, const void*, on_host)
GCX_SIM_COPIES(cuMemcpyDtoH, _v2, void*, on_host, CUdeviceptr, on_device)
GCX_SIM_COPIES(cuMemcpyDtoD, _v2, CUdeviceptr, on_device, CUdeviceptr, on_device)
#undef GCX_SIM_COPIES

GCX_SIM_STREAM_API(cuMemcpyPeer, _ptds,
                   (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    std::size_t bytes),
                   (to, to_context, from, from_context, bytes)) {
    GCX_SIM_BODY(copy_peer(machine, to, to_context, from, from_context, bytes));
}

GCX_SIM_STREAM_API(cuMemcpyPeerAsync, _ptsz,
                   (CUdeviceptr to, [[maybe_unused]] CUcontext to_context, CUdeviceptr from,
                    [[maybe_unused]] CUcontext from_context, std::size_t bytes, CUstream stream),
                   (to, to_context, from, from_context, bytes, stream)) {
    GCX_SIM_BODY(copy(machine, on_device(to), on_device(from), bytes, in_stream(stream)));
}

GCX_SIM_STREAM_API(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* parameters), (parameters)) {
    GCX_SIM_BODY(copy_2d(machine, parameters));
}

GCX_SIM_STREAM_API(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* parameters), (parameters)) {
    GCX_SIM_BODY(copy_2d(machine, parameters));
}

GCX_SIM_STREAM_API(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* parameters, CUstream stream),
                   (parameters, stream)) {
    GCX_SIM_BODY(copy_2d(machine, parameters, in_stream(stream)));
}

// Copies with arrays.
GCX_SIM_STREAM_API(cuMemcpyDtoA_v2, _ptds,
                   (CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes),
                   (to, offset, from, bytes)) {
    GCX_SIM_BODY(copy(machine, in_array(machine, to, offset), on_device(from), bytes));
}

GCX_SIM_STREAM_API(cuMemcpyAtoD_v2, _ptds,
                   (CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes),
                   (to, from, offset, bytes)) {
    GCX_SIM_BODY(copy(machine, on_device(to), in_array(machine, from, offset), bytes));
}

GCX_SIM_STREAM_API(cuMemcpyHtoA_v2, _ptds,
                   (CUarray to, std::size_t offset, const void* from, std::size_t bytes),
                   (to, offset, from, bytes)) {
    GCX_SIM_BODY(copy(machine, in_array(machine, to, offset), on_host(from), bytes));
}

GCX_SIM_STREAM_API(cuMemcpyAtoH_v2, _ptds,
                   (void* to, CUarray from, std::size_t offset, std::size_t bytes),
                   (to, from, offset, bytes)) {
    GCX_SIM_BODY(copy(machine, on_host(to), in_array(machine, from, offset), bytes));
}

GCX_SIM_STREAM_API(cuMemcpyAtoA_v2, _ptds,
                   (CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                    std::size_t bytes),
                   (to, to_offset, from, from_offset, bytes)) {
    GCX_SIM_BODY(copy(machine, in_array(machine, to, to_offset),
                      in_array(machine, from, from_offset), bytes));
}

GCX_SIM_STREAM_API(cuMemcpyHtoAAsync_v2, _ptsz,
                   (CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                    CUstream stream),
                   (to, offset, from, bytes, stream)) {
    GCX_SIM_BODY(
        copy(machine, in_array(machine, to, offset), on_host(from), bytes, in_stream(stream)));
}

GCX_SIM_STREAM_API(cuMemcpyAtoHAsync_v2, _ptsz,
                   (void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream),
                   (to, from, offset, bytes, stream)) {
    GCX_SIM_BODY(
        copy(machine, on_host(to), in_array(machine, from, offset), bytes, in_stream(stream)));
}

// Between devices a copy is assumed to be ordered like one within a device.
#define GCX_SIM_COPIES_3D(name, version, type)                                                     \
    GCX_SIM_STREAM_API(name##version, _ptds, (const type* parameters), (parameters)) {             \
        GCX_SIM_BODY(copy_3d(machine, parameters));                                                \
    }                                                                                              \
    GCX_SIM_STREAM_API(name##Async##version, _ptsz, (const type* parameters, CUstream stream),     \
                       (parameters, stream)) {                                                     \
        GCX_SIM_BODY(copy_3d(machine, parameters, in_stream(stream)));                             \
    }

GCX_SIM_COPIES_3D(cuMemcpy3D, _v2, CUDA_MEMCPY3D)
GCX_SIM_COPIES_3D(cuMemcpy3DPeer, , CUDA_MEMCPY3D_PEER)
#undef GCX_SIM_COPIES_3D

// The fills with elements of one size, in one and two dimensions.
#define GCX_SIM_FILLS(bits, type)                                                                  \
    GCX_SIM_STREAM_API(cuMemsetD##bits##_v2, _ptds,                                                \
                       (CUdeviceptr to, type value, std::size_t count), (to, value, count)) {      \
        GCX_SIM_BODY(fill(machine, row(to, value, (bits) / 8, count)));                            \
    }                                                                                              \
    GCX_SIM_STREAM_API(cuMemsetD##bits##Async, _ptsz,                                              \
                       (CUdeviceptr to, type value, std::size_t count, CUstream stream),           \
                       (to, value, count, stream)) {                                               \
        GCX_SIM_BODY(fill(machine, row(to, value, (bits) / 8, count), in_stream(stream)));         \
    }                                                                                              \
    GCX_SIM_STREAM_API(                                                                            \
        cuMemsetD2D##bits##_v2, _ptds,                                                             \
        (CUdeviceptr to, std::size_t pitch, type value, std::size_t width, std::size_t height),    \
        (to, pitch, value, width, height)) {                                                       \
        GCX_SIM_BODY(fill(machine, {to, pitch, width, height, value, (bits) / 8}));                \
    }                                                                                              \
    GCX_SIM_STREAM_API(cuMemsetD2D##bits##Async, _ptsz,                                            \
                       (CUdeviceptr to, std::size_t pitch, type value, std::size_t width,          \
                        std::size_t height, CUstream stream),                                      \
                       (to, pitch, value, width, height, stream)) {                                \
        GCX_SIM_BODY(                                                                              \
            fill(machine, {to, pitch, width, height, value, (bits) / 8}, in_stream(stream)));      \
    }

GCX_SIM_FILLS(8, unsigned char)
GCX_SIM_FILLS(16, unsigned short)
GCX_SIM_FILLS(32, unsigned)
#undef GCX_SIM_FILLS

} // namespace gcx::sim
