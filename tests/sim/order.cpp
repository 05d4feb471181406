// The order and the times of effects: what a program sees that misses an order, the order that the
// driver keeps by itself, and which calls wait.
#include "support.hpp"

#include <cstdlib>
#include <functional>
#include <thread>

using namespace sim_test;

namespace {

constexpr uint64_t kMs = 1'000'000;

// Pinned words, which the host and kernels use by one address. The host sees at once what happened.
struct Words {
    Words() {
        void* pointer = nullptr;
        CHECK_OK(cuMemHostAlloc(&pointer, kCount * sizeof(uint32_t), 0));
        words = static_cast<uint32_t*>(pointer);
    }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;
    ~Words() { CHECK_OK(cuMemFreeHost(words)); }
    uint32_t& operator[](std::size_t index) { return words[index]; }
    CUdeviceptr at(std::size_t index) const { return to_device(words + index); }

    static constexpr std::size_t kCount = 16;
    uint32_t* words = nullptr;
};

CUdeviceptr new_memory(std::size_t bytes = 64) {
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAlloc_v2(&memory, bytes));
    CHECK_OK(cuMemsetD32_v2(memory, 0, bytes / 4));
    return memory;
}

uint32_t value_at(CUdeviceptr address) {
    uint32_t value = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&value, address, sizeof value));
    return value;
}

CUstream new_blocking_stream() {
    CUstream stream = nullptr;
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    return stream;
}

// Returns how long a call takes on the simulated clock.
uint64_t duration_of(const std::function<CUresult()>& call) {
    const uint64_t before = clock_ns();
    CHECK_OK(call());
    return clock_ns() - before;
}

void in_another_thread(const std::function<void()>& body) {
    CUcontext context = nullptr;
    CHECK_OK(cuCtxGetCurrent(&context));
    std::thread([&] {
        CHECK_OK(cuCtxSetCurrent(context));
        body();
    }).join();
}

// Effects.

CUgraphExec graph_of(const std::function<void(CUstream)>& work) {
    CUstream stream = new_stream();
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    work(stream);
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuStreamDestroy_v2(stream));
    return exec;
}

void effects_happen_at_the_end_of_their_work() {
    simulate("h100");
    Primary primary;
    Words words;
    CUstream stream = new_stream();
    words[1] = 7;
    const CUgraphExec exec =
        graph_of([&](CUstream captured) { CHECK_OK(primary.store(captured, words.at(0), 7)); });
    const std::function<CUresult()> works[] = {
        [&] { return primary.store(stream, words.at(0), 7); },
        [&] { return primary.load(stream, words.at(0), words.at(1)); },
        [&] { return primary.add(stream, words.at(0), 7); },
        [&] { return cuMemsetD32Async(words.at(0), 7, 1, stream); },
        [&] { return cuMemcpyDtoDAsync_v2(words.at(0), words.at(1), 4, stream); },
        [&] { return cuMemcpyHtoDAsync_v2(words.at(0), &words[1], 4, stream); },
        [&] { return cuMemcpyDtoHAsync_v2(&words[0], words.at(1), 4, stream); },
        [&] { return cuGraphLaunch(exec, stream); },
    };
    for (const auto& work : works) {
        words[0] = 0;
        CHECK_OK(primary.spin(stream, 2 * kMs));
        CHECK_OK(work());
        CHECK_EQ(words[0], 0U);
        gcx_sim_advance(kMs);
        CHECK_EQ(words[0], 0U);
        gcx_sim_advance(kMs);
        gcx_sim_advance(kMs);
        CHECK_EQ(words[0], 7U);
        CHECK_OK(cuStreamQuery(stream));
    }
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuStreamDestroy_v2(stream));
}

// The cost of calls moves the clock too.
void effects_happen_while_a_program_polls() {
    simulate("h100");
    Primary primary;
    Words words;
    CUstream stream = new_stream();
    words[0] = 0;
    CHECK_OK(primary.store(stream, words.at(0), 1, 100'000));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        CHECK_EQ(words[0], 0U);
    CHECK_EQ(words[0], 1U);
    CHECK_OK(cuStreamDestroy_v2(stream));
}

void independent_streams_act_in_the_order_of_the_clock() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream one = new_stream();
    CUstream two = new_stream();
    CHECK_OK(primary.store(one, memory, 1, 3 * kMs));
    CHECK_OK(primary.store(two, memory, 2, 1 * kMs));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory), 1U);
    // Not commutative: 3 * (3 * 1 + 5) + 4.
    CHECK_OK(primary.spin(one, kMs));
    CHECK_OK(primary.add(one, memory, 4));
    CHECK_OK(primary.add(two, memory, 5));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory), 28U);
    CHECK_OK(cuMemFree_v2(memory));
}

