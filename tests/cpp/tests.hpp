// Shared by the tests of gcx.hpp. main.cpp calls each file's test.
#pragma once

#include "../api/support.hpp"

#include <gcx.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

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

// Runs a test on two H100s with each of these drivers.
template <class Body>
void on_each_driver(const Body& body) {
    for (const char* driver : {"12.4", "13.0", "13.5"})
        support::on_machine(std::string("2xh100@") + driver, body);
}
