// Tests that each handle has one owner, whatever its type: moved, released, adopted, closed twice,
// destroyed by C, destroyed in any order, and after the driver's end. Each member function of an
// empty owner throws gcx::error, and none crashes.
#include "tests.hpp"

#include "../api/graph_kernels.hpp"

#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

constexpr gcx_result kInvalid = GCX_ERROR_INVALID_HANDLE;

template <class Owner>
constexpr bool owns =
    !std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner> &&
    std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner> &&
    sizeof(Owner) == sizeof(void*) && !std::is_convertible_v<Owner, gcx::resource>;
static_assert(owns<gcx::context> && owns<gcx::stream> && owns<gcx::event> && owns<gcx::cancel>);
static_assert(owns<gcx::lease> && owns<gcx::reservation> && owns<gcx::graph>);
static_assert(!std::is_convertible_v<gcx::resource, gcx::context>);
static_assert(!std::is_constructible_v<gcx::lease, gcx::device, bool>);
static_assert(!std::is_constructible_v<gcx::reservation, gcx::device, bool>);
static_assert(!std::is_convertible_v<std::string, gcx::reservation>);

// Has a captured graph of one kernel.
struct CapturedKernel {
    CapturedKernel()
        : graph(support::capture(kernels.plain, [&] {
              kernels.probe(kernels.plain, support::GraphKernels::From::library, 0);
          })) {}
    ~CapturedKernel() { CHECK_NATIVE(cuGraphDestroy, graph); }
    CapturedKernel(const CapturedKernel&) = delete;
    CapturedKernel& operator=(const CapturedKernel&) = delete;
    const support::GraphKernels kernels;
    const CUgraph graph;
};

// Moves, releases and closes objects of one type. make creates an object, use calls a function of
// it, destroy is the function of C.
template <class Owner, class Make, class Use, class Handle>
void handle_has_one_owner(const Make& make, const Use& use, gcx_result (*destroy)(Handle)) {
    const auto release = [](Owner& owner) {
        if constexpr (std::is_same_v<Owner, gcx::lease> || std::is_same_v<Owner, gcx::reservation>)
            return owner.detach();
        else
            return owner.release();
    };
    Owner first = make();
    const Handle handle = first.handle();
    Owner moved = std::move(first);
    CHECK(moved.handle() == handle && !first); // NOLINT(bugprone-use-after-move)
    CHECK_THROWS(kInvalid, use(first));
    Owner other = make();
    const Handle replaced = other.handle();
    other = std::move(moved);
    CHECK(other.handle() == handle && !moved); // NOLINT(bugprone-use-after-move)
    CHECK_EQ(destroy(replaced), kInvalid);
    Owner& self = other;
    other = std::move(self);
    CHECK(other.handle() == handle);
    use(other);
    CHECK(release(other) == handle && !other);
    Owner adopted = Owner::adopt(handle);
    use(adopted);
    for (int i = 0; i < 2; i++) {
        adopted.close();
        CHECK(!adopted);
    }
    CHECK_THROWS(kInvalid, use(adopted));
    CHECK_EQ(destroy(handle), kInvalid);

    // C destroys the handle of the C++ object.
    other = make();
    CHECK_OK(destroy(other.handle()));
    CHECK_THROWS(kInvalid, use(other));
    CHECK_THROWS(kInvalid, other.close());
    (void)release(other);
}

void handles_of_all_types_have_one_owner() {
    const CapturedKernel captured;
    const gcx::context context(part(24));
    handle_has_one_owner<gcx::context>([] { return gcx::context(part(24)); },
                                       [](const auto& it) { it.synchronize(); },
                                       gcx_context_destroy);
    handle_has_one_owner<gcx::stream>([&] { return gcx::stream(context); },
                                      [](const auto& it) { it.synchronize(); }, gcx_stream_destroy);
    handle_has_one_owner<gcx::event>([] { return gcx::event(0); },
                                     [](const auto& it) { it.synchronize(); }, gcx_event_destroy);
    handle_has_one_owner<gcx::lease>([] { return gcx::lease(0, 24); },
                                     [](const auto& it) { it.synchronize(); }, gcx_lease_release);
    handle_has_one_owner<gcx::cancel>([] { return gcx::cancel(); },
                                      [](const auto& it) { it.signal(); }, gcx_cancel_destroy);
    handle_has_one_owner<gcx::graph>([&] { return gcx::graph(captured.graph); },
                                     [](const auto& it) { (void)it.info(); }, gcx_graph_destroy);
    handle_has_one_owner<gcx::reservation>([] { return gcx::reservation(0, 24); },
                                           [](const auto& it) { (void)it.token(); },
                                           gcx_reservation_release);
}

