/* What each operation of the vectors is in C: leases. */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gcx_lease lease_of(struct vector* vector, const char* name) {
    return object_of(vector, name)->lease;
}

static gcx_lease_info info_of(gcx_lease lease) {
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    if (gcx_lease_get_info(lease, &info) != GCX_SUCCESS) {
        broken("gcx_lease_get_info: %s", gcx_last_error_message());
    }
    return info;
}

gcx_result op_lease(struct vector* vector, char** in) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = flags_of(in[2]);
    params.family = (gcx_sm_family)number_of_word(kFamilies, in[3]);
    params.min_sm_count = number_of(in[4]);
    params.exclusive_sm_count = number_of(in[5]);
    params.name = in[6];
    struct object value = {.lease = NULL};
    const gcx_result result =
        gcx_lease_acquire(atoi(in[0]), count_of(in[1]), &params, &value.lease);
    if (result == GCX_SUCCESS) {
        answer(vector, "%" PRIu32, info_of(value.lease).sm_count);
    }
    return made(vector, result, in[6], LEASE, &value);
}

/* A list of NAME/COUNT. */
static uint32_t sizes_of(struct vector* vector, char* text, gcx_lease_size* sizes) {
    char* items[MAX_LIST];
    const uint32_t count = items_of(text, items);
    for (uint32_t i = 0; i < count; i++) {
        char* sms = strchr(items[i], '/');
        if (sms == NULL) {
            broken("%s is no size of a lease", items[i]);
            return 0;
        }
        *sms++ = '\0';
        sizes[i] = (gcx_lease_size){.lease = lease_of(vector, items[i]), .sm_count = count_of(sms)};
    }
    return count;
}

gcx_result op_resize(struct vector* vector, char** in) {
    gcx_lease_size sizes[MAX_LIST];
    const uint32_t count = sizes_of(vector, in[0], sizes);
    const gcx_result result = gcx_lease_resize(sizes, count, flags_of(in[1]));
    char text[MAX_TEXT] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count && result == GCX_SUCCESS; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%" PRIu32,
                                   i == 0 ? "" : ",", info_of(sizes[i].lease).sm_count);
    }
    answer_list(vector, text);
    return result;
}

gcx_result op_prepare(struct vector* vector, char** in) {
    gcx_lease_size sizes[MAX_LIST];
    const uint32_t count = sizes_of(vector, in[0], sizes);
    return gcx_lease_prepare(sizes, count);
}

gcx_result op_hand_over(struct vector* vector, char** in) {
    struct object* from = object_of(vector, in[0]);
    const gcx_lease to = lease_of(vector, in[1]);
    const gcx_result result = gcx_lease_hand_over(from->lease, to, flags_of(in[2]));
    if (result == GCX_SUCCESS) {
        from->closed = 1;
        answer(vector, "%" PRIu32, info_of(to).sm_count);
    }
    return result;
}

gcx_result op_held(struct vector* vector, char** in) {
    gcx_resource value = {{0}};
    const gcx_result result = gcx_lease_get_resource(lease_of(vector, in[0]), &value);
    if (result == GCX_SUCCESS) {
        answer(vector, "%" PRIu32, sm_count_of(&value));
    }
    return made_resource(vector, result, in[1], &value);
}

gcx_result op_alone(struct vector* vector, char** in) {
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    const gcx_result result = gcx_lease_get_info(lease_of(vector, in[0]), &info);
    answer(vector, "%" PRIu32, info.exclusive_sm_count);
    return result;
}

gcx_result op_leases(struct vector* vector, char** in) {
    gcx_live_lease leases[MAX_LIST];
    uint32_t count = 0;
    const gcx_result result = gcx_lease_list(atoi(in[0]), leases, MAX_LIST, &count);
    char text[MAX_TEXT] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "%s%" PRIu32 "/%" PRIu32 "/%" PRIu32, i == 0 ? "" : ",",
                                   leases[i].sm_count, leases[i].stream_count, leases[i].flags);
    }
    answer_list(vector, text);
    return result;
}
