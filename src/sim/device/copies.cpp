// Copies, fills, and what can be asked about a pointer.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// Assumed: what the links and the memory of a data-centre GPU carry.
constexpr uint64_t kHostBytesPerUs = 50'000;
constexpr uint64_t kDeviceBytesPerUs = 2'000'000;
constexpr uint64_t kLeastNs = 1'000;

struct Place {
    uint64_t address = 0;
    bool on_device = false; // must be known memory; else any host pointer will do
};

bool resolve(Machine& machine, const Place& place, std::size_t bytes, std::byte*& data) {
    data = device_bytes(machine, place.address, bytes);
    if (data != nullptr)
        return true;
    if (place.on_device || find_allocation(machine, place.address) != nullptr)
        return false;
    data = to_pointer<std::byte*>(place.address);
    return data != nullptr;
}

uint64_t duration(bool host, std::size_t bytes) {
    return kLeastNs + bytes * 1000 / (host ? kHostBytesPerUs : kDeviceBytesPerUs);
}

// The copy itself. Asks anew at each run, since a graph may run when the memory is gone.
std::function<void(Machine&)> copy_effect(Place to, Place from, std::size_t bytes) {
    return [=](Machine& machine) {
        std::byte* target = nullptr;
        std::byte* source = nullptr;
        if (resolve(machine, to, bytes, target) && resolve(machine, from, bytes, source))
            std::memmove(target, source, bytes);
    };
}

// What cuGraphMemcpyNodeGetParams tells.
std::string copy_parameters(Place to, Place from, std::size_t bytes) {
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

CUresult copy(Machine& machine, Place to, Place from, std::size_t bytes, CUstream handle,
              bool wait) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    std::byte* data = nullptr;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (!resolve(machine, to, bytes, data) || !resolve(machine, from, bytes, data))
        return CUDA_ERROR_INVALID_VALUE;
    if (wait && stream->capture != nullptr)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    Work work;
    work.kind = Work::Kind::Memcpy;
    work.duration_ns = duration(!to.on_device || !from.on_device, bytes);
    work.effect = copy_effect(to, from, bytes);
    work.parameters = copy_parameters(to, from, bytes);
    const CUresult code = submit(machine, *stream, std::move(work));
    if (code == CUDA_SUCCESS && wait)
        wait_until(machine, stream->busy_until);
    return code;
}

struct Fill {
    uint64_t address;
    std::size_t pitch;
    std::size_t width; // elements of a row
    std::size_t height;
    uint32_t value;
    std::size_t element;
};

CUresult fill_work(Machine& machine, const Fill& fill, Work& work) {
    const std::size_t row = fill.width * fill.element;
    if (fill.address % fill.element != 0 || (fill.height > 1 && fill.pitch < row))
        return CUDA_ERROR_INVALID_VALUE;
    const std::size_t bytes = fill.pitch * (fill.height - 1) + row;
    if (device_bytes(machine, fill.address, bytes) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    work.kind = Work::Kind::Memset;
    work.duration_ns = duration(false, bytes);
    work.parameters = to_bytes(CUDA_MEMSET_NODE_PARAMS{fill.address, fill.pitch, fill.value,
                                                       static_cast<unsigned>(fill.element),
                                                       fill.width, fill.height});
    work.effect = [=](Machine& later) {
        std::byte* const data = device_bytes(later, fill.address, bytes);
        for (std::size_t y = 0; data != nullptr && y < fill.height; y++)
            for (std::size_t x = 0; x < fill.width; x++)
                std::memcpy(data + y * fill.pitch + x * fill.element, &fill.value, fill.element);
    };
    return CUDA_SUCCESS;
}

CUresult fill(Machine& machine, const Fill& fill, CUstream handle, bool wait) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (fill.width == 0 || fill.height == 0)
        return CUDA_SUCCESS;
    Work work;
    if (const CUresult code = fill_work(machine, fill, work); code != CUDA_SUCCESS)
        return code;
    const CUresult code = submit(machine, *stream, std::move(work));
    if (code == CUDA_SUCCESS && wait)
        wait_until(machine, stream->busy_until);
    return code;
}

Place on_device(CUdeviceptr address) {
    return {address, true};
}
Place on_host(const void* pointer) {
    return {to_handle(pointer), false};
}
Place anywhere(CUdeviceptr address) {
    return {address, false};
}

bool place_of(CUmemorytype type, const void* host, CUdeviceptr device, Place& place) {
    if (type == CU_MEMORYTYPE_HOST)
        place = on_host(host);
    else
        place = type == CU_MEMORYTYPE_DEVICE ? on_device(device) : anywhere(device);
    return type != CU_MEMORYTYPE_ARRAY;
}

