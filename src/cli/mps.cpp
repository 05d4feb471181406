#include "cli/mps.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <gcx.h>

namespace gcx::cli {
namespace {

gcx_mps_info mps_of(int32_t device) {
    gcx_mps_info info = GCX_MPS_INFO_INIT;
    check(gcx_mps_get_info(device, &info));
    return info;
}

const char* state_name(gcx_mps_state state) {
    return state == GCX_MPS_ON ? "on" : state == GCX_MPS_OFF ? "off" : "unknown";
}

} // namespace

Json device_mps_json(int32_t device) {
    const gcx_mps_info info = mps_of(device);
    return Json::object()
        .set("state", state_name(info.state))
        .set("thread_percentage",
             info.thread_percentage > 0 ? Json(double{info.thread_percentage}) : Json());
}

std::string device_mps_text(int32_t device) {
    const gcx_mps_info info = mps_of(device);
    std::string text = std::string("  MPS                   ") + state_name(info.state);
    switch (info.state) {
    case GCX_MPS_ON:
        text += ": partitions of several processes run side by side, on disjoint SMs if\n"
                "                        all split alike and take different parts; SM numbers are "
                "virtual\n";
        break;
    case GCX_MPS_OFF:
        text += ": processes take turns on the whole device, whatever their partitions\n";
        break;
    default:
        text += ": the driver doesn't tell whether other processes run beside this one\n";
    }
    if (info.state == GCX_MPS_ON && info.thread_percentage > 0)
        text += format("                        and CUDA_MPS_ACTIVE_THREAD_PERCENTAGE limits this "
                       "process to %g percent;\n"
                       "                        cuBLAS 13.1 computes wrong products with many such "
                       "limits, see docs/mps.md\n",
                       double{info.thread_percentage});
    return text;
}

bool virtual_sm_numbers(int32_t device) {
    return mps_of(device).state == GCX_MPS_ON;
}

} // namespace gcx::cli
