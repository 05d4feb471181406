// The SMs that `gcx exec` gives to its command, as the plan says them.
#pragma once

#include "cli/exec_layout.hpp"
#include "cli/layout.hpp"
#include "interpose/exec_plan.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gcx::cli {

struct ExecPart {
    int32_t device = 0;
    uint32_t available = 0; // SMs of the device, or of the partition around
    uint32_t asked = 0;     // or GCX_REST
    bool held = false;      // by this gcx exec: no other process that asks is given them
    bool nested = false;    // it is a part of what the gcx exec around holds
    gcx_mps_state mps = GCX_MPS_UNKNOWN;
    interpose::DevicePart plan;
};

// How SMs are kept from other processes. Holds outlive this process's image: the command has them.
struct ReservationRequest {
    bool wanted = true;
    bool quiet = false; // says nothing while it waits
    std::string name;
    std::chrono::milliseconds timeout{0}; // for the SMs of all devices together
};

// Of each device that the layout names, by ordinal. family may be null: coscheduled, or that of the
// partition around. around is the plan in which gcx exec itself runs, null if none: what is given
// is a part of what that one has. exact: throws Failure where a count would be rounded.
std::vector<ExecPart> find_parts(const ExecLayout& layout, const FamilyName* family, bool exact,
                                 const interpose::Plan* around,
                                 const ReservationRequest& reservation);

// "24 of the 132 SMs of device 0 (NVIDIA H100 80GB HBM3)".
std::string describe(const ExecPart& part);

} // namespace gcx::cli
