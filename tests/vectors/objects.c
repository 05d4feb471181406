/* What each operation of the vectors is in C: contexts, streams, events, and the kept contexts. */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gcx_result op_context(struct vector* vector, char** in) {
    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
    params.flags = flags_of(in[1]);
    char* names[MAX_LIST];
    gcx_resource resources[MAX_LIST];
    const uint32_t count = items_of(in[0], names);
    for (uint32_t i = 0; i < count; i++) {
        resources[i] = *resource_of(vector, names[i]);
    }
    struct object value = {.context = NULL};
    const gcx_result result = gcx_context_create(resources, count, &params, &value.context);
    return made(vector, result, in[2], CONTEXT, &value);
}

gcx_result op_get(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_resource_type type = (gcx_resource_type)number_of_word(kTypes, in[1]);
    gcx_resource value = {{0}};
    const gcx_result result = of->kind == STREAM
                                  ? gcx_stream_get_resource(of->stream, type, &value)
                                  : gcx_context_get_resource(of->context, type, &value);
    return made_resource(vector, result, in[2], &value);
}

gcx_result op_stream(struct vector* vector, char** in) {
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

gcx_result op_event(struct vector* vector, char** in) {
    struct object value = {.event = NULL};
    const gcx_result result = gcx_event_create(atoi(in[0]), flags_of(in[1]), &value.event);
    return made(vector, result, in[2], EVENT, &value);
}

gcx_result op_adopt(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    struct object value = {.context = NULL};
    gcx_result result;
    if (of->kind == CONTEXT) {
        result = gcx_context_from_native(gcx_context_native(of->context), &value.context);
    } else if (of->kind == STREAM) {
        result = gcx_stream_from_native(gcx_stream_native(of->stream), &value.stream);
    } else {
        result = gcx_event_from_native(gcx_event_native(of->event), &value.event);
    }
    return made(vector, result, in[1], of->kind, &value);
}

gcx_result op_cluster(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    uint32_t blocks = 0;
    const gcx_result result = of->kind == STREAM
                                  ? gcx_stream_get_max_cluster_size(of->stream, &blocks)
                                  : gcx_resource_get_max_cluster_size(&of->resource, &blocks);
    answer(vector, "%" PRIu32, blocks);
    return result;
}

gcx_result op_probe(struct vector* vector, char** in) {
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    const gcx_result result =
        gcx_stream_probe_sms(object_of(vector, in[0])->stream, ids, GCX_MAX_SMS, &count);
    answer_ids(vector, ids, count);
    return result;
}

gcx_result op_push(struct vector* vector, char** in) {
    const gcx_result result = gcx_context_push(object_of(vector, in[0])->context);
    vector->pushed += result == GCX_SUCCESS;
    return result;
}

/* The name of the object that has the handle. */
static const char* name_of(const struct vector* vector, gcx_context context) {
    for (size_t i = 0; i < vector->object_count; i++) {
        if (vector->objects[i].kind == CONTEXT && vector->objects[i].context == context) {
            return vector->objects[i].name;
        }
    }
    return "-";
}

gcx_result op_pop(struct vector* vector, char** in) {
    (void)in;
    gcx_context context = NULL;
    const gcx_result result = gcx_context_pop(&context);
    vector->pushed -= result == GCX_SUCCESS;
    answer(vector, "%s", name_of(vector, context));
    return result;
}

gcx_result op_current(struct vector* vector, char** in) {
    (void)in;
    gcx_context context = NULL;
    const gcx_result result = gcx_context_get_current(&context);
    answer(vector, "%s", name_of(vector, context));
    return result;
}

gcx_result op_record(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_event event = object_of(vector, in[1])->event;
    return of->kind == STREAM ? gcx_stream_record(of->stream, event)
                              : gcx_context_record(of->context, event);
}

gcx_result op_wait(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    const gcx_event event = object_of(vector, in[1])->event;
    return of->kind == STREAM ? gcx_stream_wait(of->stream, event)
                              : gcx_context_wait(of->context, event);
}

gcx_result op_synchronize(struct vector* vector, char** in) {
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

gcx_result op_query(struct vector* vector, char** in) {
    const struct object* of = object_of(vector, in[0]);
    if (of->kind == LEASE) {
        return gcx_lease_query(of->lease);
    }
    return of->kind == STREAM ? gcx_stream_query(of->stream) : gcx_event_query(of->event);
}

gcx_result op_elapsed(struct vector* vector, char** in) {
    float milliseconds = 0;
    return gcx_event_get_elapsed(object_of(vector, in[0])->event, object_of(vector, in[1])->event,
                                 &milliseconds);
}

gcx_result op_close(struct vector* vector, char** in) {
    struct object* object = object_of(vector, in[0]);
    const gcx_result result = close_object(object);
    object->closed = result == GCX_SUCCESS || object->closed;
    return result;
}

gcx_result op_live(struct vector* vector, char** in) {
    gcx_live_context contexts[MAX_LIST];
    uint32_t count = 0;
    const gcx_result result = gcx_context_list(atoi(in[0]), contexts, MAX_LIST, &count);
    char text[MAX_TEXT] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        length += (size_t)snprintf(
            text + length, sizeof(text) - length, "%s%" PRIu32 "/%" PRIu32 "/%" PRIu32 "/%" PRIu32,
            i == 0 ? "" : ",", contexts[i].sm_count, contexts[i].handle_count,
            contexts[i].stream_count, contexts[i].flags);
    }
    answer_list(vector, text);
    return result;
}

gcx_result op_limit(struct vector* vector, char** in) {
    (void)vector;
    return gcx_cache_set_limit(number_of(in[0]));
}

gcx_result op_ahead(struct vector* vector, char** in) {
    char* names[MAX_LIST];
    gcx_resource resources[MAX_LIST];
    const uint32_t count = items_of(in[0], names);
    for (uint32_t i = 0; i < count; i++) {
        resources[i] = *resource_of(vector, names[i]);
    }
    return gcx_cache_prepare(resources, count, NULL);
}

gcx_result op_trim(struct vector* vector, char** in) {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    const gcx_result result = gcx_cache_trim(number_of(in[0]), &trimmed);
    answer(vector, "%" PRIu32, trimmed.contexts);
    return result;
}

gcx_result op_cache(struct vector* vector, char** in) {
    (void)in;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    const gcx_result result = gcx_cache_get_stats(&stats);
    const gcx_cache_stats* begin = &vector->cache;
    answer(vector, "%" PRIu32 "\t%" PRIu32, stats.in_use, stats.kept);
    answer(vector, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, stats.hits - begin->hits,
           stats.misses - begin->misses, stats.evicted - begin->evicted);
    return result;
}
