// Host functions: where and when they run, and what waits for them.
#include "support.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

using namespace sim_test;

namespace {

constexpr uint64_t kMs = 1'000'000;

// A body that runs as a host function.
using Body = std::function<void()>;

void call_body(void* body) {
    (*static_cast<Body*>(body))();
}

CUresult run_on_host(CUstream stream, Body& body) {
    return cuLaunchHostFunc(stream, call_body, &body);
}

void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// A host function that holds its stream until it is released.
struct Hold {
    std::atomic<bool> begun = false;
    std::atomic<bool> released = false;
    Body body = [this] {
        begun = true;
        while (!released)
            sleep_ms(1);
    };
};

CUdeviceptr new_memory() {
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAlloc_v2(&memory, 64));
    CHECK_OK(cuMemsetD32_v2(memory, 0, 16));
    return memory;
}

// Reads in the order of a stream.
uint32_t value_at(CUdeviceptr address, CUstream stream) {
    uint32_t value = 0;
    CHECK_OK(cuMemcpyDtoHAsync_v2(&value, address, sizeof value, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    return value;
}

void function_runs_in_its_thread_when_its_time_has_come() {
    simulate("h100");
    Primary primary;
    CUstream stream = new_stream();
    std::thread::id first_thread;
    std::thread::id second_thread;
    uint64_t at = 0;
    bool blocks_signals = false;
    Body first = [&] {
        at = clock_ns();
        first_thread = std::this_thread::get_id();
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        blocks_signals = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
    };
    Body second = [&] { second_thread = std::this_thread::get_id(); };
    CHECK_OK(primary.spin(stream, 5000 * kMs));
    const uint64_t submitted = clock_ns();
    CHECK_OK(run_on_host(stream, first));
    CHECK_OK(run_on_host(CU_STREAM_PER_THREAD, second));
    CHECK_OK(cuCtxSynchronize());
    CHECK(at > submitted + 4999 * kMs);
    CHECK(first_thread != std::this_thread::get_id() && first_thread == second_thread);
    CHECK(blocks_signals);
}

void work_that_depends_on_a_function_waits_for_it() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream held = nullptr;
    CHECK_OK(cuStreamCreate(&held, CU_STREAM_DEFAULT));
    CUstream free = new_stream();
    CUstream waiting = new_stream();
    CUevent event = new_event();
    Hold hold;
    CHECK_OK(run_on_host(held, hold.body));
    CHECK_OK(primary.store(held, memory, 1));
    CHECK_OK(cuEventRecord(event, held));
    CHECK_OK(cuStreamWaitEvent(waiting, event, 0));
    CHECK_OK(primary.load(waiting, memory + 4, memory));
    CHECK_OK(primary.load(nullptr, memory + 8, memory)); // NULL waits for the blocking stream
    // An independent stream goes on, however long it takes.
    CHECK_OK(primary.store(free, memory + 12, 1, 50 * kMs));
    CHECK_EQ(value_at(memory + 12, free), 1U);
    CHECK_EQ(value_at(memory, free), 0U);
    for (CUstream stream : {held, waiting, CUstream{}})
        CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamQuery(free));
    hold.released = true;
    CHECK_EQ(value_at(memory + 4, waiting), 1U);
    CHECK_EQ(value_at(memory + 8, nullptr), 1U);
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(cuEventDestroy_v2(event));
    CHECK_OK(cuMemFree_v2(memory));
}

