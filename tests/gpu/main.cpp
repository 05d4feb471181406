// Runs the GPU suite on a real driver. tests/gpu/run.sh starts it.

#include "tests.hpp"

#include "check.hpp"
#include "raw.hpp"

#include <gcx.h>

#include <cstdio>
#include <cstring>

void section(const char* name) {
    std::printf("-- %s\n", name);
    std::fflush(stdout);
}

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
    if (!quick && argc > 1)
        test_processes(argv[1]);
    raw::load();
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&driver));
    if (driver.simulated != 0) {
        std::fprintf(stderr, "this suite is for a real GPU, and the driver is SIMULATED\n");
        return 1;
    }
    test_splits();
    test_clusters();
    test_contexts(quick);
    test_captures(quick);
    test_graphs(quick);
    test_leases(quick);
    test_prepared(quick);
    if (!quick)
        test_resets();
    return check::summary("gpu");
}
