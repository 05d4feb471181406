// Copies and memsets without a stream: what they wait for, and whether the host waits.
#include "targets.hpp"

#include <cstring>

namespace conformance {
namespace {

using Kind = StreamKind;

constexpr std::size_t kBytes = 4096;

CUarray make_array() {
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = kBytes / 4;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
    shape.NumChannels = 1;
    CUarray array = nullptr;
    MUST(cuArrayCreate_v2, &array, &shape);
    return array;
}

// Memory of a copy. Slow work sets *source or *target to 1; the host's words and the arrays have 9.
struct Memory {
    CUdeviceptr source = device_words(kBytes);
    CUdeviceptr target = device_words(kBytes);
    volatile uint32_t* pinned = host_words(kBytes);
    uint32_t pageable[kBytes / 4];
    CUarray array = nullptr;
    CUarray second_array = nullptr;
    bool per_thread = false; // call the _ptds variants
};

// A function as its _ptds variant if the memory says so.
#define CU_OF(memory, symbol) CU_LIKE(symbol, (memory).per_thread ? #symbol "_ptds" : #symbol)

// How the answer shows: the copy reads *source into *target or into pageable[0], or it overwrites
// *target with 9.
enum class Effect { kToDevice, kToHost, kOverwrites };

struct Copy {
    const char* name; // as libcuda exports it, without _v2
    Effect effect;
    CUresult (*call)(Memory& m);
    bool arrays = false;
};

template <class Struct>
Struct plane(CUdeviceptr from, CUdeviceptr to) {
    Struct copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.srcPitch = copy.dstPitch = 512;
    copy.WidthInBytes = 4;
    copy.Height = 1;
    return copy;
}

template <class Struct>
Struct cube(CUdeviceptr from, CUdeviceptr to) {
    auto copy = plane<Struct>(from, to);
    copy.srcHeight = copy.dstHeight = 1;
    copy.Depth = 1;
    return copy;
}

CUresult copy_3d_peer(Memory& m) {
    auto copy = cube<CUDA_MEMCPY3D_PEER>(m.source, m.target);
    copy.srcContext = copy.dstContext = gpu.primary;
    return CU_OF(m, cuMemcpy3DPeer)(&copy);
}

const Copy kCopies[] = {
    {"cuMemcpy", Effect::kToDevice,
     [](Memory& m) { return CU_OF(m, cuMemcpy)(m.target, m.source, 4); }},
    {"cuMemcpy_to_host", Effect::kToHost,
     [](Memory& m) { return CU_OF(m, cuMemcpy)(address_of(m.pageable), m.source, 4); }},
    {"cuMemcpyPeer", Effect::kToDevice,
     [](Memory& m) {
         return CU_OF(m, cuMemcpyPeer)(m.target, gpu.primary, m.source, gpu.primary, 4);
     }},
    {"cuMemcpyHtoD", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemcpyHtoD_v2)(m.target, m.pageable, 4); }},
    {"cuMemcpyHtoD_pinned", Effect::kOverwrites,
     [](Memory& m) {
         return CU_OF(m, cuMemcpyHtoD_v2)(m.target, const_cast<uint32_t*>(m.pinned), 4);
     }},
    {"cuMemcpyDtoH", Effect::kToHost,
     [](Memory& m) { return CU_OF(m, cuMemcpyDtoH_v2)(m.pageable, m.source, 4); }},
    {"cuMemcpyDtoD", Effect::kToDevice,
     [](Memory& m) { return CU_OF(m, cuMemcpyDtoD_v2)(m.target, m.source, 4); }},
    {"cuMemcpyDtoA", Effect::kToDevice, // through the array
     [](Memory& m) { return CU_OF(m, cuMemcpyDtoA_v2)(m.array, 0, m.source, 4); }, true},
    {"cuMemcpyAtoD", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemcpyAtoD_v2)(m.target, m.array, 0, 4); }, true},
    {"cuMemcpyHtoA", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemcpyHtoA_v2)(m.array, 0, m.pageable, 4); }, true},
    {"cuMemcpyAtoH", Effect::kToHost,
     [](Memory& m) { return CU_OF(m, cuMemcpyAtoH_v2)(m.pageable, m.array, 0, 4); }, true},
    {"cuMemcpyAtoA", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemcpyAtoA_v2)(m.second_array, 0, m.array, 0, 4); }, true},
    {"cuMemcpy2D", Effect::kToDevice,
     [](Memory& m) {
         const auto copy = plane<CUDA_MEMCPY2D>(m.source, m.target);
         return CU_OF(m, cuMemcpy2D_v2)(&copy);
     }},
    {"cuMemcpy2DUnaligned", Effect::kToDevice,
     [](Memory& m) {
         const auto copy = plane<CUDA_MEMCPY2D>(m.source, m.target);
         return CU_OF(m, cuMemcpy2DUnaligned_v2)(&copy);
     }},
    {"cuMemcpy3D", Effect::kToDevice,
     [](Memory& m) {
         const auto copy = cube<CUDA_MEMCPY3D>(m.source, m.target);
         return CU_OF(m, cuMemcpy3D_v2)(&copy);
     }},
    {"cuMemcpy3DPeer", Effect::kToDevice, copy_3d_peer},
    {"cuMemsetD8", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD8_v2)(m.target, 9, 1); }},
    {"cuMemsetD16", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD16_v2)(m.target, 9, 1); }},
    {"cuMemsetD32", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD32_v2)(m.target, 9, 1); }},
    {"cuMemsetD32_pinned", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD32_v2)(address_of(m.pinned), 7, 1); }},
    {"cuMemsetD2D8", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD2D8_v2)(m.target, 512, 9, 1, 2); }},
    {"cuMemsetD2D16", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD2D16_v2)(m.target, 512, 9, 1, 2); }},
    {"cuMemsetD2D32", Effect::kOverwrites,
     [](Memory& m) { return CU_OF(m, cuMemsetD2D32_v2)(m.target, 512, 9, 1, 2); }},
};

