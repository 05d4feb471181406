// Makes each driver call of every operation on leases fail in turn: each lease keeps its SMs, and
// nothing leaks.

#include "faults.hpp"
#include "leases.hpp"
#include "work.hpp"

#include <memory>

using namespace support;
using faults::destroy;

namespace {

struct State {
    std::unique_ptr<Work> work;
    gcx_lease decode = nullptr;
    gcx_lease prefill = nullptr;
    gcx_stream fast = nullptr;
    gcx_stream heavy = nullptr;
    gcx_lease more = nullptr;
    gcx_resource had[2] = {}; // decode's and prefill's
};

void destroy_all(State& state) {
    check_live_leases();
    // A context with unfinished work would stay in use.
    sim::advance(10'000'000);
    for (gcx_stream* stream : {&state.fast, &state.heavy})
        destroy(*stream, gcx_stream_destroy);
    for (gcx_lease* lease : {&state.decode, &state.prefill, &state.more})
        destroy(*lease, gcx_lease_release);
    state.work.reset();
}

void nothing(State&) {
}

void one(State& state) {
    CHECK_OK(gcx_lease_acquire(0, 32, nullptr, &state.decode));
}

void one_with_a_stream(State& state) {
    one(state);
    CHECK_OK(gcx_lease_stream_create(state.decode, nullptr, &state.fast));
}

// Creates leases for decode and prefill, both with work in flight.
void two_at_work(State& state) {
    state.work = std::make_unique<Work>();
    one_with_a_stream(state);
    CHECK_OK(gcx_lease_acquire(0, GCX_REST, nullptr, &state.prefill));
    CHECK_OK(gcx_lease_stream_create(state.prefill, nullptr, &state.heavy));
    state.had[0] = resource_of(state.decode);
    state.had[1] = resource_of(state.prefill);
    state.work->spin(gcx_stream_native(state.fast), 1'000'000);
    state.work->spin(gcx_stream_native(state.heavy), 5'000'000);
}

// Also caches the context of both together, since creating it would wait for the work.
void two_at_work_next_to_all(State& state) {
    gcx_lease all = acquire(GCX_REST);
    CHECK_OK(gcx_lease_release(all));
    two_at_work(state);
}

void two_changed(State& state) {
    two_at_work(state);
    CHECK_OK(resize({{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}}));
}

void two_parked(State& state) {
    two_at_work_next_to_all(state);
    CHECK_OK(resize({{state.prefill, 0, GCX_SIZE_PARKED}, {state.decode, GCX_REST, 0}}));
    state.had[0] = resource_of(state.decode);
    state.had[1] = resource_of(state.prefill);
}

// Decode's stream stays on its SMs until prefill's work on the new ones is done.
void two_deferred(State& state) {
    two_at_work(state);
    const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
    CHECK_OK(gcx_lease_prepare(sizes, 2));
    state.work->spin(gcx_stream_native(state.heavy), 5'000'000);
    CHECK_OK(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFERRED));
}

void two_deferred_and_free(State& state) {
    two_deferred(state);
    state.work->spin(gcx_stream_native(state.fast), 9'000'000);
    sim::advance(6'000'000);
}

// The checks after the operation must not fail.
void no_more_failures() {
    sim::fail(nullptr, 0, CUDA_SUCCESS);
}

// Checks that both leases changed or neither did, also if the driver failed in between.
gcx_result resize_both(State& state, uint32_t flags) {
    const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
    const gcx_result result = gcx_lease_resize(sizes, 2, flags);
    no_more_failures();
    const gcx_resource decode = resource_of(state.decode);
    const gcx_resource prefill = resource_of(state.prefill);
    if (result == GCX_SUCCESS) {
        CHECK_EQ(sms(decode), 64U);
        CHECK_EQ(sms(prefill), 68U);
    } else {
        CHECK_EQ(std::memcmp(&decode, &state.had[0], sizeof decode), 0);
        CHECK_EQ(std::memcmp(&prefill, &state.had[1], sizeof prefill), 0);
    }
    return result;
}

