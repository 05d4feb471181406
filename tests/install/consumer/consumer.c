#include <gcx.h>

#include <stdio.h>

int main(void) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    if (gcx_device_get_info(0, &info) != GCX_SUCCESS) {
        fprintf(stderr, "%s\n", gcx_last_error_message());
        return 1;
    }
    printf("C: %s, %u SMs\n", info.name, info.sm_count);
    return gcx_version() == GCX_VERSION ? 0 : 1;
}
