// Devices: their properties, and which SMs their atoms have.

#include "api/library.hpp"
#include "api/result.hpp"

using namespace gcx;

namespace {

void refuse_virtual_numbers(const Library& lib, const Device& device, const char* why) {
    if (mps_of(lib.driver, device.native()).state == GCX_MPS_ON)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("%s is shared through MPS, under which SM numbers are virtual: %s",
                    device.label().c_str(), why));
}

gcx_resource default_workqueue(const Device& device) {
    device.driver().require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    CUdevResource native{};
    GCX_CALL(device.driver(), cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    return seal_workqueue_config(device, native);
}

} // namespace

gcx_result gcx_device_get_count(int32_t* count) {
    GCX_BODY({ *not_null(count, "count") = library().device_count(); });
}

gcx_result gcx_device_get_info(int32_t device, gcx_device_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        Library& lib = library();
        const Device& its_device = lib.device(device);
        const Mps mps = mps_of(lib.driver, its_device.native());
        its_device.get_info(*out);
        out->mps = mps.state;
        out->mps_thread_percentage = mps.thread_percentage;
        out.write();
    });
}

gcx_result gcx_device_get_stream_priority_range(int32_t device, int32_t* least, int32_t* greatest) {
    GCX_BODY({
        not_null(least, "least");
        not_null(greatest, "greatest");
        const Device::Priorities range = library().device(device).stream_priorities();
        *least = range.least;
        *greatest = range.greatest;
    });
}

gcx_result gcx_device_get_resource(int32_t device, gcx_resource_type type, gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        Device& its_device = library().device(device);
        switch (type) {
        case GCX_RESOURCE_SM: {
            const auto family = its_device.family(GCX_SM_FAMILY_COSCHEDULED);
            *resource = seal({&its_device, family, family->all()});
            return;
        }
        case GCX_RESOURCE_WORKQUEUE_CONFIG:
            *resource = default_workqueue(its_device);
            return;
        case GCX_RESOURCE_WORKQUEUE:
            fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
                 "only a context has a GCX_RESOURCE_WORKQUEUE; a device has "
                 "GCX_RESOURCE_WORKQUEUE_CONFIG");
        }
        refuse_type(type);
    });
}

gcx_result gcx_device_map_sms(int32_t device, gcx_sm_family family) {
    GCX_BODY({
        Library& lib = library();
        Device& its_device = lib.device(device);
        if (family != GCX_SM_FAMILY_COSCHEDULED && family != GCX_SM_FAMILY_FINE &&
            family != GCX_SM_FAMILY_MAX_CLUSTER)
            fail(GCX_ERROR_INVALID_VALUE,
                 format(
                     "family %d can't be mapped; coscheduled (1), fine (2) and max-cluster (3) can",
                     family));
        const auto its_family = its_device.family(family);
        if (its_family->sm_map() != nullptr) // asks the driver nothing
            return;
        refuse_virtual_numbers(lib, its_device, "they don't tell which SMs an atom holds");
        lib.probe.map_family(lib.cache, its_device, its_family);
    });
}

gcx_result gcx_device_find_shared_sms(int32_t device, uint32_t* sm_ids, uint32_t capacity,
                                      uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        Library& lib = library();
        Device& its_device = lib.device(device);
        if (its_device.may_share_sms())
            refuse_virtual_numbers(lib, its_device,
                                   "they don't tell which SMs partitions have in common");
        give_sm_ids(lib.probe.shared_sms(lib.cache, its_device), sm_ids, capacity, count);
    });
}
