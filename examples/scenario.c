/* 108 + 24: two partitions of device 0, a stream in each, which SMs they have, and an error.
 *
 *     cc scenario.c $(pkg-config --cflags --libs gcx) -o scenario && ./scenario
 */
#include <gcx.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with gcx's own words if a call failed. */
static void must(gcx_result result) {
    if (result == GCX_SUCCESS)
        return;
    fprintf(stderr, "%s [%s, %d]\n", gcx_last_error_message(), gcx_result_name(result), result);
    exit(1);
}

// [scenario]
static bool scenario(void) {
    const gcx_sm_request want[2] = {{.sm_count = 108}, {.sm_count = 24}};
    const gcx_sm_request too_many = {.sm_count = 140};
    gcx_resource sms, part[2], none;
    gcx_context context[2];
    gcx_stream stream[2];
    uint32_t ids[2][GCX_MAX_SMS], count[2], shared = 0;

    must(gcx_device_get_resource(0, GCX_RESOURCE_SM, &sms));
    must(gcx_sm_split(&sms, want, 2, GCX_SPLIT_DEFAULT, part, NULL));
    for (int i = 0; i < 2; i++) {
        must(gcx_context_create(&part[i], 1, NULL, &context[i]));
        must(gcx_stream_create(context[i], NULL, &stream[i]));
        /* gcx_stream_native(stream[i]) is the cudaStream_t */
    }

    /* Which SMs a kernel really runs on. */
    for (int i = 0; i < 2; i++)
        must(gcx_stream_probe_sms(stream[i], ids[i], GCX_MAX_SMS, &count[i]));
    for (uint32_t a = 0; a < count[0]; a++)
        for (uint32_t b = 0; b < count[1]; b++)
            shared += ids[0][a] == ids[1][b];
    printf("%u and %u SMs, %u shared\n", count[0], count[1], shared);

    const gcx_result result = gcx_sm_split(&sms, &too_many, 1, GCX_SPLIT_DEFAULT, &none, NULL);
    printf("%s [%s, %d]\n", gcx_last_error_message(), gcx_result_name(result), result);

    for (int i = 0; i < 2; i++) {
        must(gcx_stream_destroy(stream[i]));
        must(gcx_context_destroy(context[i]));
    }
    return result != GCX_SUCCESS && count[0] == 108 && count[1] == 24 && shared == 0;
}
// [/scenario]

int main(void) {
    return scenario() ? 0 : 1;
}
