/* The operations of the vectors in C. */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The driver, devices and resources ---- */

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
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    const gcx_result result = gcx_driver_get_info(&info);
    answer(vector, "%d", info.capabilities[number_of(in[0])]);
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
    const gcx_result planned =
        gcx_sm_split(input, requests, count, flags, NULL, NULL, counts, &rest_count);
    const gcx_result result =
        gcx_sm_split(input, requests, count, flags, groups, &rest, NULL, NULL);
    if (planned != result) {
        broken("the dry run returns %s and the split %s", gcx_result_name(planned),
               gcx_result_name(result));
    }
    struct list list = {0};
    for (uint32_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.%" PRIu32, in[3], i);
        made_resource(vector, result, name, &groups[i]);
        if (result == GCX_SUCCESS && sm_count_of(&groups[i]) != counts[i]) {
            broken("group %" PRIu32 ": the plan gave %" PRIu32 " SMs, the split %" PRIu32, i,
                   counts[i], sm_count_of(&groups[i]));
        }
        add_item(&list, "%" PRIu32, counts[i]);
    }
    char name[64];
    snprintf(name, sizeof(name), "%s.rest", in[3]);
    made_resource(vector, result, name, &rest);
    if (result == GCX_SUCCESS && sm_count_of(&rest) != rest_count) {
        broken("the plan left %" PRIu32 " SMs, the split %" PRIu32, rest_count, sm_count_of(&rest));
    }
    answer_list(vector, &list);
    answer(vector, "%" PRIu32, rest_count);
    return result;
}

typedef gcx_result set_function(const gcx_resource*, const gcx_resource*, gcx_resource*);

