// What the order of the legacy default stream and blocking streams costs a program inside a
// partition: the driver calls that hooks add, and the events that they keep.
#include "inside.hpp"

#include <string>

namespace {

using inside::Inside;

// Driver calls, of the program and of hooks.
struct Calls {
    uint64_t records = support::sim::calls("cuEventRecord");
    uint64_t waits = support::sim::calls("cuStreamWaitEvent");
    uint64_t events = support::sim::calls("cuEventCreate");
};

// Checks how many calls the body makes.
template <class Body>
void check_calls(uint64_t records, uint64_t waits, uint64_t events, const Body& body) {
    const Calls before;
    body();
    const Calls after;
    CHECK_EQ(after.records - before.records, records);
    CHECK_EQ(after.waits - before.waits, waits);
    CHECK_EQ(after.events - before.events, events);
}

void launch(CUfunction function, CUstream stream) {
    CHECK_EQ(inside::launch(function, stream), CUDA_SUCCESS);
}

CUstream create(unsigned flags = CU_STREAM_DEFAULT) {
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate, &stream, flags);
    return stream;
}

void launches_without_blocking_streams_add_nothing(const Inside&) {
    check_calls(0, 0, 0, [] {
        inside::use_primary();
        const CUfunction function = inside::kernel();
        const CUstream non_blocking = create(CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < 10; i++) {
            launch(function, nullptr);
            launch(function, non_blocking);
        }
    });
}

// Only a stream with work since the last action on the other side is waited for.
void actions_wait_once(const Inside&) {
    inside::use_primary();
    const CUfunction function = inside::kernel();
    const CUstream busy = create();
    const CUstream idle = create();
    create();
    const CUstream non_blocking = create(CU_STREAM_NON_BLOCKING);
    // The first action in a stream waits for NULL, which can have work from before any stream.
    check_calls(1, 1, 0, [&] { launch(function, busy); });
    check_calls(0, 0, 0, [&] {
        launch(function, busy);
        launch(function, non_blocking);
    });
    check_calls(1, 1, 0, [&] { launch(function, nullptr); });
    check_calls(0, 0, 0, [&] { launch(function, nullptr); });
    // NULL records an event for each stream that waits.
    check_calls(1, 1, 0, [&] { launch(function, idle); });
    check_calls(0, 0, 0, [&] { launch(function, idle); });
    check_calls(1, 1, 0, [&] { launch(function, busy); });
    check_calls(2, 2, 0, [&] { launch(function, nullptr); });
}

// The first stream creates an event for NULL too, which is kept.
void destroyed_streams_leave_nothing(const Inside&) {
    inside::use_primary();
    const CUfunction function = inside::kernel();
    CU_OK(cuStreamDestroy, create());
    const gcx_sim_counts before = support::sim::counts();
    for (int i = 0; i < 2000; i++) {
        const CUstream stream = create();
        if (i % 4 == 0)
            launch(function, stream);
        if (i % 8 == 0)
            launch(function, nullptr);
        CU_OK(cuStreamDestroy, stream);
    }
    CHECK_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    CU_OK(cuStreamDestroy, create());
    const gcx_sim_counts after = support::sim::counts();
    CHECK_EQ(after.streams, before.streams);
    CHECK_EQ(after.events, before.events);
}

// The event of a destroyed stream is kept until its work has completed.
void work_of_destroyed_stream_is_waited_for(const Inside&) {
    inside::use_primary();
    const CUfunction function = inside::spinner();
    CU_OK(cuStreamDestroy, create());
    const gcx_sim_counts before = support::sim::counts();
    const CUstream stream = create();
    inside::spin(function, stream);
    check_calls(1, 0, 0, [&] { CU_OK(cuStreamDestroy, stream); });
    CHECK_EQ(support::sim::counts().streams, before.streams);
    CHECK_EQ(support::sim::counts().events, before.events + 1);
    check_calls(0, 1, 0, [&] { inside::spin(function, nullptr); });
    CU_OK(cuStreamSynchronize, nullptr);
    CHECK(support::sim::counts().clock_ns - before.clock_ns > 90'000'000);
    CU_OK(cuStreamDestroy, create());
    CHECK_EQ(support::sim::counts().events, before.events);
}

} // namespace

int main() {
    for (const char* const driver : {"12.4", "13.0", "13.5"}) {
        const inside::Setup setup = {.spec = std::string("h100@") + driver};
        inside::run(setup, launches_without_blocking_streams_add_nothing);
        inside::run(setup, actions_wait_once);
        inside::run(setup, destroyed_streams_leave_nothing);
        inside::run(setup, work_of_destroyed_stream_is_waited_for);
    }
    return check::summary("costs of the order inside");
}
