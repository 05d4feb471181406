// What stands for the per-thread default stream inside a partition: made when a thread first uses
// it, and gone with the thread, with a reset, or with the process.
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

// Threads that start and end leave none behind; one that doesn't use it makes none.
void threads_end(const Inside& inside) {
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

// A program's own destructors at a thread's end find it as it was.
struct Last {
    CUfunction function = nullptr;
    unsigned long long id = 0;
    ~Last() {
        if (function == nullptr)
            return;
        use_stream(function);
        CHECK_EQ(stream_id(), id); // what it waits for is what the thread has put there
    }
};
thread_local Last t_last;

void destructors(const Inside& inside) {
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

// With a reset all threads' go, and each that goes on has a new one.
void reset(const Inside& inside) {
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
        // It had the former context current, and comes into the new one.
        inside::note_runs();
        use_stream(inside::kernel());
        inside::check_runs(inside.sms[0]);
        step = 3;
        wait_for(4); // and ends after another reset
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
        std::_Exit(99); // not to be got to
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// As a thread ends that is the last one; what a process does at its end besides is not asked for.
[[noreturn]] void end_thread() {
    std::atexit([] { std::_Exit(7); });
    pthread_exit(nullptr);
}

// A child of a fork has no CUDA, as outside, and ends well in each way; so do its threads.
void forks(const Inside&) {
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
    // The key's destructor runs here, of a list that the child has from its parent.
    CHECK_EQ(status_of_child(end_thread), 7);
    // Of one that is forked by another thread, while a third makes and ends streams.
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

// The process ends while threads use theirs. A child that hangs or crashes is noticed by whoever
// started it.
void process_ends(const Inside&) {
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
        const inside::Wish wish = {.spec = std::string("h100@") + driver};
        inside::run(wish, threads_end);
        inside::run(wish, destructors);
        inside::run(wish, reset);
    }
    inside::run({}, forks);
    for (int round = 0; round < 10; round++)
        inside::run({}, process_ends);
    return check::summary("lifetimes of threads' own streams inside");
}
