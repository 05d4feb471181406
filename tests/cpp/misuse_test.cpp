// Tests misuse: each call throws gcx::error, and none crashes.
#include "tests.hpp"

#include <functional>
#include <vector>

namespace {

// Calls every member function of an empty owner.
void empty_object_is_an_invalid_handle() {
    const gcx::context context;
    const gcx::stream stream;
    const gcx::event event;
    const gcx::event good(0);
    const gcx_result none = GCX_ERROR_INVALID_HANDLE;
    CHECK_THROWS(none, context.info());
    CHECK_THROWS(none, context.get_resource());
    CHECK_THROWS(none, context.native());
    CHECK_THROWS(none, context.native_green());
    CHECK_THROWS(none, context.push());
    CHECK_THROWS(none, gcx::current_guard(context));
    CHECK_THROWS(none, context.synchronize());
    CHECK_THROWS(none, context.record(good));
    CHECK_THROWS(none, context.wait(good));
    CHECK_THROWS(none, gcx::stream(context));
    CHECK_THROWS(none, stream.info());
    CHECK_THROWS(none, stream.get_resource());
    CHECK_THROWS(none, stream.native());
    CHECK_THROWS(none, stream.sm_ids());
    CHECK_THROWS(none, stream.synchronize());
    CHECK_THROWS(none, stream.query());
    CHECK_THROWS(none, stream.record(good));
    CHECK_THROWS(none, stream.wait(good));
    CHECK_THROWS(none, event.native());
    CHECK_THROWS(none, event.synchronize());
    CHECK_THROWS(none, event.query());
    CHECK_THROWS(none, good.elapsed_since(event));
    CHECK_THROWS(none, gcx::stream(gcx::context(part(24))).wait(event));
    CHECK(!context && !stream && !event);
}

void closing_twice_does_nothing() {
    gcx::context context(part(24));
    gcx::stream stream(context);
    gcx::event event(0);
    for (int i = 0; i < 2; i++) {
        stream.close();
        context.close();
        event.close();
        CHECK(!stream && !context && !event);
    }
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, stream.synchronize());

    // C destroys the handles of the C++ objects.
    gcx::stream other(gcx::context(part(24)));
    CHECK_OK(gcx_stream_destroy(other.handle()));
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, other.close());
    CHECK_THROWS(GCX_ERROR_INVALID_HANDLE, other.native());
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
void object_destroyed_after_the_driver_succeeds() {
    static gcx::context context(part(24));
    static gcx::stream stream(context);
    static gcx::event event(0);
    stream.record(event);
    // The object is never destroyed.
    gcx::stream(context).release();
    gcx::set_log(gcx::log_level::debug, [](gcx_log_level, std::string_view message) {
        if (message.empty())
            std::abort();
    });
    CHECK(stream && event);
}

} // namespace

void test_misuse() {
    on_each_driver([] {
        empty_object_is_an_invalid_handle();
        closing_twice_does_nothing();
        empty_list_message_names_the_list();
        object_destroyed_after_the_driver_succeeds();
    });
}
