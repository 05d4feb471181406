// What the driver versions that can be simulated differ in.
#pragma once

#include <cstddef>
#include <string_view>

namespace gcx::sim {

struct DriverVersion {
    const char* name; // "13.0"
    int version;      // 13000, as cuDriverGetVersion says
    const char* description;
};

extern const DriverVersion kDriverVersions[];
extern const std::size_t kDriverVersionCount;

const DriverVersion* find_driver_version(std::string_view name);

// A capability is named by what it gives and valued by the first driver that has it. Those of 13.0
// and before are measured; the later ones follow the text of the headers that came with those
// drivers.
enum Capability : int {
    kHasGreenContexts = 12040,
    kHasSmResourceFields = 13000, // minimum, alignment and flags, not the count alone
    kRefusesResets = 13000,       // of the primary context, while a green context lives
    kHasStructuredSplit = 13010,  // and groups that carry their alignment
    kHasWorkqueues = 13010,
    kChecksDescriptors = 13010,      // one split call, equal alignments
    kAcceptsNoDefaultStream = 13010, // CU_GREEN_CTX_NONE
    kDetachesStreams = 13010,        // CUDA_ERROR_STREAM_DETACHED, and cuStreamDestroy works
    kGivesGreenHandleBack = 13010,   // cuStreamGetGreenCtx as documented
    kHasLocalityDomains = 13040,
};

} // namespace gcx::sim
