/* What each operation of the vectors is in C: the driver, devices and resources. */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gcx_result op_open(struct vector* vector, char** in) {
    (void)vector;
    return gcx_driver_open(in[0]);
}

static gcx_result op_driver(struct vector* vector, char** in) {
    (void)in;
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    const gcx_result result = gcx_driver_get_info(&info);
    answer(vector, "%" PRId32 "\t%" PRId32, info.version, info.simulated);
    return result;
}

static gcx_result op_capability(struct vector* vector, char** in) {
    gcx_capability_info info = GCX_CAPABILITY_INFO_INIT;
    const gcx_result result = gcx_capability_get_info((gcx_capability)number_of(in[0]), &info);
    answer(vector, "%" PRId32, info.available);
    return result;
}

static gcx_result op_devices(struct vector* vector, char** in) {
    (void)in;
    int32_t count = -1;
    const gcx_result result = gcx_device_get_count(&count);
    answer(vector, "%" PRId32, count);
    return result;
}

static gcx_result op_device(struct vector* vector, char** in) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    const gcx_result result = gcx_device_get_info(atoi(in[0]), &info);
    answer(vector, "%" PRId32 "\t%" PRId32 "\t%" PRIu32 "\t%s", info.compute_capability_major,
           info.compute_capability_minor, info.sm_count, info.name);
    return result;
}

static gcx_result op_priorities(struct vector* vector, char** in) {
    int32_t least = 0;
    int32_t greatest = 0;
    const gcx_result result = gcx_device_get_stream_priority_range(atoi(in[0]), &least, &greatest);
    answer(vector, "%" PRId32 "\t%" PRId32, least, greatest);
    return result;
}

static gcx_result op_resource(struct vector* vector, char** in) {
    gcx_resource value = {{0}};
    const int type = number_of_word(kTypes, in[1]);
    const gcx_result result = gcx_device_get_resource(atoi(in[0]), (gcx_resource_type)type, &value);
    return made_resource(vector, result, in[2], &value);
}

static gcx_result op_info(struct vector* vector, char** in) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    const gcx_result result = gcx_resource_get_info(resource_of(vector, in[0]), &info);
    answer(vector, "%" PRId32, info.device);
    answer(vector, "%s", word_of_number(kFamilies, (int)info.family));
    answer(vector, "%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32, info.sm_count,
           info.atom_count, info.min_partition_size, info.coscheduled_alignment, info.flags);
    if (info.flags & GCX_SM_REQUEST_LOCALITY_DOMAIN_ID) {
        answer(vector, "%" PRIu32, info.locality_domain_id);
    } else {
        answer(vector, "-");
    }
    return result;
}

static gcx_result op_queue(struct vector* vector, char** in) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    const gcx_result result = gcx_resource_get_info(resource_of(vector, in[0]), &info);
    answer(vector, "%" PRId32 "\t%s\t%" PRIu32, info.device,
           word_of_number(kScopes, (int)info.workqueue_scope), info.workqueue_concurrency_limit);
    return result;
}

static gcx_result op_split(struct vector* vector, char** in) {
    gcx_sm_request requests[MAX_LIST];
    gcx_resource groups[MAX_LIST] = {{{0}}};
    gcx_resource rest = {{0}};
    uint32_t counts[MAX_LIST] = {0};
    uint32_t rest_count = 0;
    const gcx_resource* input = resource_of(vector, in[0]);
    const uint32_t flags = flags_of(in[1]);
    const uint32_t count = requests_of(in[2], requests);
    const gcx_result planned = gcx_sm_plan(input, requests, count, flags, counts, &rest_count);
    const gcx_result result = gcx_sm_split(input, requests, count, flags, groups, &rest);
    if (planned != result) {
        broken("gcx_sm_plan answers %s and gcx_sm_split %s", gcx_result_name(planned),
               gcx_result_name(result));
    }
    char text[MAX_TEXT] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.%" PRIu32, in[3], i);
        made_resource(vector, result, name, &groups[i]);
        if (result == GCX_SUCCESS && sm_count_of(&groups[i]) != counts[i]) {
            broken("group %" PRIu32 ": the plan gave %" PRIu32 " SMs, the split %" PRIu32, i,
                   counts[i], sm_count_of(&groups[i]));
        }
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%" PRIu32,
                                   i == 0 ? "" : ",", counts[i]);
    }
    char name[64];
    snprintf(name, sizeof(name), "%s.rest", in[3]);
    made_resource(vector, result, name, &rest);
    if (result == GCX_SUCCESS && sm_count_of(&rest) != rest_count) {
        broken("the plan left %" PRIu32 " SMs, the split %" PRIu32, rest_count, sm_count_of(&rest));
    }
    answer_list(vector, text);
    answer(vector, "%" PRIu32, rest_count);
    return result;
}

typedef gcx_result set_function(const gcx_resource*, const gcx_resource*, gcx_resource*);

static gcx_result combine(struct vector* vector, char** in, set_function* function) {
    gcx_resource value = {{0}};
    const gcx_resource* a = resource_of(vector, in[0]);
    const gcx_resource* b = resource_of(vector, in[1]);
    /* Copies, since the second may be the object that stands for "zero" too. */
    const gcx_resource copies[2] = {*a, *b};
    const gcx_result result = function(&copies[0], &copies[1], &value);
    if (result == GCX_SUCCESS) {
        answer(vector, "%" PRIu32, sm_count_of(&value));
    }
    return made_resource(vector, result, in[2], &value);
}

