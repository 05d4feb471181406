// The driver versions that can be simulated, and their differences.
#pragma once

#include <cstddef>
#include <string_view>

namespace gcx::sim {

struct DriverVersion {
    const char* name; // "13.0"
    int version;      // 13000, the value of cuDriverGetVersion
    const char* description;
};

extern const DriverVersion kDriverVersions[];
extern const std::size_t kDriverVersionCount;

const DriverVersion* find_driver_version(std::string_view name);

// The value of a capability is the first driver version that has it. Capabilities of 13.0 and
// before are measured; later ones follow the text of the headers of those versions.
enum Capability : int {
    kHasGreenContexts = 12040,
    kHasSmResourceFields = 13000, // minimum, alignment and flags in addition to the count
    kRefusesResets = 13000,       // of the primary context while a green context is alive
    kHasStructuredSplit = 13010,  // and groups that report their alignment
    kHasWorkqueues = 13010,
    kChecksDescriptors = 13010,      // one split call, equal alignments
    kAcceptsNoDefaultStream = 13010, // CU_GREEN_CTX_NONE
    kDetachesStreams = 13010,        // CUDA_ERROR_STREAM_DETACHED, and cuStreamDestroy works
    kGivesGreenHandleBack = 13010,   // cuStreamGetGreenCtx as documented
    kHasLocalityDomains = 13040,
};

} // namespace gcx::sim
