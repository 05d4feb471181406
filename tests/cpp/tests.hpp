// Shared by the tests of gcx.hpp. main.cpp calls each file's test.
#pragma once

#include "../api/support.hpp"

#include <gcx.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

void test_values();
void test_objects();
void test_reservations();
void test_leases();
void test_library();
void test_owners();
void test_ahead();
void test_process();
void test_graphs();

// Returns whether a call throws gcx::error with this result and a message.
template <class Call>
bool throws(gcx_result expected, const Call& call, const char* file, int line, const char* what) {
    try {
        call();
    } catch (const gcx::error& error) {
        const std::string message = error.what();
        return check::equal(error.result(), expected, file, line, what) &&
               check::count(message.size() > std::string(error.name()).size() + 10 &&
                                message.find(error.name()) != std::string::npos,
                            file, line, "a message: " + message);
    }
    return check::count(false, file, line, std::string(what) + " doesn't throw");
}
#define CHECK_THROWS(expected, ...)                                                                \
    throws((expected), [&] { (void)(__VA_ARGS__); }, __FILE__, __LINE__, #__VA_ARGS__)

// Returns the first SMs of a device.
inline gcx::resource part(uint32_t sms, int32_t device = 0) {
    return gcx::device(device).sms().split({sms}).groups[0];
}

// Has a private folder, named by a variable of the environment.
struct Folder {
    explicit Folder(const char* variable) {
        CHECK(mkdtemp(path) != nullptr);
        setenv(variable, path, 1);
    }
    ~Folder() {
        std::error_code error;
        std::filesystem::remove_all(path, error);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    char path[32] = "/tmp/gcx-cpp-XXXXXX";
};

template <class Params>
Params waiting(std::chrono::milliseconds timeout, const gcx::cancel* cancel = nullptr) {
    Params params;
    params.timeout = timeout;
    params.cancel = cancel;
    return params;
}

// Tests waits for SMs by an Owner: a lease or a reservation. count() returns the number of them,
// those that wait included.
template <class Owner, class Params, class Count>
void wait_ends_by_timeout_or_cancel(const Count& count) {
    using namespace std::chrono_literals;
    const auto until_two = [&] {
        while (count() != 2)
            std::this_thread::sleep_for(1ms);
    };
    const Owner all(0, gcx::rest);
    CHECK_THROWS(GCX_ERROR_TIMEOUT, Owner(0, 8, waiting<Params>(3ms)));
    CHECK(std::string(gcx::last_error_message()).find("after 3 ms") != std::string::npos);
    const gcx::cancel cancel;
    std::thread waiter([&] {
        CHECK_THROWS(GCX_ERROR_CANCELLED, Owner(0, 8, waiting<Params>(gcx::forever, &cancel)));
    });
    until_two();
    cancel.signal();
    waiter.join();
#ifdef __cpp_lib_jthread
    std::jthread stopped([](const std::stop_token& stop) {
        CHECK_THROWS(GCX_ERROR_CANCELLED, Owner(0, 8, stop, waiting<Params>(gcx::forever)));
        CHECK_THROWS(GCX_ERROR_CANCELLED, Owner(0, 8, stop, {.timeout = 1h}));
    });
    until_two();
    stopped.request_stop();
    stopped.join();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 Owner(0, 8, std::stop_token(), waiting<Params>(1ms, &cancel)));
    CHECK_EQ(Owner(1, 8, std::stop_token()).sm_count(), 8u);
#endif
}

// Runs a test on two H100s with each of these drivers.
template <class Body>
void on_each_driver(const Body& body) {
    for (const char* driver : {"12.4", "13.0", "13.5"})
        support::on_machine(std::string("2xh100@") + driver, body);
}