static gcx_result combine(struct vector* vector, char** in, set_function* function) {
    gcx_resource value = {{0}};
    const gcx_resource* a = resource_of(vector, in[0]);
    const gcx_resource* b = resource_of(vector, in[1]);
    /* Copies, since both may be the object that represents "zero". */
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

static gcx_result op_overlap(struct vector* vector, char** in) {
    const gcx_resource copies[2] = {*resource_of(vector, in[0]), *resource_of(vector, in[1])};
    uint32_t count = 0;
    const gcx_result result = gcx_resource_get_overlap(&copies[0], &copies[1], &count);
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

/* ---- Contexts, streams, events and the context cache ---- */

static uint32_t resources_of(struct vector* vector, char* text, gcx_resource* resources) {
    char* names[MAX_LIST];
    const uint32_t count = items_of(text, names);
    for (uint32_t i = 0; i < count; i++) {
        resources[i] = *resource_of(vector, names[i]);
    }
    return count;
}

static gcx_result op_context(struct vector* vector, char** in) {
    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
    params.flags = flags_of(in[1]);
    gcx_resource resources[MAX_LIST];
    const uint32_t count = resources_of(vector, in[0], resources);
    struct object value = {.context = NULL};
    const gcx_result result = gcx_context_create(resources, count, &params, &value.context);
    return made(vector, result, in[2], CONTEXT, &value);
}

static gcx_result op_get(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_resource_type type = (gcx_resource_type)number_of_word(kTypes, in[1]);
    gcx_resource value = {{0}};
    const gcx_result result = of->kind == STREAM
                                  ? gcx_stream_get_resource(of->stream, type, &value)
                                  : gcx_context_get_resource(of->context, type, &value);
    return made_resource(vector, result, in[2], &value);
}

static gcx_result op_stream(struct vector* vector, char** in) {
    gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
    params.priority = atoi(in[1]);
    struct object value = {.stream = NULL};
    const struct object* of = object_of(vector, in[0]);
    const gcx_result result = of->kind == LEASE
                                  ? gcx_lease_stream_create(of->lease, &params, &value.stream)
                                  : gcx_stream_create(of->context, &params, &value.stream);
    if (result == GCX_SUCCESS) {
        gcx_stream_info info = GCX_STREAM_INFO_INIT;
        if (gcx_stream_get_info(value.stream, &info) != GCX_SUCCESS) {
            broken("gcx_stream_get_info: %s", gcx_last_error_message());
        }
        answer(vector, "%" PRId32 "\t%" PRId32 "\t%" PRIu32, info.device, info.priority,
               info.sm_count);
    }
    return made(vector, result, in[2], STREAM, &value);
}

static gcx_result op_event(struct vector* vector, char** in) {
    struct object value = {.event = NULL};
    const gcx_result result = gcx_event_create(atoi(in[0]), flags_of(in[1]), &value.event);
    return made(vector, result, in[2], EVENT, &value);
}

static gcx_result op_adopt(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    struct object value = {.context = NULL};
    gcx_result result;
    if (of->kind == STREAM) {
        result = gcx_stream_from_native(gcx_stream_native(of->stream), &value.stream);
    } else {
        result = gcx_event_from_native(gcx_event_native(of->event), &value.event);
    }
    return made(vector, result, in[1], of->kind, &value);
}

static gcx_result op_cluster(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    uint32_t blocks = 0;
    const gcx_result result = gcx_resource_find_max_cluster_size(&of->resource, &blocks);
    answer(vector, "%" PRIu32, blocks);
    return result;
}

static gcx_result op_probe(struct vector* vector, char** in) {
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    const gcx_result result =
        gcx_stream_probe_sms(object_of(vector, in[0])->stream, ids, GCX_MAX_SMS, &count);
    answer_ids(vector, ids, count);
    return result;
}

static gcx_result op_push(struct vector* vector, char** in) {
    const gcx_result result = gcx_context_push(object_of(vector, in[0])->context);
    vector->pushed += result == GCX_SUCCESS;
    return result;
}

/* Returns the name of the object with the handle. */
static const char* name_of(const struct vector* vector, gcx_context context) {
    for (size_t i = 0; i < vector->object_count; i++) {
        if (vector->objects[i].kind == CONTEXT && vector->objects[i].context == context) {
            return vector->objects[i].name;
        }
    }
    return "-";
}

static gcx_result op_pop(struct vector* vector, char** in) {
    (void)in;
    gcx_context context = NULL;
    const gcx_result result = gcx_context_pop(&context);
    vector->pushed -= result == GCX_SUCCESS;
    answer(vector, "%s", name_of(vector, context));
    return result;
}

static gcx_result op_current(struct vector* vector, char** in) {
    (void)in;
    gcx_context context = NULL;
    const gcx_result result = gcx_context_get_current(&context);
    answer(vector, "%s", name_of(vector, context));
    return result;
}

static gcx_result op_record(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_event event = object_of(vector, in[1])->event;
    return of->kind == STREAM ? gcx_stream_record(of->stream, event)
                              : gcx_context_record(of->context, event);
}

static gcx_result op_wait(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_event event = object_of(vector, in[1])->event;
    return of->kind == STREAM ? gcx_stream_wait(of->stream, event)
                              : gcx_context_wait(of->context, event);
}

static gcx_result op_synchronize(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    if (of->kind == CONTEXT) {
        return gcx_context_synchronize(of->context);
    }
    if (of->kind == LEASE) {
        return gcx_lease_synchronize(of->lease);
    }
    return of->kind == STREAM ? gcx_stream_synchronize(of->stream)
                              : gcx_event_synchronize(of->event);
}

static gcx_result op_query(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    if (of->kind == LEASE) {
        return gcx_lease_query(of->lease);
    }
    return of->kind == STREAM ? gcx_stream_query(of->stream) : gcx_event_query(of->event);
}

static gcx_result op_elapsed(struct vector* vector, char** in) {
    float milliseconds = 0;
    return gcx_event_get_elapsed(object_of(vector, in[0])->event, object_of(vector, in[1])->event,
                                 &milliseconds);
}

static gcx_result op_close(struct vector* vector, char** in) {
    struct object* object = object_of(vector, in[0]);
    const gcx_result result = close_object(object);
    object->closed = result == GCX_SUCCESS || object->closed;
    return result;
}

static gcx_result op_live(struct vector* vector, char** in) {
    gcx_live_context contexts[MAX_LIST];
    uint32_t count = 0;
    const gcx_result result = gcx_context_list(atoi(in[0]), contexts, MAX_LIST, &count);
    struct list list = {0};
    for (uint32_t i = 0; i < count; i++) {
        add_item(&list, "%" PRIu32 "/%" PRIu32 "/%" PRIu32 "/%" PRIu32, contexts[i].sm_count,
                 contexts[i].handle_count, contexts[i].stream_count, contexts[i].flags);
    }
    answer_list(vector, &list);
    return result;
}

static gcx_result op_limit(struct vector* vector, char** in) {
    (void)vector;
    return gcx_cache_set_limit(number_of(in[0]));
}

static gcx_result op_ahead(struct vector* vector, char** in) {
    gcx_resource resources[MAX_LIST];
    const uint32_t count = resources_of(vector, in[0], resources);
    return gcx_cache_prepare(resources, count, NULL);
}

static gcx_result op_trim(struct vector* vector, char** in) {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    const gcx_result result = gcx_cache_trim(number_of(in[0]), &trimmed);
    answer(vector, "%" PRIu32, trimmed.contexts);
    return result;
}

static gcx_result op_cache(struct vector* vector, char** in) {
    (void)in;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    const gcx_result result = gcx_cache_get_stats(&stats);
    const gcx_cache_stats* begin = &vector->cache;
    answer(vector, "%" PRIu32 "\t%" PRIu32, stats.in_use, stats.cached);
    answer(vector, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, stats.hits - begin->hits,
           stats.misses - begin->misses, stats.evicted - begin->evicted);
    return result;
}

/* ---- Leases ---- */

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

static gcx_result op_lease(struct vector* vector, char** in) {
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

/* Parses a list of NAME/COUNT. */
static uint32_t sizes_of(struct vector* vector, char* text, gcx_lease_size* sizes) {
    char* items[MAX_LIST];
    const uint32_t count = items_of(text, items);
    for (uint32_t i = 0; i < count; i++) {
        char* sms = strchr(items[i], '/');
        if (sms == NULL) {
            broken("%s is not a size of a lease", items[i]);
            return 0;
        }
        *sms++ = '\0';
        const int parked = strcmp(sms, "parked") == 0;
        sizes[i] = (gcx_lease_size){.lease = lease_of(vector, items[i]),
                                    .sm_count = parked ? 0 : count_of(sms),
                                    .flags = parked ? GCX_SIZE_PARKED : 0};
    }
    return count;
}

static gcx_result op_resize(struct vector* vector, char** in) {
    gcx_lease_size sizes[MAX_LIST];
    const uint32_t count = sizes_of(vector, in[0], sizes);
    const gcx_result result = gcx_lease_resize(sizes, count, flags_of(in[1]));
    struct list list = {0};
    for (uint32_t i = 0; i < count && result == GCX_SUCCESS; i++) {
        add_item(&list, "%" PRIu32, info_of(sizes[i].lease).sm_count);
    }
    answer_list(vector, &list);
    return result;
}

static gcx_result op_prepare(struct vector* vector, char** in) {
    gcx_lease_size sizes[MAX_LIST];
    const uint32_t count = sizes_of(vector, in[0], sizes);
    return gcx_lease_prepare(sizes, count);
}

static gcx_result op_held(struct vector* vector, char** in) {
    gcx_resource value = {{0}};
    const gcx_result result = gcx_lease_get_resource(lease_of(vector, in[0]), &value);
    if (result == GCX_SUCCESS) {
        answer(vector, "%" PRIu32, sm_count_of(&value));
    }
    return made_resource(vector, result, in[1], &value);
}

static gcx_result op_alone(struct vector* vector, char** in) {
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    const gcx_result result = gcx_lease_get_info(lease_of(vector, in[0]), &info);
    answer(vector, "%" PRIu32, info.exclusive_sm_count);
    return result;
}

static gcx_result op_leases(struct vector* vector, char** in) {
    gcx_live_lease leases[MAX_LIST];
    uint32_t count = 0;
    const gcx_result result = gcx_lease_list(atoi(in[0]), leases, MAX_LIST, &count);
    struct list list = {0};
    for (uint32_t i = 0; i < count; i++) {
        add_item(&list, "%" PRIu32 "/%" PRIu32 "/%" PRIu32, leases[i].sm_count,
                 leases[i].stream_count, leases[i].flags);
    }
    answer_list(vector, &list);
    return result;
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
    {"overlap", 2, op_overlap},
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
