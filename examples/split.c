/* Splits device 0 into two partitions and shows on which SMs each one's kernels run.
 *
 *     cc split.c $(pkg-config --cflags --libs gcx) -o split && ./split [SMS SMS]
 */
#include <gcx.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with gcx's own words if a call failed. */
static void must(gcx_result result) {
    if (result == GCX_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", gcx_result_name(result), gcx_last_error_message());
    exit(1);
}

static uint32_t count_from(const char* text) {
    char* end = NULL;
    const unsigned long count = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || count > 10000) {
        fprintf(stderr, "\"%s\" is no number of SMs\n", text);
        exit(2);
    }
    return (uint32_t)count;
}

int main(int argc, char** argv) {
    gcx_sm_request want[2] = {{.sm_count = GCX_REST}, {.sm_count = 24}};
    gcx_resource device, part[2];
    gcx_context context[2];
    gcx_stream stream[2];
    gcx_device_info info = GCX_DEVICE_INFO_INIT;

    must(gcx_device_get_info(0, &info));
    if (argc == 3) {
        want[0].sm_count = count_from(argv[1]);
        want[1].sm_count = count_from(argv[2]);
    } else if (info.sm_count < 96) {
        want[1].sm_count = info.sm_count / 4; /* 24 SMs are more than some GPUs can spare */
    }
    must(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device));
    must(gcx_sm_split(&device, want, 2, GCX_SPLIT_DEFAULT, part, NULL, NULL, NULL));
    printf("%s, %u SMs\n", info.name, info.sm_count);

    for (int i = 0; i < 2; i++) {
        must(gcx_context_create(&part[i], 1, NULL, &context[i]));
        must(gcx_stream_create(context[i], NULL, &stream[i]));
        /* gcx_stream_native(stream[i]) is the cudaStream_t to launch kernels in. */
    }
    for (int i = 0; i < 2; i++) {
        uint32_t ids[GCX_MAX_SMS], count = 0;
        must(gcx_stream_probe_sms(stream[i], ids, GCX_MAX_SMS, &count));
        printf("partition %d runs on %u SMs:", i, count);
        for (uint32_t k = 0; k < count; k++)
            printf(" %u", ids[k]);
        printf("\n");
    }
    for (int i = 0; i < 2; i++) {
        must(gcx_stream_destroy(stream[i]));
        must(gcx_context_destroy(context[i]));
    }
    return 0;
}