void reader_without_an_order_sees_the_old_value() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream writer = new_stream();
    CUstream reader = new_stream();
    CUevent written = new_event();
    CHECK_OK(primary.store(writer, memory, 1, 3 * kMs));
    CHECK_OK(primary.load(reader, memory + 4, memory));
    CHECK_OK(cuEventRecord(written, writer));
    CHECK_OK(cuStreamWaitEvent(reader, written, 0));
    CHECK_OK(primary.load(reader, memory + 8, memory));
    CHECK_OK(cuStreamSynchronize(reader));
    CHECK_EQ(value_at(memory + 4), 0U);
    CHECK_EQ(value_at(memory + 8), 1U);
    // What is destroyed directly after the wait has its order.
    CHECK_OK(primary.store(writer, memory, 2, 3 * kMs));
    CHECK_OK(cuEventRecord(written, writer));
    CHECK_OK(cuStreamWaitEvent(reader, written, 0));
    CHECK_OK(cuEventDestroy_v2(written));
    CHECK_OK(cuStreamDestroy_v2(writer));
    CHECK_OK(primary.load(reader, memory + 8, memory));
    CHECK_OK(cuStreamSynchronize(reader));
    CHECK_EQ(value_at(memory + 8), 2U);
    CHECK_OK(cuMemFree_v2(memory));
}

// Copies from and to pageable memory.

void pageable_source_is_read_in_the_call() {
    simulate("h100");
    Primary primary;
    Words words;
    const CUdeviceptr memory = new_memory();
    CUstream stream = new_stream();
    uint32_t pageable = 1;
    words[0] = 1;
    CHECK_OK(primary.spin(stream, kMs));
    CHECK_OK(cuMemcpyHtoDAsync_v2(memory, &pageable, 4, stream));
    CHECK_OK(cuMemcpyHtoDAsync_v2(memory + 4, &words[0], 4, stream));
    pageable = 2;
    words[0] = 2;
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQ(value_at(memory), 1U);
    CHECK_EQ(value_at(memory + 4), 2U); // it is read when the stream comes to it
    CHECK_OK(cuMemFree_v2(memory));
}

void copy_to_pageable_memory_returns_when_done() {
    simulate("h100");
    Primary primary;
    Words words;
    const CUdeviceptr memory = new_memory();
    CUstream stream = new_stream();
    uint32_t pageable = 0;
    CHECK_OK(primary.store(stream, memory, 5, 10 * kMs));
    CHECK(duration_of([&] { return cuMemcpyDtoHAsync_v2(&words[0], memory, 4, stream); }) < kMs);
    CHECK(duration_of([&] { return cuMemcpyDtoHAsync_v2(&pageable, memory, 4, stream); }) >
          9 * kMs);
    CHECK_EQ(pageable, 5U);
    CHECK_EQ(words[0], 5U);
    // Registered memory is not pageable.
    void* const raw = std::aligned_alloc(4096, 4096);
    CHECK_OK(cuMemHostRegister_v2(raw, 4096, 0));
    CHECK_OK(primary.spin(stream, 10 * kMs));
    CHECK(duration_of([&] { return cuMemcpyDtoHAsync_v2(raw, memory, 4, stream); }) < kMs);
    CHECK(duration_of([&] { return cuMemHostUnregister(raw); }) > 9 * kMs);
    CHECK_EQ(*static_cast<uint32_t*>(raw), 5U);
    std::free(raw);
    CHECK_OK(cuMemFree_v2(memory));
}

// The order of the default stream.

// A stream of a context that is current, and how the driver treats it by the recording.
struct Kind {
    const char* name;
    CUstream stream;
    bool blocking;
    bool legacy;
};

// Actions that copy a word of device memory, or let another stream copy it.
struct Reader {
    const char* name;
    bool synchronous; // without a stream, and so in NULL
    std::function<void(CUstream, CUdeviceptr, CUdeviceptr)> read;
};

