// The stream that replaces the per-thread default stream inside a partition. It is created by the
// thread's first use and destroyed with the thread, by a reset, or with the process.
#include "inside.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

namespace {

using inside::Inside;

CUcontext retain() {
    CUcontext primary = nullptr;
    CU_OK(cuDevicePrimaryCtxRetain, &primary, 0);
    return primary;
}

void use_stream(CUfunction function) {
    CHECK_EQ(inside::launch(function, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

unsigned long long stream_id() {
    unsigned long long id = 0;
    CU_OK(cuStreamGetId, CU_STREAM_PER_THREAD, &id);
    return id;
}

// Threads that end leave no stream. A thread that does not use its stream has none.
void thread_stream_ends_with_thread(const Inside& inside) {
    CU_OK(cuInit, 0);
    const CUcontext primary = retain();
    CU_OK(cuCtxSetCurrent, primary);
    const CUfunction function = inside::kernel();
    CHECK_EQ(support::sim::counts().streams, 0U);
    use_stream(function);
    CHECK_EQ(support::sim::counts().streams, 1U);
    const unsigned long long mine = stream_id();
    inside::note_runs();
    for (int round = 0; round < 40; round++) {
        std::array<std::thread, 4> all;
        for (std::thread& thread : all)
            thread = std::thread([&, uses = &thread != all.data()] {
                CU_OK(cuCtxSetCurrent, primary);
                for (int again = 0; again < 3 && uses; again++)
                    use_stream(function);
                CHECK(!uses || stream_id() != mine);
            });
        for (std::thread& thread : all)
            thread.join();
        CHECK_EQ(support::sim::counts().streams, 1U);
    }
    inside::check_runs(inside.sms[0], 360);
    CHECK_EQ(stream_id(), mine);
}

// Destructors of the program's thread_local objects can use the stream.
struct Last {
    CUfunction function = nullptr;
    unsigned long long id = 0;
    ~Last() {
        if (function == nullptr)
            return;
        use_stream(function);
        CHECK_EQ(stream_id(), id); // the stream that the thread has used
    }
};
thread_local Last t_last;

void thread_stream_is_usable_in_destructors(const Inside& inside) {
    CU_OK(cuInit, 0);
    const CUcontext primary = retain();
    CU_OK(cuCtxSetCurrent, primary);
    static const CUfunction function = inside::kernel();
    use_stream(function);
    inside::note_runs();
    for (int round = 0; round < 3; round++)
        std::thread([&] {
            CU_OK(cuCtxSetCurrent, primary);
            t_last.function = function;
            use_stream(function);
            t_last.id = stream_id();
        }).join();
    inside::check_runs(inside.sms[0], 6);
    CHECK_EQ(support::sim::counts().streams, 1U);
}

// A reset destroys the streams of all threads. Their next use creates new ones.
void thread_stream_ends_with_reset(const Inside& inside) {
    CU_OK(cuInit, 0);
    std::atomic<int> step{0};
    const auto wait_for = [&](int wanted) {
        while (step.load() != wanted)
            std::this_thread::yield();
    };
    CU_OK(cuCtxSetCurrent, retain());
    use_stream(inside::kernel());
    std::thread other([&] {
        CU_OK(cuCtxSetCurrent, retain());
        use_stream(inside::kernel());
        step = 1;
        wait_for(2);
        // The former context was current in this thread, which enters the new one.
        inside::note_runs();
        use_stream(inside::kernel());
        inside::check_runs(inside.sms[0]);
        step = 3;
        wait_for(4); // the thread ends after another reset
    });
    wait_for(1);
    CHECK_EQ(support::sim::counts().streams, 2U);
    CU_OK(cuDevicePrimaryCtxReset, 0);
    CHECK_EQ(support::sim::counts().streams, 0U);
    CU_OK(cuCtxSetCurrent, retain());
    inside::note_runs();
    use_stream(inside::kernel());
    inside::check_runs(inside.sms[0]);
    step = 2;
    wait_for(3);
    CHECK_EQ(support::sim::counts().streams, 2U);
    CU_OK(cuDevicePrimaryCtxReset, 0);
    step = 4;
    other.join();
    CHECK_EQ(support::sim::counts().streams, 0U);
    CHECK_EQ(support::sim::counts().green_contexts, 0U);
}

int status_of_child(const std::function<void()>& body) {
    int status = -1;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        body();
        std::_Exit(99); // not reached
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Ends the last thread. The exit handler skips everything that a process does at its end.
[[noreturn]] void end_thread() {
    std::atexit([] { std::_Exit(7); });
    pthread_exit(nullptr);
}

// The child of a fork cannot use CUDA, as outside, and it and its threads end normally.
void thread_stream_after_fork_is_refused(const Inside&) {
    CU_OK(cuInit, 0);
    CU_OK(cuCtxSetCurrent, retain());
    const CUfunction function = inside::kernel();
    use_stream(function);
    const auto refused = [&] {
        return inside::launch(function, CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_INITIALIZED &&
               CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_INITIALIZED;
    };
    CHECK_EQ(status_of_child([&] { std::_Exit(refused() ? 7 : 8); }), 7);
    CHECK_EQ(status_of_child([&] {
                 bool in_thread = false;
                 std::thread([&] { in_thread = refused(); }).join();
                 std::_Exit(in_thread ? 7 : 8);
             }),
             7);
    // The key's destructor runs for the list that the child inherits.
    CHECK_EQ(status_of_child(end_thread), 7);
    // Another thread forks while a third creates and destroys streams.
    std::atomic<bool> done{false};
    std::thread busy([&] {
        while (!done.load())
            std::thread([&] {
                CU_OK(cuCtxSetCurrent, retain());
                use_stream(function);
            }).join();
    });
    for (int round = 0; round < 20; round++)
        std::thread([&] {
            CU_OK(cuCtxSetCurrent, retain());
            use_stream(function);
            CHECK_EQ(status_of_child(end_thread), 7);
        }).join();
    done = true;
    busy.join();
    use_stream(function);
    CHECK_EQ(support::sim::counts().streams, 1U);
}

// The process ends while threads use their streams. The parent notices a child that hangs or
// crashes.
void process_with_thread_streams_exits(const Inside&) {
    CU_OK(cuInit, 0);
    static const CUcontext primary = retain();
    static const CUfunction function = [] {
        CU_OK(cuCtxSetCurrent, primary);
        return inside::kernel();
    }();
    static std::atomic<int> running{0};
    static const auto launch = CU(cuLaunchKernel);
    use_stream(function);
    const auto run_for_ever = [] {
        CU(cuCtxSetCurrent)(primary);
        running++;
        for (;;)
            std::thread([] {
                CU(cuCtxSetCurrent)(primary);
                launch(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr);
            }).join();
    };
    for (int i = 0; i < 3; i++)
        std::thread(run_for_ever).detach();
    while (running.load() != 3)
        std::this_thread::yield();
}

} // namespace

int main() {
    for (const char* const driver : {"12.4", "13.0", "13.5"}) {
        const inside::Setup setup = {.spec = std::string("h100@") + driver};
        inside::run(setup, thread_stream_ends_with_thread);
        inside::run(setup, thread_stream_is_usable_in_destructors);
        inside::run(setup, thread_stream_ends_with_reset);
    }
    inside::run({}, thread_stream_after_fork_is_refused);
    for (int round = 0; round < 10; round++)
        inside::run({}, process_with_thread_streams_exits);
    return check::summary("lifetimes of threads' own streams inside");
}
