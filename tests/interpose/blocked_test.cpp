// A call that blocks in the driver, such as a launch into a full stream, blocks no call of another
// thread that would return outside of a partition. The call may block until that thread goes on.
#include "blocking_driver.hpp"
#include "inside.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using inside::Inside;

// What the calls of a case use. "full" is the stream that blocks.
struct Objects {
    CUcontext primary = inside::use_primary();
    CUfunction function = inside::kernel();
    CUstream full = nullptr;
    CUstream blocking = nullptr;
    CUstream non_blocking = nullptr;
    CUevent event = nullptr;
    CUdeviceptr memory = 0;

    Objects() {
        CU_OK(cuStreamCreate, &full, CU_STREAM_DEFAULT);
        CU_OK(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
        CU_OK(cuStreamCreate, &non_blocking, CU_STREAM_NON_BLOCKING);
        CU_OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        CU_OK(cuMemAlloc, &memory, 64);
    }
};

using Action = void (*)(const Objects&);
struct Named {
    const char* name;
    Action action;
};

void launch(const Objects& objects, CUstream stream) {
    CHECK_EQ(inside::launch(objects.function, stream), CUDA_SUCCESS);
}

void copy(const Objects& objects) {
    uint32_t word = 0;
    CU_OK(cuMemcpyDtoH, &word, objects.memory, 4);
}

void fill(const Objects& objects) {
    inside::function<blocking_driver::FillFunction*>(blocking_driver::kFill)(objects.full);
}

void block_waits() {
    inside::function<blocking_driver::BlockWaitsFunction*>(blocking_driver::kBlockWaits)();
}

void await_blocked(int calls) {
    CHECK(inside::function<blocking_driver::AwaitFunction*>(blocking_driver::kAwait)(calls));
}

void open() {
    inside::function<blocking_driver::OpenFunction*>(blocking_driver::kOpen)();
}

// Calls that must return.
const Named kLaunchLegacy = {"launch in NULL", [](const Objects& o) { launch(o, nullptr); }};
const Named kLaunchBlocking = {"launch in another blocking stream",
                               [](const Objects& o) { launch(o, o.blocking); }};
const Named kLaunchNonBlocking = {"launch in a non-blocking stream",
                                  [](const Objects& o) { launch(o, o.non_blocking); }};
const Named kLaunchPerThread = {"launch in a thread that ends",
                                [](const Objects& o) { launch(o, CU_STREAM_PER_THREAD); }};
const Named kCreate = {"creation and destruction of streams", [](const Objects& o) {
                           CUstream stream = nullptr;
                           CU_OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
                           launch(o, stream);
                           CU_OK(cuStreamDestroy, stream);
                       }};
const Named kRecord = {"event record in another stream",
                       [](const Objects& o) { CU_OK(cuEventRecord, o.event, o.blocking); }};
const Named kQuery = {"query of another stream",
                      [](const Objects& o) { CU(cuStreamQuery)(o.blocking); }};
const Named kHost = {"host function in another stream", [](const Objects& o) {
                         CU_OK(cuLaunchHostFunc, o.blocking, [](void*) {}, nullptr);
                     }};
const Named kResource = {"cuCtxGetDevResource", [](const Objects& o) {
                             CUdevResource sms{};
                             CU_OK(cuCtxGetDevResource, o.primary, &sms, CU_DEV_RESOURCE_TYPE_SM);
                             CHECK_EQ(sms.sm.smCount, 24U);
                         }};
const Named kCapture = {"capture in another stream", [](const Objects& o) {
                            CUstream stream = nullptr;
                            CUgraph graph = nullptr;
                            CU_OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
                            CU_OK(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
                            launch(o, stream);
                            CU_OK(cuStreamEndCapture, stream, &graph);
                            CU_OK(cuStreamDestroy, stream);
                            CU_OK(cuGraphDestroy, graph);
                        }};
struct Case {
    const char* name;
    bool waits_block; // otherwise the full stream blocks
    Action before;    // null: nothing
    Action blocked;   // what blocks
    int callers;      // threads that do so, none of which keeps another from reaching the driver
    std::vector<Named> must_return;
};

const std::vector<Case> kCases = {
    {"launch in a full stream",
     false,
     nullptr,
     [](const Objects& o) { launch(o, o.full); },
     2,
     {kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kRecord, kCreate, kQuery, kResource,
      kHost, kCapture}},
    {"event record in a full stream",
     false,
     nullptr,
     [](const Objects& o) {
         CUevent own = nullptr;
         CU_OK(cuEventCreate, &own, CU_EVENT_DISABLE_TIMING);
         CU_OK(cuEventRecord, own, o.full);
     },
     2,
     {kLaunchLegacy, kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kRecord, kCreate}},
    {"launch in NULL that waits for a full stream",
     false,
     [](const Objects& o) { launch(o, o.full); },
     [](const Objects& o) { launch(o, nullptr); },
     2,
     {kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kRecord, kCreate, kQuery, kResource,
      kHost, kCapture}},
    {"destruction of a full stream",
     false,
     [](const Objects& o) { launch(o, o.full); },
     [](const Objects& o) { CU_OK(cuStreamDestroy, o.full); },
     1,
     {kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kRecord, kCreate, kResource}},
    {"synchronous copy",
     true,
     nullptr,
     copy,
     2,
     {kLaunchLegacy, kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kCreate, kResource,
      kCapture}},
    {"wait for NULL",
     true,
     nullptr,
     [](const Objects&) { CU_OK(cuStreamSynchronize, nullptr); },
     2,
     {kLaunchLegacy, kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kCreate, kResource}},
    {"wait for a thread's default stream",
     true,
     [](const Objects& o) { launch(o, o.blocking); },
     [](const Objects&) { CU_OK(cuStreamSynchronize, CU_STREAM_PER_THREAD); },
     2,
     {kLaunchLegacy, kLaunchBlocking, kLaunchNonBlocking, kLaunchPerThread, kCreate, kResource}},
};

// A thread that makes the context current and acts, and ends at its own time.
class Caller {
  public:
    Caller(const Objects& objects, Action action)
        : thread_([&objects, action] {
              CU_OK(cuCtxSetCurrent, objects.primary);
              action(objects);
          }),
          watcher_([this] {
              thread_.join();
              const std::lock_guard lock(mutex_);
              ended_ = true;
              changed_.notify_all();
          }) {}
    ~Caller() { watcher_.join(); }
    // Returns whether the thread ended, destructors of its objects included, within 5 s.
    bool ends() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(5), [&] { return ended_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
    std::thread watcher_;
};

void check_case(const Case& which) {
    const Objects objects;
    if (which.before != nullptr)
        which.before(objects);
    if (which.waits_block)
        block_waits();
    else
        fill(objects);
    {
        std::list<Caller> blocked;
        for (int i = 0; i < which.callers; i++)
            blocked.emplace_back(objects, which.blocked);
        await_blocked(which.callers);
        for (const Named& other : which.must_return) {
            Caller caller(objects, other.action);
            if (CHECK(caller.ends()))
                continue;
            std::fprintf(stderr, "during a %s that blocks: %s\n", which.name, other.name);
            open(); // so that the caller ends
        }
        open();
        for (Caller& caller : blocked)
            CHECK(caller.ends());
    }
    CHECK_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

} // namespace

int main() {
    for (const char* const driver : {"12.4", "13.0", "13.5"})
        for (const Case& which : kCases)
            inside::run_damaged(
                {.spec = std::string("h100@") + driver},
                [](gcx::interpose::Plan& plan) {
                    plan.driver = std::getenv("GCX_TEST_BLOCKING_DRIVER");
                },
                [&](const Inside&) { check_case(which); });
    return check::summary("blocked calls inside");
}
