/*
 * The only file that includes cuda.h.
 *
 * gcx builds with the headers of CUDA 12.4 to 13.5, and works with drivers of 12.4 and newer. This
 * file declares what differs between those headers under names of its own, so that no other file
 * depends on the version of the header. Layouts and values are those of cuda.h 13.5; the size of
 * CUdevResource and the offset of its union are the same in all versions.
 */
#pragma once

/* Keeps cuda.h from renaming functions to their newest variants. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gcx::cu {

/* CUdevResourceType. Before 13.1 the enumeration ends at 2, so that the later values are no
 * constant expressions of its type there; the ABI passes an unsigned int all the same. */
inline CUdevResourceType resource_type(unsigned value) {
    return static_cast<CUdevResourceType>(value);
}
inline constexpr auto kResourceSm = static_cast<CUdevResourceType>(1);
inline const CUdevResourceType kResourceWorkqueueConfig = resource_type(1000);
inline const CUdevResourceType kResourceWorkqueue = resource_type(10000);

/* CUgreenCtxCreate_flags */
inline constexpr unsigned kGreenCtxDefaultStream = 1;

/* flags of cuDevSmResourceSplitByCount */
inline constexpr unsigned kSplitIgnoreCoscheduling = 1;
inline constexpr unsigned kSplitMaxClusterSize = 2;

/* CUdevSmResourceGroup_flags (13.1; the locality domains 13.4) */
inline constexpr unsigned kGroupBackfill = 1;
inline constexpr unsigned kGroupLocalityDomain = 2;
inline constexpr unsigned kGroupLocalitySupplemental = 4;
inline constexpr unsigned kLocalityDomainAny = ~0U;

/* CUdevWorkqueueConfigScope (13.1) */
inline constexpr unsigned kWorkqueueScopeDevice = 0;
inline constexpr unsigned kWorkqueueScopeBalanced = 1;

/* CUdevice_attribute (13.4) */
inline constexpr auto kAttributeLocalityDomainCount = static_cast<CUdevice_attribute>(149);
inline constexpr auto kAttributeLocalityDomainSmCount = static_cast<CUdevice_attribute>(157);

/* CUlaunchAttributeID: the attributes of a graph's kernel node, up to 13.5. Values that a header
 * does not have are no constant expressions of its type, as above. */
inline CUlaunchAttributeID attribute_id(unsigned value) {
    return static_cast<CUlaunchAttributeID>(value);
}
inline constexpr unsigned kNodeAttributes[] = {
    1,  /* access policy window */
    2,  /* cooperative */
    4,  /* cluster dimension */
    5,  /* cluster scheduling policy */
    8,  /* priority */
    9,  /* memory synchronization domain map */
    10, /* memory synchronization domain */
    11, /* preferred cluster dimension (12.8) */
    13, /* updatable by device code */
    14, /* shared memory carveout (12.5) */
    16, /* scheduling for the use of NVLink (13.0) */
    17, /* portable cluster size mode (13.1) */
    18, /* shared memory mode (13.2) */
};
inline constexpr unsigned kAttributeCooperative = 2;
inline constexpr unsigned kAttributeCluster = 4;
inline constexpr unsigned kAttributeDeviceUpdatable = 13;

/* CUresult values that a 12.4 header lacks */
inline constexpr auto kErrorStreamDetached = static_cast<CUresult>(917);

/* CUdevSmResource as of 13.4. Drivers before 13.0 fill in only the count. */
struct SmFields {
    uint32_t sm_count;
    uint32_t min_partition_size;
    uint32_t coscheduled_alignment;
    uint32_t flags;
    uint32_t locality_domain_id;
};

/* CUdevWorkqueueConfigResource (13.1) */
struct WorkqueueFields {
    int32_t device;
    uint32_t concurrency_limit;
    uint32_t scope;
};

/* CU_DEV_SM_RESOURCE_GROUP_PARAMS (13.1) */
struct SmGroupParams {
    uint32_t sm_count;
    uint32_t coscheduled_sm_count;
    uint32_t preferred_coscheduled_sm_count;
    uint32_t flags;
    uint32_t locality_domain_id;
    uint32_t reserved[11];
};
static_assert(sizeof(SmGroupParams) == 64);

inline constexpr std::size_t kResourceBytes = 144;
inline constexpr std::size_t kResourceUnionOffset = 96;
static_assert(sizeof(CUdevResource) == kResourceBytes);
static_assert(offsetof(CUdevResource, sm) == kResourceUnionOffset);

/* The union of a CUdevResource, read and written as bytes: its members differ by header. */
template <class Fields>
Fields get_fields(const CUdevResource& resource) {
    Fields fields;
    std::memcpy(&fields, reinterpret_cast<const char*>(&resource) + kResourceUnionOffset,
                sizeof fields);
    return fields;
}

template <class Fields>
void set_fields(CUdevResource& resource, const Fields& fields) {
    std::memcpy(reinterpret_cast<char*>(&resource) + kResourceUnionOffset, &fields, sizeof fields);
}

extern "C" {
/* Functions that a 12.4 header does not declare. */
typedef CUresult(CUDAAPI* GreenCtxStreamCreateFn)(CUstream*, CUgreenCtx, unsigned, int);
typedef CUresult(CUDAAPI* GreenCtxGetIdFn)(CUgreenCtx, unsigned long long*);
typedef CUresult(CUDAAPI* DevSmResourceSplitFn)(CUdevResource*, unsigned, const CUdevResource*,
                                                CUdevResource*, unsigned, SmGroupParams*);
typedef CUresult(CUDAAPI* StreamGetDevResourceFn)(CUstream, CUdevResource*, CUdevResourceType);
}

} // namespace gcx::cu
