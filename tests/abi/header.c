/* gcx.h and gcx_sim.h compile alone, in the strictest way, as C99 and as C++17 and
 * C++20; and what they say of initialisers holds. */
#include <gcx.h>
/* twice: the guard */
#include <gcx.h>

int check_header(void);

int check_header(void) {
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    gcx_device_info device = GCX_DEVICE_INFO_INIT;
    gcx_resource_info resource = GCX_RESOURCE_INFO_INIT;
    gcx_context_params context_params = GCX_CONTEXT_PARAMS_INIT;
    gcx_context_info context = GCX_CONTEXT_INFO_INIT;
    gcx_stream_params stream_params = GCX_STREAM_PARAMS_INIT;
    gcx_stream_info stream = GCX_STREAM_INFO_INIT;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    return driver.struct_size == sizeof driver && device.struct_size == sizeof device &&
           resource.struct_size == sizeof resource &&
           context_params.struct_size == sizeof context_params &&
           context.struct_size == sizeof context &&
           stream_params.struct_size == sizeof stream_params &&
           stream.struct_size == sizeof stream && stats.struct_size == sizeof stats &&
           stats.limit == 0 && stream_params.priority == 0;
}
