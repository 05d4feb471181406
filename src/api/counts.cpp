// What libraries of the process are told of partitions' SMs.

#include "api/guard.hpp"
#include "interpose/count_reporting.hpp"

using namespace gcx;

gcx_result gcx_driver_report_partition_counts(void) {
    GCX_BODY({ interpose::report_partition_counts(default_choice()); });
}

gcx_result gcx_driver_reports_partition_counts(int32_t* reporting) {
    GCX_BODY(
        { *not_null(reporting, "reporting") = interpose::reports_partition_counts() ? 1 : 0; });
}