static gcx_result op_union(struct vector* vector, char** in) {
    return combine(vector, in, gcx_resource_union);
}

static gcx_result op_subtract(struct vector* vector, char** in) {
    return combine(vector, in, gcx_resource_subtract);
}

static gcx_result op_intersect(struct vector* vector, char** in) {
    return combine(vector, in, gcx_resource_intersect);
}

static gcx_result op_overlap(struct vector* vector, char** in) {
    const gcx_resource copies[2] = {*resource_of(vector, in[0]), *resource_of(vector, in[1])};
    uint32_t count = 0;
    const gcx_result result = gcx_resource_get_overlap(&copies[0], &copies[1], &count);
    answer(vector, "%" PRIu32, count);
    return result;
}

static gcx_result op_live_overlap(struct vector* vector, char** in) {
    uint32_t count = 0;
    const gcx_result result = gcx_resource_get_live_overlap(resource_of(vector, in[0]), &count);
    answer(vector, "%" PRIu32, count);
    return result;
}

static gcx_result op_same(struct vector* vector, char** in) {
    const struct object* a = object_of(vector, in[0]);
    const struct object* b = object_of(vector, in[1]);
    int same = memcmp(&a->resource, &b->resource, sizeof(a->resource)) == 0;
    if (a->kind == CONTEXT) {
        gcx_context_info info[2] = {GCX_CONTEXT_INFO_INIT, GCX_CONTEXT_INFO_INIT};
        gcx_result result = gcx_context_get_info(a->context, &info[0]);
        if (result == GCX_SUCCESS) {
            result = gcx_context_get_info(b->context, &info[1]);
        }
        if (result != GCX_SUCCESS) {
            return result;
        }
        same = info[0].id == info[1].id;
    }
    answer(vector, same ? "yes" : "no");
    return GCX_SUCCESS;
}

static gcx_result op_atom(struct vector* vector, char** in) {
    gcx_resource value = {{0}};
    const gcx_result result =
        gcx_resource_get_atom(resource_of(vector, in[0]), number_of(in[1]), &value);
    if (result == GCX_SUCCESS) {
        answer(vector, "%" PRIu32, sm_count_of(&value));
    }
    return made_resource(vector, result, in[2], &value);
}

static gcx_result op_map(struct vector* vector, char** in) {
    (void)vector;
    return gcx_device_map_sms(atoi(in[0]), (gcx_sm_family)number_of_word(kFamilies, in[1]));
}

static gcx_result op_sms(struct vector* vector, char** in) {
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    const gcx_result result =
        gcx_resource_get_sm_ids(resource_of(vector, in[0]), ids, GCX_MAX_SMS, &count);
    answer_ids(vector, ids, count);
    return result;
}

static gcx_result op_configure(struct vector* vector, char** in) {
    gcx_resource value = {{0}};
    const gcx_workqueue_scope scope = (gcx_workqueue_scope)number_of_word(kScopes, in[1]);
    const gcx_result result =
        gcx_workqueue_configure(resource_of(vector, in[0]), scope, number_of(in[2]), &value);
    return made_resource(vector, result, in[3], &value);
}

static const struct operation kOperations[] = {
    {"open", 1, op_open},
    {"driver", 0, op_driver},
    {"capability", 1, op_capability},
    {"devices", 0, op_devices},
    {"device", 1, op_device},
    {"priorities", 1, op_priorities},
    {"resource", 3, op_resource},
    {"info", 1, op_info},
    {"queue", 1, op_queue},
    {"split", 4, op_split},
    {"union", 3, op_union},
    {"subtract", 3, op_subtract},
    {"intersect", 3, op_intersect},
    {"overlap", 2, op_overlap},
    {"live-overlap", 1, op_live_overlap},
    {"same", 2, op_same},
    {"atom", 3, op_atom},
    {"map", 2, op_map},
    {"sms", 1, op_sms},
    {"cluster", 1, op_cluster},
    {"configure", 4, op_configure},
    {"context", 3, op_context},
    {"get", 3, op_get},
    {"stream", 3, op_stream},
    {"event", 3, op_event},
    {"adopt", 2, op_adopt},
    {"probe", 1, op_probe},
    {"push", 1, op_push},
    {"pop", 0, op_pop},
    {"current", 0, op_current},
    {"record", 2, op_record},
    {"wait", 2, op_wait},
    {"synchronize", 1, op_synchronize},
    {"query", 1, op_query},
    {"elapsed", 2, op_elapsed},
    {"close", 1, op_close},
    {"live", 1, op_live},
    {"limit", 1, op_limit},
    {"cache", 0, op_cache},
    {"ahead", 1, op_ahead},
    {"trim", 1, op_trim},
    {"lease", 7, op_lease},
    {"resize", 2, op_resize},
    {"prepare", 1, op_prepare},
    {"hand-over", 3, op_hand_over},
    {"held", 2, op_held},
    {"alone", 1, op_alone},
    {"leases", 1, op_leases},
};

const struct operation* find_operation(const char* name) {
    for (size_t i = 0; i < sizeof(kOperations) / sizeof(kOperations[0]); i++) {
        if (strcmp(kOperations[i].name, name) == 0) {
            return &kOperations[i];
        }
    }
    return NULL;
}