std::vector<Reader> readers(Primary& primary) {
    return {
        {"kernel", false,
         [&](CUstream stream, CUdeviceptr to, CUdeviceptr from) {
             CHECK_OK(primary.load(stream, to, from));
         }},
        {"copy", false,
         [](CUstream stream, CUdeviceptr to, CUdeviceptr from) {
             CHECK_OK(cuMemcpyDtoDAsync_v2(to, from, 4, stream));
         }},
        {"graph", false,
         [&](CUstream stream, CUdeviceptr to, CUdeviceptr from) {
             const CUgraphExec exec =
                 graph_of([&](CUstream captured) { CHECK_OK(primary.load(captured, to, from)); });
             CHECK_OK(cuGraphLaunch(exec, stream));
             CHECK_OK(cuGraphExecDestroy(exec));
         }},
        {"event", false,
         [&](CUstream stream, CUdeviceptr to, CUdeviceptr from) {
             CUstream other = new_stream();
             CUevent event = new_event();
             CHECK_OK(cuEventRecord(event, stream));
             CHECK_OK(cuStreamWaitEvent(other, event, 0));
             CHECK_OK(primary.load(other, to, from));
             CHECK_OK(cuEventDestroy_v2(event));
             CHECK_OK(cuStreamDestroy_v2(other));
         }},
        {"cuMemcpyDtoD", true,
         [](CUstream, CUdeviceptr to, CUdeviceptr from) {
             CHECK_OK(cuMemcpyDtoD_v2(to, from, 4));
         }},
        {"cuMemcpy to the host", true,
         [](CUstream, CUdeviceptr to, CUdeviceptr from) {
             uint32_t value = 0;
             CHECK_OK(cuMemcpyDtoH_v2(&value, from, 4));
             CHECK_OK(cuMemcpyHtoD_v2(to, &value, 4));
         }},
    };
}

// Checks for each two kinds of streams whether a reader in the second sees what the first writes.
void check_order(Primary& primary, const std::vector<Kind>& kinds, bool keeps_order) {
    const CUdeviceptr memory = new_memory();
    uint32_t value = 100;
    for (const Kind& writes : kinds) {
        for (const Kind& reads : kinds) {
            for (const Reader& reader : readers(primary)) {
                if (reader.synchronous && !reads.legacy)
                    continue;
                value++;
                CHECK_OK(cuCtxSynchronize());
                CHECK_OK(primary.store(writes.stream, memory, value, 50 * kMs));
                reader.read(reads.stream, memory + 4, memory);
                CHECK_OK(cuCtxSynchronize());
                const bool ordered =
                    &writes == &reads || (keeps_order && ((writes.blocking && reads.legacy) ||
                                                          (writes.legacy && reads.blocking)));
                if (!CHECK_EQ(value_at(memory + 4) == value, ordered))
                    std::fprintf(stderr, "  %s, then %s in %s\n", writes.name, reader.name,
                                 reads.name);
            }
        }
    }
    CHECK_OK(cuMemFree_v2(memory));
}

void plain_context_orders_null_and_blocking_streams() {
    simulate("h100");
    Primary primary;
    check_order(primary,
                {{"NULL", nullptr, false, true},
                 {"blocking", new_blocking_stream(), true, false},
                 {"non-blocking", new_stream(), false, false},
                 {"per-thread", CU_STREAM_PER_THREAD, true, false}},
                true);
}

void green_context_orders_nothing() {
    simulate("h100");
    Primary primary;
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    CUstream blocking = new_blocking_stream();
    check_order(primary,
                {{"NULL", nullptr, false, true},
                 {"blocking", blocking, true, false},
                 {"non-blocking", part.stream, false, false}},
                false);
    for (CUstream stream : {CUstream{}, CU_STREAM_LEGACY, blocking, part.stream}) {
        unsigned flags = 0;
        CHECK_OK(cuStreamGetFlags(stream, &flags));
        CHECK_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
    }
    // Neither does the primary context's NULL stream wait for it.
    const CUdeviceptr memory = new_memory();
    CHECK_OK(primary.store(blocking, memory, 1, 50 * kMs));
    CHECK_OK(cuCtxPushCurrent_v2(primary.context));
    CHECK_EQ(value_at(memory), 0U);
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory), 1U);
    CHECK_OK(cuMemFree_v2(memory));
    CHECK_OK(cuStreamDestroy_v2(blocking));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
}

