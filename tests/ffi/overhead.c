/* Measures the calls of gcx that tests/ffi/overhead.py compares other languages with. */
#include <gcx.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must(gcx_result result) {
    if (result == GCX_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", gcx_result_name(result), gcx_last_error_message());
    exit(1);
}

static gcx_resource device;

/* Splits, creates cached contexts and streams of the groups, and destroys them. */
static void round_of_all(void) {
    const gcx_sm_request want[2] = {{.sm_count = 108}, {.sm_count = 24}};
    gcx_resource group[2];
    gcx_context context[2];
    gcx_stream stream[2];

    must(gcx_sm_split(&device, want, 2, GCX_SPLIT_DEFAULT, group, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        must(gcx_context_create(&group[i], 1, NULL, &context[i]));
        must(gcx_stream_create(context[i], NULL, &stream[i]));
    }
    for (int i = 0; i < 2; i++) {
        must(gcx_stream_destroy(stream[i]));
        must(gcx_context_destroy(context[i]));
    }
}

static void version(void) {
    gcx_version();
}

/* What one call takes in the fastest of many turns, which nothing else disturbed. */
static double nanoseconds(int calls, void (*call)(void)) {
    double best = 1e18;
    for (int turn = 0; turn < 50; turn++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < calls; i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double took =
            (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
        if (took < best)
            best = took;
    }
    return best / calls;
}

int main(void) {
    must(gcx_device_get_resource(0, GCX_RESOURCE_SM, &device));
    round_of_all();
    printf("version %.2f\n", nanoseconds(20000, version));
    printf("round %.2f\n", nanoseconds(500, round_of_all));
    return 0;
}
