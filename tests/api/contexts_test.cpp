// Tests which contexts are shared, which are listed, and which workqueues they have.

#include "support.hpp"

#include <atomic>
#include <cstring>
#include <thread>

using namespace support;

namespace {

std::vector<gcx_live_context> list(int32_t device = -1) {
    std::vector<gcx_live_context> live(32);
    uint32_t count = UINT32_MAX;
    CHECK_OK(gcx_context_list(device, live.data(), 32, &count));
    live.resize(count);
    return live;
}

// The vectors test which contexts are shared.
void private_contexts_are_not_shared() {
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    const gcx_context shared = make_context(resource);
    const gcx_context mine = make_context(resource, GCX_CONTEXT_PRIVATE);
    const gcx_context again = make_context(resource);
    // A capture in the shared context does not concern the private one.
    gcx_stream capturing = make_stream(shared);
    CUstream native = gcx_stream_native(capturing);
    begin_capture(native);
    CHECK_REFUSED(gcx_context_synchronize(again), GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_OK(gcx_context_synchronize(mine));
    end_capture(native);
    CHECK_OK(gcx_stream_destroy(capturing));
    // A context stays private while a stream of it is alive, even without a handle.
    const uint64_t id = id_of(mine);
    gcx_stream stream = make_stream(mine);
    CHECK_OK(gcx_context_destroy(mine));
    gcx_context next = make_context(resource, GCX_CONTEXT_PRIVATE);
    CHECK(id_of(next) != id);
    CHECK_OK(gcx_context_destroy(next));
    CHECK_OK(gcx_stream_destroy(stream));
    for (const gcx_context context : {shared, again})
        CHECK_OK(gcx_context_destroy(context));
}

uint64_t native_id_of(gcx_context context) {
    unsigned long long id = 0;
    CHECK_NATIVE(cuCtxGetId, gcx_context_native(context), &id);
    return id;
}

void contexts_in_use_are_listed() {
    const Split made = split(whole_device(), {24, 32});
    CHECK(list().empty());
    uint32_t count = 9;
    CHECK_OK(gcx_context_list(-1, nullptr, 0, &count));
    CHECK_EQ(count, 0U);
    const gcx_context first = make_context(made.groups[0]);
    const gcx_context again = make_context(made.groups[0]);
    const gcx_context mine = make_context(made.groups[1], GCX_CONTEXT_PRIVATE);
    gcx_stream stream = make_stream(mine);
    std::vector<gcx_live_context> live = list(0);
    if (!CHECK_EQ(live.size(), 2U))
        return;
    CHECK_EQ(live[0].id, id_of(first));
    CHECK_EQ(live[0].device, 0);
    CHECK_EQ(live[0].sm_count, 24U);
    CHECK_EQ(live[0].handle_count, 2U);
    CHECK_EQ(live[0].stream_count, 0U);
    CHECK_EQ(live[0].flags, 0U);
    CHECK_EQ(std::memcmp(&live[0].resource, made.groups.data(), sizeof(gcx_resource)), 0);
    CHECK_EQ(live[1].id, id_of(mine));
    CHECK_EQ(live[1].handle_count, 1U);
    CHECK_EQ(live[1].stream_count, 1U);
    CHECK_EQ(live[1].flags, GCX_CONTEXT_PRIVATE);
    for (const gcx_live_context& one : live)
        CHECK_EQ(one.reserved, 0U);
    CHECK_EQ(live[0].native_id, native_id_of(first));
    CHECK_EQ(live[1].native_id, native_id_of(mine));
    CHECK(live[0].native_id != live[1].native_id);
    CHECK_EQ(info_of(again).native_id, live[0].native_id);
    CHECK_EQ(info_of(mine).native_id, live[1].native_id);
    // The list is too short.
    gcx_live_context one{};
    CHECK_REFUSED(gcx_context_list(-1, &one, 1, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 2U);
    CHECK_EQ(one.id, 0U);
    // A stream or a thread that has it current keeps a context alive.
    CHECK_OK(gcx_context_destroy(mine));
    live = list();
    CHECK(live.size() == 2 && live[1].handle_count == 0 && live[1].stream_count == 1);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(list().size(), 1U);
    std::atomic<int> step{0};
    std::thread holder([&] {
        CHECK_OK(gcx_context_push(first));
        step = 1;
        while (step != 2)
            std::this_thread::yield();
    });
    while (step != 1)
        std::this_thread::yield();
    for (const gcx_context context : {first, again})
        CHECK_OK(gcx_context_destroy(context));
    live = list();
    CHECK(live.size() == 1 && live[0].handle_count == 0 && live[0].stream_count == 0);
    step = 2;
    holder.join();
    CHECK(list().empty());
    CHECK_EQ(cache_stats().cached, 2U);
}

void contexts_are_listed_in_order_of_creation() {
    const Split made = split(whole_device(), {8, 8, 8, 8});
    std::vector<gcx_context> contexts;
    for (const std::size_t group : {2U, 0U, 3U, 1U})
        contexts.push_back(make_context(made.groups[group]));
    const std::vector<gcx_live_context> live = list();
    if (CHECK_EQ(live.size(), contexts.size())) {
        for (std::size_t i = 0; i < contexts.size(); i++)
            CHECK_EQ(live[i].id, id_of(contexts[i]));
    }
    for (const gcx_context context : contexts)
        CHECK_OK(gcx_context_destroy(context));
}

void dead_contexts_are_not_listed() {
    const Partition partition(split(whole_device(), {24}).groups[0]);
    CHECK_EQ(list().size(), 1U);
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK(list().empty());
    CHECK_EQ(cache_stats().lost, 1U);
}

gcx_resource queue_of(gcx_context context) {
    gcx_resource queue{};
    CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_WORKQUEUE, &queue));
    return queue;
}

bool same(const gcx_resource& a, const gcx_resource& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

gcx_resource balanced_queue() {
    gcx_resource config{};
    CHECK_OK(gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &config));
    CHECK_OK(gcx_workqueue_configure(&config, GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, 3, &config));
    return config;
}

void equal_workqueues_are_equal() {
    const Split made = split(whole_device(), {24, 32, 16});
    const gcx_context first = make_context({made.groups[0], balanced_queue()});
    const gcx_resource queue = queue_of(first);
    CHECK(same(queue, queue_of(first)));
    const gcx_context second = make_context({made.groups[1], queue});
    CHECK(same(queue, queue_of(second)));
    const gcx_context third = make_context({made.groups[1], queue_of(second)});
    CHECK_EQ(id_of(second), id_of(third));
    // A different queue gives a different context; those that share the device's queue share one.
    const gcx_context balanced = make_context({made.groups[2], balanced_queue()});
    CHECK(!same(queue, queue_of(balanced)));
    const gcx_context plain = make_context(made.groups[1]);
    const gcx_context plain_too = make_context(made.groups[2]);
    CHECK(same(queue_of(plain), queue_of(plain_too)));
    CHECK(!same(queue_of(plain), queue));
    for (const gcx_context context : {first, second, third, balanced, plain, plain_too})
        CHECK_OK(gcx_context_destroy(context));
}

std::vector<char> native_queue_of(gcx_context context) {
    CUdevResource native{};
    CHECK_NATIVE(cuGreenCtxGetDevResource, gcx_context_native_green(context), &native,
                 no_such<CUdevResourceType>(GCX_RESOURCE_WORKQUEUE));
    const auto* const bytes = reinterpret_cast<const char*>(&native);
    return {bytes, bytes + sizeof native};
}

// A queue belongs to the context it came from, also in a context that has other resources.
void workqueue_is_shared_by_contexts() {
    const Split made = split(whole_device(), {24, 32, 16});
    const gcx_context first = make_context({made.groups[0], balanced_queue()});
    const gcx_context second = make_context({made.groups[1], balanced_queue()});
    const gcx_context third = make_context({made.groups[2], queue_of(second)});
    CHECK(native_queue_of(first) != native_queue_of(second));
    CHECK(native_queue_of(third) == native_queue_of(second));
    for (const gcx_context context : {first, second, third})
        CHECK_OK(gcx_context_destroy(context));
}

void workqueue_ends_with_its_last_context() {
    const Split made = split(whole_device(), {24, 32, 16});
    const gcx_context first = make_context({made.groups[0], balanced_queue()});
    const gcx_resource queue = queue_of(first);
    const gcx_context second = make_context({made.groups[1], queue});
    CHECK_OK(gcx_context_destroy(first));
    CHECK_OK(gcx_cache_set_limit(0)); // the first is gone, and the second still has it
    const gcx_context third = make_context({made.groups[2], queue});
    CHECK(same(queue, queue_of(third)));
    CHECK_OK(gcx_context_destroy(third));
    CHECK_OK(gcx_context_destroy(second));
    const uint64_t calls = sim::calls("cuGreenCtxCreate");
    const gcx_resource both[] = {made.groups[1], queue};
    gcx_context none = nullptr;
    CHECK_REFUSED(gcx_context_create(both, 2, nullptr, &none), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(message_has("workqueue") && none == nullptr);
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), calls);
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
}

void workqueues_are_forgotten() {
    const Split made = split(whole_device(), {24, 32});
    CHECK_OK(gcx_cache_set_limit(0));
    gcx_resource both[] = {made.groups[1], {}};
    for (int round = 0; round < 500; round++) {
        const gcx_context first = make_context({made.groups[0], balanced_queue()});
        both[1] = queue_of(first);
        const gcx_context second = make_context({both[0], both[1]});
        CHECK_OK(gcx_context_destroy(second));
        CHECK_OK(gcx_context_destroy(first));
        gcx_context none = nullptr;
        CHECK_REFUSED(gcx_context_create(both, 2, nullptr, &none), GCX_ERROR_CONTEXT_IS_DESTROYED);
    }
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test : {private_contexts_are_not_shared, contexts_in_use_are_listed,
                                contexts_are_listed_in_order_of_creation})
            on_machine(h100, test);
    }
    on_machine("h100@12.4", dead_contexts_are_not_listed);
    on_machine("h100@13.5", equal_workqueues_are_equal);
    on_machine("h100@13.5", workqueue_is_shared_by_contexts);
    on_machine("h100@13.5", workqueue_ends_with_its_last_context);
    on_machine("h100@13.1", workqueues_are_forgotten);
    return support::summary("contexts");
}