void event_in_null_separates_blocking_work() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream one = new_blocking_stream();
    CUstream two = new_blocking_stream();
    CUevent event = new_event();
    CHECK_OK(primary.store(one, memory, 1, 50 * kMs));
    CHECK_OK(primary.load(two, memory + 4, memory)); // two blocking streams are independent
    CHECK_OK(cuEventRecord(event, nullptr));
    CHECK_OK(primary.load(two, memory + 8, memory));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory + 4), 0U);
    CHECK_EQ(value_at(memory + 8), 1U);
    CHECK_OK(cuEventDestroy_v2(event));
    CHECK_OK(cuMemFree_v2(memory));
}

void null_stream_waits_for_blocking_work_without_an_action() {
    simulate("h100");
    Primary primary;
    CUstream blocking = new_blocking_stream();
    CUstream other = new_stream();
    CHECK_OK(primary.spin(other, 50 * kMs));
    CHECK_OK(cuStreamQuery(nullptr));
    CHECK_OK(primary.spin(blocking, 10 * kMs));
    CHECK_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    const uint64_t waited = duration_of([] { return cuStreamSynchronize(nullptr); });
    CHECK(waited > 9 * kMs && waited < 11 * kMs);
    CHECK_OK(cuStreamQuery(nullptr));
    CHECK_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuCtxSynchronize());
    // A blocking stream that has had no action since does not wait for NULL.
    CHECK_OK(primary.spin(nullptr, 10 * kMs));
    CHECK_OK(cuStreamQuery(blocking));
    CHECK(duration_of([&] { return cuStreamSynchronize(blocking); }) < kMs);
    CUevent event = new_event();
    CHECK_OK(cuEventRecord(event, blocking));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    CHECK(duration_of([&] { return cuEventSynchronize(event); }) > 9 * kMs);
    CHECK_OK(cuEventDestroy_v2(event));
}

void work_of_destroyed_streams_counts() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream stream = new_blocking_stream();
    CHECK_OK(primary.store(stream, memory, 1, 50 * kMs));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    CHECK_EQ(value_at(memory), 1U);
    stream = new_stream();
    CHECK_OK(primary.store(stream, memory, 2, 50 * kMs));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_EQ(value_at(memory), 1U);
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory), 2U);
    // The per-thread default stream of a thread that has ended.
    in_another_thread([&] { CHECK_OK(primary.store(CU_STREAM_PER_THREAD, memory, 3, 50 * kMs)); });
    CHECK_EQ(value_at(memory), 3U);
    CHECK_OK(cuMemFree_v2(memory));
}

void work_outlives_its_green_context() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    Partition part({split(query(), 1, 0, 24).groups[0]});
    CHECK_OK(primary.store(part.stream, memory, 1, 50 * kMs));
    part.destroy_stream();
    CHECK_OK(part.destroy_context());
    CHECK_EQ(value_at(memory), 0U);
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory), 1U);
    CHECK_OK(cuMemFree_v2(memory));
}

// Waits.

void calls_without_a_stream_wait_only_for_host_memory() {
    simulate("h100");
    Primary primary;
    Words words;
    const CUdeviceptr memory = new_memory();
    CUdeviceptr managed = 0;
    CHECK_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    uint32_t pageable = 0;
    const auto waits = [&](const std::function<CUresult()>& call) {
        CHECK_OK(cuCtxSynchronize());
        CHECK_OK(primary.spin(nullptr, 50 * kMs));
        return duration_of(call) > 49 * kMs;
    };
    CHECK(!waits([&] { return cuMemsetD8_v2(memory, 0, 4); }));
    CHECK(!waits([&] { return cuMemsetD2D32_v2(memory, 8, 0, 1, 2); }));
    CHECK(!waits([&] { return cuMemcpyDtoD_v2(memory, memory + 8, 4); }));
    CHECK(!waits([&] { return cuMemcpy(memory, memory + 8, 4); }));
    CHECK(waits([&] { return cuMemcpyDtoH_v2(&pageable, memory, 4); }));
    CHECK(waits([&] { return cuMemcpyHtoD_v2(memory, &pageable, 4); }));
    CHECK(waits([&] { return cuMemcpy(memory, to_device(&pageable), 4); }));
    CHECK(waits([&] { return cuMemcpy(memory, words.at(0), 4); }));
    CHECK(waits([&] { return cuMemsetD32_v2(words.at(0), 0, 1); }));
    CHECK(waits([&] { return cuMemsetD32_v2(managed, 0, 1); }));
    CHECK_OK(cuMemFree_v2(managed));
    CHECK_OK(cuMemFree_v2(memory));
}

