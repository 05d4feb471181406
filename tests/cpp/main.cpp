// Runs the tests of gcx.hpp, built as C++17 and as C++20, without RTTI.
#include "tests.hpp"

int main() {
    static_assert(__cplusplus == GCX_TESTED_STANDARD, "built as what it is said to be");
#ifdef __GXX_RTTI
#error "these tests are to be built with -fno-rtti"
#endif
    test_library();
    test_values();
    test_objects();
    test_reservations();
    test_leases();
    test_owners();
    test_ahead();
    test_process();
    test_graphs();
    return check::summary("gcx.hpp");
}