// What follows a function begins when it has returned, not when it was expected to.
void late_function_delays_what_follows() {
    simulate("h100");
    Primary primary;
    CUstream held = new_stream();
    CUstream free = new_stream();
    CUevent returned = new_event();
    Hold hold;
    gcx_sim_note_runs(2);
    CHECK_OK(run_on_host(held, hold.body));
    CHECK_OK(cuEventRecord(returned, held));
    CHECK_OK(primary.spin(held, 5000 * kMs));
    const uint64_t submitted = clock_ns();
    gcx_sim_advance(20'000 * kMs);
    hold.released = true;
    CHECK_OK(cuEventSynchronize(returned));
    CHECK_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamSynchronize(held));
    CHECK(clock_ns() > submitted + 25'000 * kMs);
    gcx_sim_run runs[2] = {};
    CHECK_EQ(gcx_sim_get_runs(runs, 2), std::size_t{2});
    CHECK(runs[1].begin_ns > submitted + 20'000 * kMs);
    CHECK_EQ(runs[1].end_ns - runs[1].begin_ns, 5000 * kMs);
    gcx_sim_note_runs(0);
    CHECK_OK(cuStreamDestroy_v2(free));
}

// A program that makes driver calls while a function runs makes them in that time.
void reader_beside_a_held_writer_sees_the_old_value() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream writer = new_stream();
    CUstream reader = new_stream();
    Hold hold;
    CHECK_OK(run_on_host(writer, hold.body));
    CHECK_OK(primary.store(writer, memory, 1));
    CHECK_OK(primary.load(reader, memory + 4, memory));
    while (!hold.begun)
        sleep_ms(1);
    CHECK_OK(cuStreamQuery(nullptr));
    sleep_ms(5);
    hold.released = true;
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(value_at(memory, reader), 1U);
    CHECK_EQ(value_at(memory + 4, reader), 0U);
    CHECK_OK(cuMemFree_v2(memory));
}

void functions_run_one_after_the_other() {
    simulate("h100");
    const Primary primary;
    CUstream one = new_stream();
    CUstream two = new_stream();
    Hold hold;
    std::atomic<bool> called = false;
    Body call = [&] { called = true; };
    CHECK_OK(run_on_host(one, hold.body));
    CHECK_OK(run_on_host(two, call));
    sleep_ms(20);
    CHECK(!called);
    CHECK_EQ(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    hold.released = true;
    CHECK_OK(cuStreamSynchronize(two));
    CHECK(called);
    // In the order of the clock, and in a stream in order of submission.
    std::string order;
    Body bodies[] = {[&] { order += 'a'; }, [&] { order += 'b'; }, [&] { order += 'c'; }};
    Primary again;
    CHECK_OK(again.spin(one, 5000 * kMs));
    CHECK_OK(run_on_host(one, bodies[1]));
    CHECK_OK(run_on_host(one, bodies[2]));
    CHECK_OK(run_on_host(two, bodies[0]));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQ(order, "abc");
}

// Reads what the device may write at any time, as a program may in pinned memory.
__attribute__((no_sanitize("thread"))) uint32_t read_now(const volatile uint32_t* word) {
    return *word;
}

void function_may_wait_for_another_stream() {
    simulate("h100");
    Primary primary;
    void* pinned = nullptr;
    CHECK_OK(cuMemHostAlloc(&pinned, 4, 0));
    auto& word = *static_cast<uint32_t*>(pinned);
    word = 0;
    CUstream waiting = new_stream();
    CUstream writing = new_stream();
    uint32_t seen = 0;
    Body wait = [&] {
        for (; seen == 0; seen = read_now(&word))
            sleep_ms(1);
    };
    CHECK_OK(run_on_host(waiting, wait));
    CHECK_OK(primary.store(writing, to_device(pinned), 7, 30 * kMs));
    CHECK_OK(cuStreamSynchronize(waiting));
    CHECK_EQ(seen, 7U);
    CHECK_OK(cuMemFreeHost(pinned));
}

void function_runs_while_the_program_makes_no_call() {
    simulate("h100");
    Primary primary;
    CUstream stream = new_stream();
    std::atomic<bool> called = false;
    Body call = [&] { called = true; };
    CHECK_OK(primary.spin(stream, 20 * kMs));
    CHECK_OK(run_on_host(stream, call));
    while (!called)
        sleep_ms(1);
    CHECK_OK(cuStreamSynchronize(stream));
}

void callback_gets_its_stream() {
    simulate("h100");
    const Primary primary;
    struct Seen {
        CUstream stream = nullptr;
        CUresult status = CUDA_ERROR_UNKNOWN;
    } seen;
    CUstream stream = new_stream();
    CHECK_OK(cuStreamAddCallback(
        stream,
        [](CUstream given, CUresult status, void* data) {
            *static_cast<Seen*>(data) = {given, status};
        },
        &seen, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(seen.stream == stream && seen.status == CUDA_SUCCESS);
}

void node_of_a_graph_holds_what_depends_on_it() {
    simulate("h100");
    Primary primary;
    const CUdeviceptr memory = new_memory();
    CUstream stream = new_stream();
    Hold hold;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_OK(run_on_host(stream, hold.body));
    CHECK_OK(primary.store(stream, memory, 1));
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    CUstream free = new_stream();
    CHECK_EQ(value_at(memory, free), 0U);
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    hold.released = true;
    CHECK_EQ(value_at(memory, stream), 1U);
    CHECK_OK(cuMemFree_v2(memory));
}

// The header: a call of CUDA may result in CUDA_ERROR_NOT_PERMITTED.
void function_may_not_call_the_driver() {
    simulate("h100");
    const Primary primary;
    int count = -1;
    CUresult result = CUDA_SUCCESS;
    std::string name;
    Body call = [&] {
        result = cuDeviceGetCount(&count);
        name = name_of(result);
    };
    CHECK_OK(run_on_host(nullptr, call));
    CHECK_OK(cuStreamSynchronize(nullptr));
    CHECK_EQ(result, CUDA_ERROR_NOT_PERMITTED);
    CHECK_EQ(name, "CUDA_ERROR_NOT_PERMITTED");
    CHECK_EQ(count, -1);
}

// A green context is created while a stream is held: creation waits for running kernels only.
void creation_of_a_green_context_waits_for_no_function() {
    simulate("h100");
    Primary primary;
    CUstream stream = new_stream();
    Hold hold;
    CHECK_OK(run_on_host(stream, hold.body));
    CHECK_OK(primary.spin(stream, kMs));
    CUgreenCtx green = nullptr;
    CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, cu::kGreenCtxDefaultStream));
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    hold.released = true;
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuGreenCtxDestroy(green));
}

void new_machine_drops_pending_functions() {
    std::atomic<bool> returned = false;
    std::atomic<bool> called = false;
    Hold hold;
    Body slow = [&] {
        hold.body();
        sleep_ms(20);
        returned = true;
    };
    Body never = [&] { called = true; };
    simulate("h100");
    CUcontext context = nullptr;
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(run_on_host(nullptr, slow));
    CHECK_OK(run_on_host(nullptr, never));
    while (!hold.begun)
        sleep_ms(1);
    // A call that waits on the old machine ends.
    CUresult waited = CUDA_SUCCESS;
    std::thread waiter([&] {
        CHECK_OK(cuCtxSetCurrent(context));
        waited = cuCtxSynchronize();
    });
    while (gcx_sim_calls("cuCtxSynchronize") == 0)
        sleep_ms(1);
    std::thread releaser([&] {
        sleep_ms(20);
        hold.released = true;
    });
    simulate("h100"); // waits for the one that runs
    CHECK(returned);
    waiter.join();
    releaser.join();
    CHECK_EQ(waited, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    sleep_ms(10);
    CHECK(!called);
    CHECK_EQ(gcx_sim_configure("h100"), 0);
}

void nothing_runs_in_a_forked_child() {
    simulate("h100");
    Primary primary;
    CUstream stream = new_stream();
    std::atomic<bool> called = false;
    Body call = [&] { called = true; };
    CHECK_OK(primary.spin(stream, 50 * kMs));
    CHECK_OK(run_on_host(stream, call));
    const pid_t child = fork();
    if (child == 0) {
        sleep_ms(80);
        _exit(called || cuStreamSynchronize(stream) != CUDA_ERROR_NOT_INITIALIZED ? 1 : 0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(called);
}

// The process ends while one function runs and another is pending.
void end_with_pending_functions() {
    simulate("h100");
    static auto* const hold = new Hold; // used after the static objects were destroyed
    CUcontext context = nullptr;
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(run_on_host(nullptr, hold->body));
    CHECK_OK(run_on_host(nullptr, hold->body));
    while (!hold->begun)
        sleep_ms(1);
}

} // namespace

int main() {
    nothing_runs_in_a_forked_child();
    function_runs_in_its_thread_when_its_time_has_come();
    work_that_depends_on_a_function_waits_for_it();
    late_function_delays_what_follows();
    reader_beside_a_held_writer_sees_the_old_value();
    functions_run_one_after_the_other();
    function_may_wait_for_another_stream();
    function_runs_while_the_program_makes_no_call();
    callback_gets_its_stream();
    node_of_a_graph_holds_what_depends_on_it();
    function_may_not_call_the_driver();
    creation_of_a_green_context_waits_for_no_function();
    new_machine_drops_pending_functions();
    end_with_pending_functions();
    return check::summary("host functions");
}
