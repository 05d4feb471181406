// Memory operations of streams: when they write, and what waits for a value.
#include "support.hpp"

#include <atomic>
#include <thread>

using namespace sim_test;

namespace {

constexpr uint64_t kMs = 1'000'000;

void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Words of the host that the device can use.
struct Words {
    Words() {
        void* memory = nullptr;
        CHECK_OK(cuMemAllocHost_v2(&memory, 64));
        host = static_cast<std::atomic<uint32_t>*>(memory);
        device = reinterpret_cast<CUdeviceptr>(memory);
    }
    std::atomic<uint32_t>* host = nullptr;
    CUdeviceptr device = 0;
};

void write_takes_effect_in_the_order_of_the_stream() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    CHECK_OK(primary.spin(stream, 5 * kMs));
    CHECK_OK(cuStreamWriteValue32_v2(stream, words.device, 7, 0));
    CHECK_OK(cuStreamWriteValue64_v2(stream, words.device + 8, uint64_t{3} << 32, 0));
    CHECK_EQ(words.host[0].load(), 0U);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQ(words.host[0].load(), 7U);
    CHECK_EQ(words.host[3].load(), 3U);
}

void wait_holds_its_stream_until_another_stream_writes() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream waits = new_stream();
    CUstream writes = new_stream();
    CUstream other = new_stream();
    CHECK_OK(cuStreamWaitValue32_v2(waits, words.device, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_OK(primary.load(waits, words.device + 4, words.device));
    CHECK_OK(primary.spin(other, kMs));
    CHECK_OK(cuStreamSynchronize(other));
    CHECK_EQ(cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
    CHECK_OK(primary.spin(writes, 5 * kMs));
    CHECK_OK(cuStreamWriteValue32_v2(writes, words.device, 1, 0));
    const uint64_t written = clock_ns() + 5 * kMs;
    CHECK_OK(cuStreamSynchronize(waits));
    CHECK(clock_ns() >= written);
    CHECK_EQ(words.host[1].load(), 1U);
}

// The call releases the lock, so that another thread can make calls meanwhile.
void synchronize_waits_for_the_program() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    CHECK_OK(cuStreamWaitValue32_v2(stream, words.device, 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(primary.load(stream, words.device + 4, words.device));
    CUcontext context = primary.context;
    std::thread writer([&] {
        while (gcx_sim_calls("cuStreamSynchronize") == 0)
            sleep_ms(1);
        sleep_ms(20);
        CHECK_OK(cuCtxSetCurrent(context));
        CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        words.host[0] = 2;
    });
    CHECK_OK(cuStreamSynchronize(stream));
    writer.join();
    CHECK_EQ(words.host[1].load(), 2U);
}

void wait_ends_without_calls() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    std::atomic<bool> called = false;
    CHECK_OK(cuStreamWaitValue32_v2(stream, words.device, 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(cuLaunchHostFunc(
        stream, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &called));
    sleep_ms(10);
    CHECK(!called);
    words.host[0] = 1;
    for (int i = 0; i < 5000 && !called; i++)
        sleep_ms(1);
    CHECK(called);
}

// Returns whether a wait for the value ends when memory has another.
bool ends(uint32_t found, uint32_t value, unsigned flags) {
    const Words words;
    CUstream stream = new_stream();
    words.host[0] = found;
    CHECK_OK(cuStreamWaitValue32_v2(stream, words.device, value, flags));
    gcx_sim_advance(kMs);
    const bool ended = cuStreamQuery(stream) == CUDA_SUCCESS;
    words.host[0] = value;
    return ended;
}

void flags_say_how_to_compare() {
    simulate("h100");
    Primary primary;
    CHECK(ends(5, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(ends(3, 0xffff'fff0, CU_STREAM_WAIT_VALUE_GEQ)); // cyclic
    CHECK(!ends(4, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(!ends(6, 5, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(ends(6, 2, CU_STREAM_WAIT_VALUE_AND));
    CHECK(!ends(4, 2, CU_STREAM_WAIT_VALUE_AND));
    CHECK(ends(1, 2, CU_STREAM_WAIT_VALUE_NOR));
    CHECK(!ends(0xffff'fffd, 2, CU_STREAM_WAIT_VALUE_NOR));
}

void batch_keeps_its_order() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    CUstreamBatchMemOpParams operations[3] = {};
    operations[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[0].waitValue.address = words.device;
    operations[0].waitValue.value = 1;
    operations[1].operation = CU_STREAM_MEM_OP_BARRIER;
    operations[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[2].writeValue.address = words.device + 8;
    operations[2].writeValue.value64 = 4;
    CHECK_OK(cuStreamBatchMemOp_v2(stream, 3, operations, 0));
    gcx_sim_advance(kMs);
    CHECK_EQ(words.host[2].load(), 0U);
    words.host[0] = 1;
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQ(words.host[2].load(), 4U);
    operations[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32; // of no memory
    CHECK_EQ(cuStreamBatchMemOp_v2(stream, 3, operations, 0), CUDA_ERROR_INVALID_VALUE);
}

void wrong_addresses_and_flags_are_refused() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    CHECK_EQ(cuStreamWriteValue32_v2(stream, words.device + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamWriteValue64_v2(stream, words.device + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamWriteValue32_v2(stream, 64, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamWriteValue32_v2(stream, words.device, 1, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamWaitValue32_v2(stream, words.device, 1, 4), CUDA_ERROR_INVALID_VALUE);
}

void node_of_a_graph_waits_and_writes() {
    simulate("h100");
    Primary primary;
    const Words words;
    CUstream stream = new_stream();
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_OK(cuStreamWaitValue32_v2(stream, words.device, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_OK(cuStreamWriteValue32_v2(stream, words.device + 4, 6, 0));
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK_OK(cuGraphLaunch(executable, stream));
    gcx_sim_advance(kMs);
    CHECK_EQ(words.host[1].load(), 0U);
    words.host[0] = 1;
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQ(words.host[1].load(), 6U);
}

void new_machine_ends_a_wait() {
    simulate("h100");
    CUcontext context = nullptr;
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    const Words words;
    CUstream stream = new_stream();
    CHECK_OK(cuStreamWaitValue32_v2(stream, words.device, 1, CU_STREAM_WAIT_VALUE_EQ));
    CUresult waited = CUDA_SUCCESS;
    std::thread waiter([&] { waited = cuStreamSynchronize(stream); });
    while (gcx_sim_calls("cuStreamSynchronize") == 0)
        sleep_ms(1);
    sleep_ms(5);
    simulate("h100");
    waiter.join();
    CHECK_EQ(waited, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(gcx_sim_configure("h100"), 0);
}

} // namespace

int main() {
    write_takes_effect_in_the_order_of_the_stream();
    wait_holds_its_stream_until_another_stream_writes();
    synchronize_waits_for_the_program();
    wait_ends_without_calls();
    flags_say_how_to_compare();
    batch_keeps_its_order();
    wrong_addresses_and_flags_are_refused();
    node_of_a_graph_waits_and_writes();
    new_machine_ends_a_wait();
    return check::summary("memory operations");
}