void objects_destroyed_in_any_order_leave_nothing() {
    gcx::set_cache_limit(0);
    const auto before = support::sim::counts();
    {
        std::optional<gcx::context> context(part(24));
        const gcx::stream stream(*context);
        context.reset();
        CHECK_EQ(stream.sm_ids().size(), 24u);
        std::map<int, gcx::stream> streams;
        streams.emplace(1, gcx::stream(gcx::context(part(32))));
        streams[2] = gcx::stream(gcx::context(part(40)), -2);
        CHECK_EQ(streams[2].sm_count(), 40u);
        std::vector<gcx::event> events;
        events.reserve(20);
        for (int i = 0; i < 20; i++)
            events.emplace_back(gcx::device(0));

        std::optional<gcx::lease> lease(std::in_place, 0, 24);
        const gcx::stream leased(*lease);
        leased.native();
        lease->resize(64);
        leased.native();
        lease.reset();
        CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, leased.native());
        std::vector<std::unique_ptr<gcx::lease>> leases;
        std::vector<gcx::stream> of_leases;
        for (int i = 0; i < 16; i++) {
            leases.push_back(std::make_unique<gcx::lease>(0, 8));
            of_leases.emplace_back(*leases.back());
        }
        // More leases exist than the list has room for at first.
        const gcx::lease there(1, 8);
        CHECK_EQ(gcx::live_leases().size(), 17u);
        std::swap(leases[3], leases[12]);
        of_leases.erase(of_leases.begin() + 5);
        leases.erase(leases.begin() + 7, leases.begin() + 11);
        CHECK_EQ(gcx::live_leases(0).size(), 12u);
        leases.clear();

        std::optional<gcx::lease> outlives;
        std::vector<gcx::reservation> reservations;
        reservations.reserve(8);
        for (int i = 0; i < 8; i++)
            reservations.emplace_back(0, 8);
        outlives.emplace(reservations[2], gcx::rest);
        reservations.erase(reservations.begin() + 1, reservations.begin() + 5);
        CHECK_EQ(gcx::live_reservations().size(), 5u);
    }
    CHECK(gcx::live_contexts().empty() && gcx::live_leases().empty());
    CHECK(gcx::live_reservations().empty());
    CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    gcx::set_cache_limit(64);
}

void empty_owner_is_an_invalid_handle() {
    const gcx::context context;
    const gcx::stream stream;
    const gcx::event event;
    const gcx::event good(0);
    CHECK_THROWS(kInvalid, context.info());
    CHECK_THROWS(kInvalid, context.get_resource());
    CHECK_THROWS(kInvalid, context.native());
    CHECK_THROWS(kInvalid, context.native_green());
    CHECK_THROWS(kInvalid, context.push());
    CHECK_THROWS(kInvalid, gcx::current_guard(context));
    CHECK_THROWS(kInvalid, context.synchronize());
    CHECK_THROWS(kInvalid, context.record(good));
    CHECK_THROWS(kInvalid, context.wait(good));
    CHECK_THROWS(kInvalid, gcx::stream(context));
    CHECK_THROWS(kInvalid, stream.info());
    CHECK_THROWS(kInvalid, stream.get_resource());
    CHECK_THROWS(kInvalid, stream.native());
    CHECK_THROWS(kInvalid, stream.sm_ids());
    CHECK_THROWS(kInvalid, stream.synchronize());
    CHECK_THROWS(kInvalid, stream.query());
    CHECK_THROWS(kInvalid, stream.record(good));
    CHECK_THROWS(kInvalid, stream.wait(good));
    CHECK_THROWS(kInvalid, event.native());
    CHECK_THROWS(kInvalid, event.synchronize());
    CHECK_THROWS(kInvalid, event.query());
    CHECK_THROWS(kInvalid, good.elapsed_since(event));
    CHECK_THROWS(kInvalid, gcx::stream(gcx::context(part(24))).wait(event));
    CHECK(!context && !stream && !event);

    const gcx::lease none;
    const gcx::lease lease(0, 24);
    CHECK_THROWS(kInvalid, none.info());
    CHECK_THROWS(kInvalid, none.get_resource());
    CHECK_THROWS(kInvalid, none.resize(8));
    CHECK_THROWS(kInvalid, none.prepare(8));
    CHECK_THROWS(kInvalid, none.synchronize());
    CHECK_THROWS(kInvalid, none.query());
    CHECK_THROWS(kInvalid, none.resize(gcx::parked));
    CHECK_THROWS(kInvalid, gcx::resize({{lease, 8}, {none, 8}}));
    CHECK_THROWS(kInvalid, gcx::stream(none));
    CHECK_EQ(lease.sm_count(), 24u);
    // An empty cancel in the parameters is an error.
    gcx::cancel closed;
    closed.close();
    gcx::lease_params params;
    params.cancel = &closed;
    CHECK_THROWS(kInvalid, gcx::lease(0, 8, params));
    gcx::reservation_params reservation_params;
    reservation_params.cancel = &closed;
    CHECK_THROWS(kInvalid, gcx::reservation(0, 8, reservation_params));

    const gcx::reservation reservation;
    CHECK_THROWS(kInvalid, reservation.info());
    CHECK_THROWS(kInvalid, reservation.token());
    CHECK_THROWS(kInvalid, reservation.get_resource());
    CHECK_THROWS(kInvalid, gcx::lease(reservation, 8));

    const CapturedKernel captured;
    const gcx::stream working{gcx::context(part(24))};
    const gcx::graph graph;
    CHECK_THROWS(kInvalid, graph.launch(working));
    CHECK_THROWS(kInvalid, graph.launch(gcx::stream_ref(working)));
    CHECK_THROWS(kInvalid, graph.prepare(part(24)));
    CHECK_THROWS(kInvalid, graph.set_part(0, 0));
    CHECK_THROWS(kInvalid, graph.set_kernel(0, {{1}, {1}}));
    CHECK_THROWS(kInvalid, graph.update(captured.graph));
    CHECK_THROWS(kInvalid, graph.info());
    CHECK_THROWS(kInvalid, graph.nodes());
    const gcx::graph good_graph(captured.graph);
    CHECK_THROWS(kInvalid, good_graph.launch(gcx::stream()));
    CHECK_THROWS(kInvalid, good_graph.launch(gcx::stream_ref(gcx::stream())));
}