Memory make_memory(const Copy& copy, bool per_thread) {
    Memory memory;
    memory.per_thread = per_thread;
    for (uint32_t& word : memory.pageable)
        word = 9;
    *memory.pinned = 9;
    if (copy.arrays) {
        memory.array = make_array();
        memory.second_array = make_array();
        MUST(cuMemcpyHtoA_v2, memory.array, 0, memory.pageable, 4);
        MUST(cuMemcpyHtoA_v2, memory.second_array, 0, memory.pageable, 4);
    }
    return memory;
}

// Arrays are written by no kernel here: for them, order shows in whether the host or an event waits.
std::string order_of(const Copy& copy, Memory& memory) {
    settle();
    const std::string name = copy.name;
    if (copy.arrays && name != "cuMemcpyAtoD" && name != "cuMemcpyDtoA")
        return "";
    if (name == "cuMemsetD32_pinned")
        return "";
    if (name == "cuMemcpyDtoA")
        MUST(cuMemcpyAtoD_v2, memory.target, memory.array, 0, 4);
    const bool ordered = copy.effect == Effect::kToHost     ? memory.pageable[0] == 1
                         : copy.effect == Effect::kToDevice ? read_word(memory.target) == 1
                                                            : read_word(memory.target) % 256 == 9;
    return ordered ? "ordered, " : "independent, ";
}

// Slow work in a stream, then the copy.
std::string copy_after(const Copy& copy, Kind kind, bool per_thread) {
    Memory memory = make_memory(copy, per_thread);
    const Target slow = make_target(kind);
    const CUdeviceptr written = copy.effect == Effect::kOverwrites ? memory.target : memory.source;
    const CUresult launched = store(slow, written, 1);
    if (launched != CUDA_SUCCESS)
        return name_of(launched);
    const CUevent end = make_event();
    must(CU_AT(slow, cuEventRecord)(end, slow.stream), "cuEventRecord");
    const CUresult result = copy.call(memory);
    const CUresult running = CU(cuEventQuery)(end);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    const std::string order = order_of(copy, memory);
    return order + (running == CUDA_ERROR_NOT_READY ? "the host does not wait" : "the host waits");
}

} // namespace

void add_copies(Checks& checks) {
    for (const Copy& copy : kCopies) {
        const std::string name = copy.name;
        checks.add_both("copy_" + name, [&copy] {
            return "after blocking: " + copy_after(copy, Kind::kBlocking, false) +
                   "; after NULL: " + copy_after(copy, Kind::kNull, false) +
                   "; after non-blocking: " + copy_after(copy, Kind::kNonBlocking, false);
        });
        checks.add_primary("copy_" + name + "_ptds", [&copy] {
            return "after per-thread: " + copy_after(copy, Kind::kPtsz, true) +
                   "; after NULL: " + copy_after(copy, Kind::kLegacy, true) +
                   "; after blocking: " + copy_after(copy, Kind::kBlocking, true);
        });
    }
    for (const Copy& copy : kCopies)
        if (copy.name == std::string("cuMemcpy2DUnaligned"))
            checks.add_both("claim_01_blocking_then_cuMemcpy2DUnaligned",
                            [&copy] { return copy_after(copy, Kind::kBlocking, false); });
}

} // namespace conformance
