/* The scenario that docs/reference/languages.md shows in each language: 108 SMs next to 24,
 * verified to be disjoint.
 *
 *     cc scenario.c $(pkg-config --cflags --libs gcx) -o scenario && ./scenario
 *
 * Without a GPU: GCX_DRIVER=sim:h100@13.0 before it.
 */
#include <gcx.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with gcx's own words if a call failed. */
static void must(gcx_result result) {
    if (result == GCX_SUCCESS)
        return;
    fprintf(stderr, "%s [%s, %d]\n", gcx_last_error_message(), gcx_result_name(result), result);
    exit(1);
}

/* [scenario] */
static void scenario(void) {
    const gcx_sm_request want[2] = {{.sm_count = 108}, {.sm_count = 24}};
    const gcx_sm_request too_many = {.sm_count = 140};
    gcx_resource device, part[2], none;
    gcx_context context[2];
    gcx_stream stream[2];
    int owner[GCX_MAX_SMS] = {0};

    must(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device));
    must(gcx_sm_split(&device, want, 2, GCX_SPLIT_DEFAULT, part, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        uint32_t sms[GCX_MAX_SMS], count;
        must(gcx_context_create(&part[i], 1, NULL, &context[i]));
        must(gcx_stream_create(context[i], NULL, &stream[i]));
        /* gcx_stream_native(stream[i]) is the cudaStream_t */

        must(gcx_stream_probe_sms(stream[i], sms, GCX_MAX_SMS, &count)); /* a kernel notes it */
        printf("partition %d runs on %u SMs:", i, count);
        for (uint32_t k = 0; k < count; k++) {
            printf(" %u", sms[k]);
            if (owner[sms[k]]++ != 0) {
                fprintf(stderr, "SM %u is in both partitions\n", sms[k]);
                exit(1);
            }
        }
        printf("\n");
    }
    printf("no SM is in both\n");

    const gcx_result result =
        gcx_sm_split(&device, &too_many, 1, GCX_SPLIT_DEFAULT, &none, NULL, NULL, NULL);
    if (result == GCX_SUCCESS) {
        fprintf(stderr, "140 SMs were given\n");
        exit(1);
    }
    printf("140 SMs: %s [%s, %d]\n", gcx_last_error_message(), gcx_result_name(result), result);

    for (int i = 0; i < 2; i++) {
        must(gcx_stream_destroy(stream[i]));
        must(gcx_context_destroy(context[i]));
    }
}
/* [/scenario] */

int main(void) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    must(gcx_device_get_info(0, &info));
    printf("%s, %u SMs\n", info.name, info.sm_count);
    scenario();
    must(gcx_cache_get_stats(&stats));
    printf("given back: %u contexts in use\n", stats.in_use);
    return 0;
}
