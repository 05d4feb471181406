// Memory, kernels of modules, copies and fills.
#include "isolation_bodies.hpp"

#include <string>
#include <thread>
#include <vector>

namespace isolation {

// ------------------------------------------------------------------------------------- memory

Body allocate_and_free(Neighbour&) {
    return [] {
        CUdeviceptr memory = 0;
        NEED(raw::cuMemAlloc(&memory, 64 * kMebibyte));
        NEED(raw::cuMemFree(memory));
        return true;
    };
}

Body allocate_alone(Neighbour&) {
    return [left = 2000]() mutable { // 4 GiB, until the process ends
        CUdeviceptr memory = 0;
        NEED(raw::cuMemAlloc(&memory, 2 * kMebibyte));
        return --left > 0;
    };
}

Body free_alone(Neighbour&) {
    std::vector<CUdeviceptr> all(2000);
    for (CUdeviceptr& memory : all)
        NEED(raw::cuMemAlloc(&memory, 2 * kMebibyte));
    return [all]() mutable {
        NEED(raw::cuMemFree(all.back()));
        all.pop_back();
        return !all.empty();
    };
}

Body stream_ordered(Neighbour& n, uint64_t threshold) {
    CUmemoryPool pool = nullptr;
    NEED(raw::cuDeviceGetDefaultMemPool(&pool, 0));
    NEED(raw::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    return [&n] {
        CUdeviceptr memory = 0;
        NEED(raw::cuMemAllocAsync(&memory, 64 * kMebibyte, n.stream()));
        NEED(raw::cuMemFreeAsync(memory, n.stream()));
        return finish(n);
    };
}

Body pinned(Neighbour&) {
    return [] {
        void* memory = nullptr;
        NEED(raw::cuMemHostAlloc(&memory, 16 * kMebibyte, 0));
        NEED(raw::cuMemFreeHost(memory));
        return true;
    };
}

Body registered(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemHostRegister(n.pageable, Neighbour::kHostBytes, 0));
        NEED(raw::cuMemHostUnregister(n.pageable));
        return true;
    };
}

// --------------------------------------------------------------------------- kernels of modules

// So many kernels that differ.
static std::string many_kernels(unsigned count) {
    std::string text = ".version 7.8\n.target sm_90\n.address_size 64\n";
    for (unsigned i = 0; i < count; i++)
        text += ".visible .entry kernel" + std::to_string(i) +
                "(.param .u64 out)\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
                "ld.param.u64 %rd1, [out];\nmov.u32 %r1, " +
                std::to_string(i) + ";\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
    return text;
}

static void launch_by_name(const Neighbour& n, CUlibrary library, unsigned number) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr out = n.to;
    void* arguments[] = {&out};
    const std::string name = "kernel" + std::to_string(number);
    NEED(raw::cuLibraryGetKernel(&kernel, library, name.c_str()));
    NEED(raw::cuKernelGetFunction(&function, kernel));
    NEED(raw::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, n.stream(), arguments, nullptr));
}

Body load_and_unload(Neighbour& n) {
    return [&n, text = many_kernels(4)] {
        CUlibrary library = nullptr;
        NEED(raw::cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                    0));
        launch_by_name(n, library, 0);
        finish(n);
        NEED(raw::cuLibraryUnload(library));
        return true;
    };
}

Body first_launches(Neighbour& n) {
    constexpr unsigned kKernels = 200;
    CUlibrary library = nullptr;
    NEED(raw::cuLibraryLoadData(&library, many_kernels(kKernels).c_str(), nullptr, nullptr, 0,
                                nullptr, nullptr, 0));
    return [&n, library, number = 0U]() mutable {
        launch_by_name(n, library, number++);
        finish(n);
        return number < kKernels;
    };
}