// The message is about the caller's list, not about a pointer that C++ made of it.
void empty_list_message_names_the_list() {
    const auto says = [](const char* expected, const auto& call) {
        try {
            call();
            CHECK(false);
        } catch (const gcx::error& error) {
            const std::string message = error.what();
            CHECK_EQ(error.result(), GCX_ERROR_INVALID_VALUE);
            if (!CHECK(message.find(expected) != std::string::npos &&
                       message.find("NULL") == std::string::npos))
                std::fprintf(stderr, "%s\n", message.c_str());
        }
    };
    const gcx::resource sms = gcx::device(0).sms();
    const std::vector<int> counts;
    const std::vector<gcx::request> requests;
    const std::vector<gcx::resource> resources;
    says("there are no requests", [&] { (void)sms.split(counts); });
    says("there are no requests", [&] { (void)sms.split(requests); });
    says("there are no requests", [&] { (void)sms.plan(counts); });
    says("there are no requests", [&] { (void)sms.plan(requests); });
    says("there are no resources", [&] { (void)gcx::context(resources); });
    says("there is nothing to prepare", [&] { gcx::prepare_contexts(resources); });
    says("there is no lease", [&] { gcx::resize(std::vector<gcx::lease_size>()); });
    says("there is no lease", [&] { gcx::prepare(std::vector<gcx::lease_size>()); });
    says("count is 0", [&] { gcx::graph().launch(std::vector<gcx::stream_ref>()); });
    says("count is 0", [&] { gcx::graph().prepare(resources); });
}

// The objects are destroyed at the end of the process, after the driver's end.
void objects_destroyed_after_the_driver_succeed() {
    static const CapturedKernel& captured = *new CapturedKernel;
    static const gcx::reservation reservation(0, 24);
    static const gcx::lease inside(reservation, 8);
    static const gcx::context context(part(24));
    static const gcx::stream stream(context);
    static const gcx::event event(0);
    stream.record(event);
    static const gcx::graph graph(captured.graph);
    graph.launch(stream);
    static const gcx::lease lease(0, 24);
    static const gcx::stream leased(lease);
    static const gcx::cancel cancel;
    leased.native();
    lease.resize(32);
    // These are never destroyed.
    CHECK(gcx::stream(context).release() != nullptr);
    CHECK(gcx::graph(captured.graph).release() != nullptr);
    CHECK(gcx::lease(0, 8).detach() != nullptr);
    CHECK(gcx::reservation(0, 8).detach() != nullptr);
    gcx::set_log(gcx::log_level::debug, [](gcx_log_level, std::string_view message) {
        if (message.empty())
            std::abort();
    });
}

} // namespace

void test_owners() {
    const Folder folder("GCX_RESERVATION_DIR");
    on_each_driver([] {
        handles_of_all_types_have_one_owner();
        objects_destroyed_in_any_order_leave_nothing();
        empty_owner_is_an_invalid_handle();
        empty_list_message_names_the_list();
        objects_destroyed_after_the_driver_succeed();
    });
    CHECK(gcx::live_reservations().empty());
}