CUresult copy_2d(Machine& machine, const CUDA_MEMCPY2D* parameters, CUstream handle, bool wait) {
    Place to;
    Place from;
    if (parameters == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY2D& p = *parameters;
    if (!place_of(p.dstMemoryType, p.dstHost, p.dstDevice, to) ||
        !place_of(p.srcMemoryType, p.srcHost, p.srcDevice, from))
        return CUDA_ERROR_NOT_SUPPORTED; // arrays are not simulated
    if ((p.srcPitch != 0 && p.srcPitch < p.WidthInBytes) ||
        (p.dstPitch != 0 && p.dstPitch < p.WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t row = 0; row < p.Height; row++) {
        Place source = from;
        Place target = to;
        source.address += (p.srcY + row) * p.srcPitch + p.srcXInBytes;
        target.address += (p.dstY + row) * p.dstPitch + p.dstXInBytes;
        if (const CUresult code = copy(machine, target, source, p.WidthInBytes, handle, wait);
            code != CUDA_SUCCESS)
            return code;
    }
    return CUDA_SUCCESS;
}

template <class Value>
CUresult give(void* out, Value value) {
    std::memcpy(out, &value,
                sizeof value); // NOLINT(bugprone-sizeof-expression): the pointer is copied
    return CUDA_SUCCESS;
}

CUresult pointer_attribute(Machine& machine, void* out, CUpointer_attribute attribute,
                           CUdeviceptr address) {
    const Allocation* const known = find_allocation(machine, address);
    if (out == nullptr || known == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const bool host = known->kind == MemoryKind::Host || known->kind == MemoryKind::Registered;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return give(out,
                    to_pointer<CUcontext>(known->context == nullptr ? 0 : known->context->handle));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return give(out, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return give(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (known->kind == MemoryKind::Device || known->kind == MemoryKind::Module)
            return CUDA_ERROR_INVALID_VALUE;
        return give(out, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return give(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return give(out, known->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return give(out, static_cast<int>(known->kind == MemoryKind::Managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return give(out, known->device->ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return give(out, known->address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return give(out, known->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return give(out, 1);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return give(out, known->pool);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

} // namespace

CUresult memset_work(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& p, Work& work) {
    if ((p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) || p.width == 0 ||
        p.height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return fill_work(machine, {p.dst, p.pitch, p.width, p.height, p.value, p.elementSize}, work);
}

CUresult memcpy_work(Machine& machine, const CUDA_MEMCPY3D& p, Work& work) {
    Place to;
    Place from;
    if (!place_of(p.dstMemoryType, p.dstHost, p.dstDevice, to) ||
        !place_of(p.srcMemoryType, p.srcHost, p.srcDevice, from) || p.Height > 1 || p.Depth > 1)
        return CUDA_ERROR_NOT_SUPPORTED; // of copies in graphs, only rows are simulated
    to.address += p.dstXInBytes;
    from.address += p.srcXInBytes;
    std::byte* data = nullptr;
    if (!resolve(machine, to, p.WidthInBytes, data) ||
        !resolve(machine, from, p.WidthInBytes, data))
        return CUDA_ERROR_INVALID_VALUE;
    work.kind = Work::Kind::Memcpy;
    work.duration_ns = duration(!to.on_device || !from.on_device, p.WidthInBytes);
    work.effect = copy_effect(to, from, p.WidthInBytes);
    work.parameters = to_bytes(p);
    return CUDA_SUCCESS;
}

GCX_SIM_API(cuMemcpy, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, anywhere(to), anywhere(from), bytes, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, anywhere(to), anywhere(from), bytes, stream, false);
    });
}

GCX_SIM_API(cuMemcpyHtoD_v2, CUdeviceptr to, const void* from, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_host(from), bytes, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void* from, std::size_t bytes,
            CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_host(from), bytes, stream, false);
    });
}

GCX_SIM_API(cuMemcpyDtoH_v2, void* to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_host(to), on_device(from), bytes, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpyDtoHAsync_v2, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_host(to), on_device(from), bytes, stream, false);
    });
}

GCX_SIM_API(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_device(from), bytes, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
            CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_device(from), bytes, stream, false);
    });
}

GCX_SIM_API(cuMemcpyPeer, CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
            std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_device(from), bytes, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
            std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy(machine, on_device(to), on_device(from), bytes, stream, false);
    });
}

GCX_SIM_API(cuMemcpy2D_v2, const CUDA_MEMCPY2D* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy_2d(machine, parameters, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpy2DUnaligned_v2, const CUDA_MEMCPY2D* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy_2d(machine, parameters, nullptr, true);
    });
}

GCX_SIM_API(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D* parameters, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return copy_2d(machine, parameters, stream, false);
    });
}

GCX_SIM_API(cuMemsetD8_v2, CUdeviceptr to, unsigned char value, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 1}, nullptr, true);
    });
}

GCX_SIM_API(cuMemsetD16_v2, CUdeviceptr to, unsigned short value, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 2}, nullptr, true);
    });
}

GCX_SIM_API(cuMemsetD32_v2, CUdeviceptr to, unsigned value, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 4}, nullptr, true);
    });
}

GCX_SIM_API(cuMemsetD8Async, CUdeviceptr to, unsigned char value, std::size_t count,
            CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 1}, stream, false);
    });
}

GCX_SIM_API(cuMemsetD16Async, CUdeviceptr to, unsigned short value, std::size_t count,
            CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 2}, stream, false);
    });
}

GCX_SIM_API(cuMemsetD32Async, CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, count, count, 1, value, 4}, stream, false);
    });
}

GCX_SIM_API(cuMemsetD2D8_v2, CUdeviceptr to, std::size_t pitch, unsigned char value,
            std::size_t width, std::size_t height) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, pitch, width, height, value, 1}, nullptr, true);
    });
}

GCX_SIM_API(cuMemsetD2D32_v2, CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
            std::size_t height) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return fill(machine, {to, pitch, width, height, value, 4}, nullptr, true);
    });
}

GCX_SIM_API(cuPointerGetAttribute, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return pointer_attribute(machine, out, attribute, address);
    });
}

GCX_SIM_API(cuPointerGetAttributes, unsigned count, CUpointer_attribute* attributes, void** outs,
            CUdeviceptr address) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (attributes == nullptr || outs == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        // Of memory that CUDA knows nothing of, the attributes are zero.
        for (unsigned i = 0; i < count; i++)
            if (outs[i] != nullptr &&
                pointer_attribute(machine, outs[i], attributes[i], address) != CUDA_SUCCESS)
                give(outs[i], 0);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuPointerSetAttribute, const void* value, CUpointer_attribute attribute,
            CUdeviceptr address) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
                       find_allocation(machine, address) != nullptr
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    });
}

} // namespace gcx::sim