gcx_result native(gcx_stream stream) {
    return gcx_stream_native(stream) != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
}

// If a release fails, the lease stays valid and can be released again.
gcx_result release(gcx_lease& lease) {
    if (lease == nullptr)
        return GCX_SUCCESS;
    const gcx_result result = gcx_lease_release(lease);
    if (result == GCX_SUCCESS)
        lease = nullptr;
    return result;
}

gcx_result park(State& state) {
    const gcx_lease_size sizes[] = {{state.prefill, 0, GCX_SIZE_PARKED},
                                    {state.decode, GCX_REST, 0}};
    const gcx_result result = gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT);
    no_more_failures();
    CHECK_EQ(sms_of(state.prefill), result == GCX_SUCCESS ? 0U : 100U);
    CHECK_EQ(sms_of(state.decode), result == GCX_SUCCESS ? 132U : 32U);
    return result;
}

const faults::Named<State> kOperations[] = {
    {"acquire", nothing,
     [](State& state) {
         destroy(state.more, gcx_lease_release);
         return gcx_lease_acquire(0, 24, nullptr, &state.more);
     }},
    {"acquire the rest", one,
     [](State& state) {
         destroy(state.more, gcx_lease_release);
         return gcx_lease_acquire(0, GCX_REST, nullptr, &state.more);
     }},
    {"stream create", one,
     [](State& state) {
         destroy(state.fast, gcx_stream_destroy);
         return gcx_lease_stream_create(state.decode, nullptr, &state.fast);
     }},
    {"resize two", two_at_work, [](State& state) { return resize_both(state, 0); }},
    {"resize two at once", two_at_work,
     [](State& state) { return resize_both(state, GCX_RESIZE_DEFERRED); }},
    {"a stream follows", two_changed, [](State& state) { return native(state.fast); }},
    {"a stream follows, the one that gave", two_changed,
     [](State& state) { return native(state.heavy); }},
    {"a stream stays", two_deferred, [](State& state) { return native(state.fast); }},
    {"a stream follows when the SMs are free", two_deferred_and_free,
     [](State& state) { return native(state.fast); }},
    {"release of a deferred one", two_deferred, [](State& state) { return release(state.decode); }},
    {"stream info after a change", two_changed,
     [](State& state) {
         gcx_stream_info info = GCX_STREAM_INFO_INIT;
         return gcx_stream_get_info(state.fast, &info);
     }},
    {"prepare", two_at_work,
     [](State& state) {
         const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
         return gcx_lease_prepare(sizes, 2);
     }},
    {"park", two_at_work, park},
    {"park, all prepared", two_at_work_next_to_all, park},
    {"resize of a parked one", two_parked,
     [](State& state) {
         const gcx_result result = resize_both(state, 0);
         return result != GCX_SUCCESS ? result : native(state.heavy);
     }},
    {"release", two_at_work, [](State& state) { return release(state.prefill); }},
    {"release the last", one_with_a_stream, [](State& state) { return release(state.decode); }},
    {"synchronize", two_changed, [](State& state) { return gcx_lease_synchronize(state.decode); }},
    {"query", two_at_work,
     [](State& state) {
         const gcx_result result = gcx_lease_query(state.decode);
         return result == GCX_ERROR_NOT_READY ? GCX_SUCCESS : result;
     }},
    {"stream destroy after a change", two_changed,
     [](State& state) {
         if (state.fast == nullptr)
             return GCX_SUCCESS;
         const gcx_result result = gcx_stream_destroy(state.fast);
         if (result == GCX_SUCCESS)
             state.fast = nullptr;
         return result;
     }},
};

} // namespace

int main(int argc, char** argv) {
    return faults::test_all("lease-faults", argc, argv, kOperations, destroy_all);
}