// Each kernel has more local memory than the one before: the driver makes room for all threads
// that the device holds.
Body more_local_memory(Neighbour& n) {
    constexpr unsigned kKernels = 24;
    std::string text = ".version 7.8\n.target sm_90\n.address_size 64\n";
    for (unsigned i = 0; i < kKernels; i++)
        text += ".visible .entry kernel" + std::to_string(i) +
                "(.param .u64 out)\n{\n.local .align 4 .b8 room[" + std::to_string((i + 1) * 512) +
                "];\n.reg .b64 %rd<5>;\n.reg .b32 %r<4>;\nld.param.u64 %rd1, [out];\n"
                "mov.u32 %r1, %clock;\nand.b32 %r1, %r1, 127;\nmul.wide.u32 %rd2, %r1, 4;\n"
                "mov.u64 %rd3, room;\nadd.s64 %rd4, %rd3, %rd2;\nst.local.u32 [%rd4], %r1;\n"
                "ld.local.u32 %r2, [room+64];\nst.global.u32 [%rd1], %r2;\nret;\n}\n";
    CUlibrary library = nullptr;
    NEED(raw::cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    return [&n, library, number = 0U]() mutable {
        launch_by_name(n, library, number++);
        finish(n);
        return number < kKernels;
    };
}

// ------------------------------------------------------------------------------ copies and fills

Body pageable_to_device(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemcpyHtoD(n.to, n.pageable, Neighbour::kHostBytes));
        return true;
    };
}

Body pinned_to_device(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemcpyHtoDAsync(n.to, n.pinned, Neighbour::kHostBytes, n.stream()));
        return finish(n);
    };
}

Body pinned_to_host(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemcpyDtoHAsync(n.pinned, n.to, Neighbour::kHostBytes, n.stream()));
        return finish(n);
    };
}

Body within_device(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemcpyDtoDAsync(n.to, n.from, Neighbour::kBytes, n.stream()));
        return finish(n);
    };
}

// To another device, if there is one that may be reached.
Body to_a_peer(Neighbour& n) {
    int devices = 0;
    int can = 0;
    NEED(raw::cuDeviceGetCount(&devices));
    if (devices > 1)
        NEED(raw::cuDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0)
        return nullptr;
    CUcontext peer = nullptr;
    CUcontext old = nullptr;
    CUdeviceptr there = 0;
    NEED(raw::cuDevicePrimaryCtxRetain(&peer, 1));
    NEED(raw::cuCtxPushCurrent(peer));
    NEED(raw::cuMemAlloc(&there, Neighbour::kBytes));
    NEED(raw::cuCtxPopCurrent(&old));
    return [&n, peer, there] {
        NEED(raw::cuMemcpyPeerAsync(there, peer, n.from, n.context, Neighbour::kBytes, n.stream()));
        return finish(n);
    };
}

Body fill_in_stream(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemsetD8Async(n.to, 1, Neighbour::kBytes, n.stream()));
        return finish(n);
    };
}

Body fill_in_default_stream(Neighbour& n) {
    return [&n] {
        NEED(raw::cuMemsetD8Async(n.to, 1, Neighbour::kBytes, nullptr));
        NEED(raw::cuStreamSynchronize(nullptr));
        return true;
    };
}

Body kernels_in_default_stream(Neighbour& n) {
    return [&n] {
        fill(n, nullptr);
        NEED(raw::cuStreamSynchronize(nullptr));
        return true;
    };
}

Body synchronize_context(Neighbour& n) {
    return [&n] {
        fill(n, n.stream());
        NEED(raw::cuCtxSynchronize());
        return true;
    };
}

// ------------------------------------------------------------------------------- L2 and memory

Body reading(Neighbour& n, std::size_t bytes) {
    return [&n, bytes] {
        for (int i = 0; i < 4; i++)
            NEED(raw::launch_read(n.stream(), n.from, static_cast<uint32_t>(bytes / 4), 2 * n.sms));
        return finish(n);
    };
}

Body computing(Neighbour& n) {
    return [&n] {
        fill(n, n.stream());
        return finish(n);
    };
}

Body nothing(Neighbour&) {
    return [] {
        std::this_thread::yield();
        return true;
    };
}

} // namespace isolation
