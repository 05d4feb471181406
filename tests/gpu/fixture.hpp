// Shared by the GPU tests: short ways to split, create contexts and streams, and probe.
#pragma once

#include "raw.hpp"

#include "check.hpp"

#include <gcx.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fixture {

using SmIds = std::vector<uint32_t>;

inline gcx_resource whole_device(int32_t device = 0) {
    gcx_resource resource{};
    CHECK_OK(gcx_device_get_resource(device, GCX_RESOURCE_SM, &resource));
    return resource;
}

struct Split {
    std::vector<gcx_resource> groups;
    gcx_resource remainder{};
};

inline Split split(const gcx_resource& from, const std::vector<uint32_t>& counts,
                   uint32_t flags = GCX_SPLIT_DEFAULT) {
    std::vector<gcx_sm_request> requests(counts.size());
    for (std::size_t i = 0; i < counts.size(); i++)
        requests[i].sm_count = counts[i];
    Split result;
    result.groups.resize(counts.size());
    CHECK_OK(gcx_sm_split(&from, requests.data(), static_cast<uint32_t>(counts.size()), flags,
                          result.groups.data(), &result.remainder, nullptr, nullptr));
    return result;
}

inline gcx_resource_info info_of(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    CHECK_OK(gcx_resource_get_info(&resource, &info));
    return info;
}

inline uint32_t sm_count(const gcx_resource& resource) {
    return info_of(resource).sm_count;
}

inline uint32_t atom_count(const gcx_resource& resource) {
    return info_of(resource).atom_count;
}

inline gcx_resource atom_of(const gcx_resource& resource, uint32_t index) {
    gcx_resource atom{};
    CHECK_OK(gcx_resource_get_atom(&resource, index, &atom));
    return atom;
}

inline SmIds mapped_sms(const gcx_resource& resource) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

// Returns the SMs that the stream's kernels run on.
inline SmIds probed(gcx_stream stream) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

// Has a context over one resource, and a stream of it.
class Partition {
  public:
    explicit Partition(const gcx_resource& resource) {
        CHECK_OK(gcx_context_create(&resource, 1, nullptr, &context));
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    }
    ~Partition() {
        CHECK_OK(gcx_stream_destroy(stream));
        CHECK_OK(gcx_context_destroy(context));
    }
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;

    CUstream native() const { return gcx_stream_native(stream); }
    SmIds probe() const { return probed(stream); }

    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
};

inline bool disjoint(const std::vector<SmIds>& sets) {
    std::set<uint32_t> all;
    std::size_t total = 0;
    for (const SmIds& set : sets) {
        all.insert(set.begin(), set.end());
        total += set.size();
    }
    return all.size() == total;
}

// Returns "0-3 16-19", for the log of a run.
inline std::string ranges(const SmIds& ids) {
    std::string text;
    for (std::size_t i = 0; i < ids.size();) {
        std::size_t end = i;
        while (end + 1 < ids.size() && ids[end + 1] == ids[end] + 1)
            end++;
        text += (text.empty() ? "" : " ") + std::to_string(ids[i]);
        if (end != i)
            text += "-" + std::to_string(ids[end]);
        i = end + 1;
    }
    return text;
}

inline uint64_t free_memory() {
    const raw::InPrimary current;
    std::size_t free = 0;
    std::size_t total = 0;
    CHECK_EQ(raw::cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
}

} // namespace fixture