void calls_that_free_or_load_wait_for_the_device() {
    simulate("h100");
    Primary primary;
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    CUdeviceptr memory = 0;
    void* host = nullptr;
    CUmodule module = nullptr;
    const auto waits = [&](const std::function<CUresult()>& call) {
        CHECK_OK(cuCtxSynchronize());
        CHECK_OK(primary.spin(part.stream, 50 * kMs));
        return duration_of(call) > 49 * kMs;
    };
    CHECK(!waits([&] { return cuMemAlloc_v2(&memory, 64); }));
    CHECK(!waits([&] { return cuMemHostAlloc(&host, 64, 0); }));
    CHECK(waits([&] { return cuMemFree_v2(memory); }));
    CHECK(waits([&] { return cuMemFreeHost(host); }));
    CHECK(waits([&] { return cuModuleLoadData(&module, kPtx); }));
    CHECK(waits([&] { return cuModuleUnload(module); }));
}

// By the programming guide a peer copy waits for the work of both devices.
void peer_copy_waits_for_both_devices() {
    simulate("2xh100");
    Primary there(1);
    const CUdeviceptr far = new_memory();
    Primary here(0);
    const CUdeviceptr near = new_memory();
    CHECK_OK(here.store(new_stream(), near, 1, 50 * kMs));
    CHECK_OK(cuCtxPushCurrent_v2(there.context));
    CHECK_OK(cuMemcpyPeer(far, there.context, near, here.context, 4));
    CHECK_EQ(value_at(far), 1U);
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
}

// Memory in the order of streams.

void freed_memory_is_used_until_its_time() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr result = new_memory();
    CUstream stream = new_stream();
    CUstream other = new_stream();
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    CUdeviceptr third = 0;
    CHECK_OK(cuMemAllocAsync(&first, 64, stream));
    CHECK_OK(primary.store(stream, first, 1, 50 * kMs));
    CHECK_OK(primary.load(stream, result, first));
    CHECK_OK(cuMemFreeAsync(first, stream));
    CHECK_EQ(cuMemFreeAsync(first, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemAllocAsync(&second, 64, other)); // in use by the other stream
    CHECK(second != first);
    CHECK_OK(cuMemAllocAsync(&third, 64, stream));
    CHECK_EQ(third, first);
    CHECK_OK(primary.store(stream, third, 2));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQ(value_at(result), 1U);
    // What is free by now can be used by any stream, until the pool returns it at a wait.
    CHECK_OK(cuMemFreeAsync(third, stream));
    CHECK_OK(cuMemAllocAsync(&first, 64, other));
    CHECK_EQ(first, third);
    CHECK_OK(cuMemFreeAsync(first, other));
    CHECK_OK(cuMemFreeAsync(second, other));
    CHECK_OK(cuStreamSynchronize(other));
    CHECK_EQ(counts_now().allocations, uint64_t{2}); // of this test and of Primary
    CHECK_EQ(cuMemcpyDtoD_v2(result, first, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(result));
}

} // namespace

int main() {
    effects_happen_at_the_end_of_their_work();
    effects_happen_while_a_program_polls();
    independent_streams_act_in_the_order_of_the_clock();
    reader_without_an_order_sees_the_old_value();
    pageable_source_is_read_in_the_call();
    copy_to_pageable_memory_returns_when_done();
    plain_context_orders_null_and_blocking_streams();
    green_context_orders_nothing();
    event_in_null_separates_blocking_work();
    null_stream_waits_for_blocking_work_without_an_action();
    work_of_destroyed_streams_counts();
    work_outlives_its_green_context();
    calls_without_a_stream_wait_only_for_host_memory();
    calls_that_free_or_load_wait_for_the_device();
    peer_copy_waits_for_both_devices();
    freed_memory_is_used_until_its_time();
    return check::summary("order");
}
