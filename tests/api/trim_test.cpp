// Tests trimming the cache. lifetime_test.cpp and lease_storm_test.cpp trim while other threads use it.

#include "leases.hpp"
#include "support.hpp"
#include "work.hpp"

using namespace support;

namespace {

void create_and_destroy_streams(gcx_context context, unsigned count) {
    std::vector<gcx_stream> streams(count);
    for (gcx_stream& stream : streams)
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    for (gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
}

void trim_releases_contexts_and_streams() {
    const auto layouts = sets({8, 16, 24, 32});
    CHECK_OK(gcx_cache_prepare(layouts.data(), 4, nullptr));
    for (const std::size_t i : {3U, 0U, 1U, 2U}) {
        const gcx_context context = make_context(layouts[i]);
        create_and_destroy_streams(context, 5);
        CHECK_OK(gcx_context_destroy(context));
    }
    const gcx_context used = make_context(layouts[1]);
    CHECK_EQ(cache_stats().cached_streams, 20U);
    const uint64_t before = sim::counts().device_bytes_used;
    const gcx_cache_trimmed trimmed = trim(1);
    CHECK_EQ(trimmed.contexts, 2U);
    CHECK_EQ(trimmed.streams, 20U);
    CHECK_EQ(trimmed.contexts_left, 0U);
    CHECK_EQ(trimmed.streams_left, 0U);
    CHECK_EQ(trimmed.bytes, before - sim::counts().device_bytes_used);
    CHECK_EQ(sim::counts().green_contexts, 2U);
    CHECK_EQ(sim::counts().streams, 0U);
    const gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.cached, 1U);
    CHECK_EQ(stats.cached_streams, 0U);
    CHECK_EQ(stats.evicted, 2U);
    CHECK_EQ(stats.limit, 64U);
    // The context used last stays.
    const uint64_t made = sim::calls("cuGreenCtxCreate");
    CHECK_OK(gcx_context_destroy(make_context(layouts[2])));
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), made);
    CHECK_OK(gcx_cache_trim(0, nullptr));
    CHECK_OK(gcx_cache_trim(0, nullptr)); // nothing to do
    CHECK_OK(gcx_context_destroy(used));
    CHECK_EQ(cache_stats().cached, 1U); // cached as before
    CHECK_EQ(trim(0).contexts, 1U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
}

// Contexts that take part in a capture, or have work in flight, stay.
void busy_contexts_are_not_trimmed() {
    const Work work;
    const auto layouts = sets({8, 16});
    const gcx_context first = make_context(layouts[0]);
    gcx_stream capturing = make_stream(first);
    CUstream native = gcx_stream_native(capturing);
    begin_capture(native);
    const gcx_context second = make_context(layouts[1]);
    gcx_stream busy = make_stream(second);
    create_and_destroy_streams(second, 2);
    work.spin(gcx_stream_native(busy), 1'000'000);
    CHECK_OK(gcx_stream_destroy(busy));
    CHECK_OK(gcx_stream_destroy(capturing));
    CHECK_OK(gcx_context_destroy(first));
    const gcx_cache_trimmed trimmed = trim(0);
    CHECK_EQ(trimmed.contexts, 0U);
    CHECK_EQ(trimmed.contexts_left, 1U);
    CHECK_EQ(trimmed.streams_left, 2U);
    CHECK_EQ(trimmed.streams, 2U);
    end_capture(native);
    sim::advance(2'000'000);
    const gcx_cache_trimmed rest = trim(0);
    CHECK_EQ(rest.contexts, 1U);
    CHECK_EQ(rest.streams, 2U);
    CHECK_EQ(rest.contexts_left + rest.streams_left, 0U);
    CHECK_OK(gcx_context_destroy(second));
}

void trim_after_reset_retains_no_context() {
    const auto layouts = sets({8, 16});
    CHECK_OK(gcx_cache_prepare(layouts.data(), 2, nullptr));
    const gcx_context used = make_context(layouts[0]);
    create_and_destroy_streams(used, 2);
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    const uint64_t destroyed = sim::calls("cuGreenCtxDestroy") + sim::calls("cuStreamDestroy_v2");
    const uint64_t retained = sim::calls("cuDevicePrimaryCtxRetain");
    CHECK_OK(gcx_cache_trim(0, nullptr));
    CHECK_EQ(sim::calls("cuGreenCtxDestroy") + sim::calls("cuStreamDestroy_v2"), destroyed);
    CHECK_EQ(sim::calls("cuDevicePrimaryCtxRetain"), retained); // no new one for that
    CHECK_EQ(cache_stats().lost, 2U);
    CHECK_EQ(cache_stats().evicted, 0U);
    CHECK_OK(gcx_cache_prepare(layouts.data(), 2, nullptr));
    CHECK_EQ(cache_stats().cached, 2U);
    CHECK_OK(gcx_context_destroy(used));
}

// If the driver refuses, the call reports what it released, and the rest can be trimmed later.
void refused_trim_can_be_repeated() {
    const auto layouts = sets({8, 16, 24, 32});
    CHECK_OK(gcx_cache_prepare(layouts.data(), 4, nullptr));
    sim::fail("cuGreenCtxDestroy", 3, CUDA_ERROR_UNKNOWN);
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    CHECK_REFUSED(gcx_cache_trim(0, &trimmed), GCX_ERROR_UNKNOWN);
    CHECK(message_has("cuGreenCtxDestroy") && message_has("2 contexts"));
    CHECK_EQ(trimmed.contexts, 0U);
    CHECK_EQ(cache_stats().cached, 2U);
    CHECK_EQ(trim(0).contexts, 2U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
}

} // namespace

int main() {
    on_h100({trim_releases_contexts_and_streams, busy_contexts_are_not_trimmed,
             refused_trim_can_be_repeated});
    on_machine(
        "h100@12.4",
        trim_after_reset_retains_no_context); // later drivers refuse to reset under green contexts
    return support::summary("trim");
}
