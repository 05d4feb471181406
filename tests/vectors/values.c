/* Words, numbers, outputs and objects of the vectors. */
#include "vectors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words and numbers ---- */

void answer(struct vector* vector, const char* format, ...) {
    const size_t length = strlen(vector->outputs);
    vector->outputs[length] = '\t';
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(vector->outputs + length + 1, MAX_TEXT - length - 1, format, arguments);
    va_end(arguments);
}

void add_item(struct list* list, const char* format, ...) {
    if (list->length != 0) {
        list->text[list->length++] = ',';
    }
    va_list arguments;
    va_start(arguments, format);
    list->length += (size_t)vsnprintf(list->text + list->length, sizeof(list->text) - list->length,
                                      format, arguments);
    va_end(arguments);
}

void answer_list(struct vector* vector, const struct list* list) {
    answer(vector, "%s", list->length == 0 ? "-" : list->text);
}

/* Answers ascending numbers of SMs, runs as FIRST-LAST. */
void answer_ids(struct vector* vector, const uint32_t* ids, uint32_t count) {
    struct list list = {0};
    for (uint32_t first = 0, next = 0; first < count; first = next) {
        next = first + 1;
        while (next < count && ids[next] == ids[next - 1] + 1) {
            next++;
        }
        if (next - first > 1) {
            add_item(&list, "%" PRIu32 "-%" PRIu32, ids[first], ids[next - 1]);
        } else {
            add_item(&list, "%" PRIu32, ids[first]);
        }
    }
    answer_list(vector, &list);
}

const struct word kTypes[] = {{"sm", GCX_RESOURCE_SM},
                              {"workqueue-config", GCX_RESOURCE_WORKQUEUE_CONFIG},
                              {"workqueue", GCX_RESOURCE_WORKQUEUE},
                              {NULL, 0}};
const struct word kFamilies[] = {{"none", GCX_SM_FAMILY_NONE},
                                 {"coscheduled", GCX_SM_FAMILY_COSCHEDULED},
                                 {"fine", GCX_SM_FAMILY_FINE},
                                 {"max-cluster", GCX_SM_FAMILY_MAX_CLUSTER},
                                 {"structured", GCX_SM_FAMILY_STRUCTURED},
                                 {"external", GCX_SM_FAMILY_EXTERNAL},
                                 {NULL, 0}};
const struct word kScopes[] = {{"device_ctx", GCX_WORKQUEUE_SCOPE_DEVICE_CTX},
                               {"green_ctx_balanced", GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED},
                               {NULL, 0}};
/* Flags of splits, contexts, events, leases and their changes. */
static const struct word kFlags[] = {{"fine", GCX_SPLIT_IGNORE_SM_COSCHEDULING},
                                     {"max-cluster", GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE},
                                     {"exact", GCX_SPLIT_EXACT},
                                     {"exclude_leased", GCX_SPLIT_EXCLUDE_LEASED},
                                     {"shared", GCX_LEASE_SHARED},
                                     {"at-once", GCX_RESIZE_DEFERRED},
                                     {"private", GCX_CONTEXT_PRIVATE},
                                     {"timing", GCX_EVENT_TIMING},
                                     {"blocking", GCX_EVENT_BLOCKING_SYNC},
                                     {"-", 0},
                                     {NULL, 0}};

uint32_t number_of(const char* text) {
    char* end;
    const unsigned long long number = strtoull(text, &end, 10);
    if (*end != '\0' || end == text) {
        broken("%s is not a number", text);
    }
    return (uint32_t)number;
}

uint32_t count_of(const char* text) {
    return strcmp(text, "rest") == 0 ? GCX_REST : number_of(text);
}

int number_of_word(const struct word* words, const char* text) {
    for (; words->name != NULL; words++) {
        if (strcmp(words->name, text) == 0) {
            return words->number;
        }
    }
    return (int)number_of(text);
}

const char* word_of_number(const struct word* words, int number) {
    for (; words->name != NULL; words++) {
        if (words->number == number) {
            return words->name;
        }
    }
    return "?";
}

uint32_t flags_of(char* text) {
    uint32_t flags = 0;
    for (char* word = strtok(text, "+"); word != NULL; word = strtok(NULL, "+")) {
        flags |= (uint32_t)number_of_word(kFlags, word);
    }
    return flags;
}

uint32_t items_of(char* text, char** items) {
    uint32_t count = 0;
    if (strcmp(text, "-") != 0) {
        for (char* item = strtok(text, ","); item != NULL; item = strtok(NULL, ",")) {
            items[count++] = item;
        }
    }
    return count;
}

uint32_t requests_of(char* text, gcx_sm_request* requests) {
    char* items[MAX_LIST];
    const uint32_t count = items_of(text, items);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t fields[5] = {0};
        size_t n = 0;
        for (char* field = strtok(items[i], "/"); field != NULL && n < 5;
             field = strtok(NULL, "/")) {
            fields[n] = n == 0 ? count_of(field) : number_of(field);
            n++;
        }
        requests[i] = (gcx_sm_request){.sm_count = fields[0],
                                       .coscheduled_sm_count = fields[1],
                                       .preferred_coscheduled_sm_count = fields[2],
                                       .flags = fields[3],
                                       .locality_domain_id = fields[4]};
    }
    return count;
}

/* ---- Objects ---- */

struct object* object_of(struct vector* vector, const char* name) {
    static struct object nothing; /* "zero" and unknown names */
    for (size_t i = 0; i < vector->object_count; i++) {
        if (strcmp(vector->objects[i].name, name) == 0) {
            return &vector->objects[i];
        }
    }
    if (strcmp(name, "zero") != 0) {
        broken("%s is unknown", name);
    }
    memset(&nothing, 0, sizeof(nothing));
    return &nothing;
}

const gcx_resource* resource_of(struct vector* vector, const char* name) {
    return &object_of(vector, name)->resource;
}

static struct object* make(struct vector* vector, const char* name, enum kind kind) {
    struct object* object = &vector->objects[vector->object_count++];
    snprintf(object->name, sizeof(object->name), "%s", name);
    object->kind = kind;
    return object;
}

gcx_result made(struct vector* vector, gcx_result result, const char* name, enum kind kind,
                const struct object* value) {
    if (result == GCX_SUCCESS) {
        struct object* object = make(vector, name, kind);
        object->resource = value->resource;
        object->context = value->context;
        object->stream = value->stream;
        object->event = value->event;
        object->lease = value->lease;
    } else if (value->resource.opaque[0] != 0 || value->context != NULL || value->stream != NULL ||
               value->event != NULL || value->lease != NULL) {
        broken("a failed call wrote %s", name);
    }
    return result;
}

gcx_result made_resource(struct vector* vector, gcx_result result, const char* name,
                         const gcx_resource* value) {
    return made(vector, result, name, RESOURCE, &(struct object){.resource = *value});
}

uint32_t sm_count_of(const gcx_resource* resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    if (gcx_resource_get_info(resource, &info) != GCX_SUCCESS) {
        broken("gcx_resource_get_info: %s", gcx_last_error_message());
    }
    return info.sm_count;
}

gcx_result close_object(struct object* object) {
    switch (object->kind) {
    case CONTEXT:
        return gcx_context_destroy(object->context);
    case STREAM:
        return gcx_stream_destroy(object->stream);
    case EVENT:
        return gcx_event_destroy(object->event);
    case LEASE:
        return gcx_lease_release(object->lease);
    default:
        return GCX_SUCCESS;
    }
}

void close_all(struct vector* vector) {
    for (; vector->pushed != 0; vector->pushed--) {
        if (gcx_context_pop(NULL) != GCX_SUCCESS) {
            broken("a pushed context can't be popped: %s", gcx_last_error_message());
        }
    }
    while (vector->object_count != 0) {
        struct object* object = &vector->objects[--vector->object_count];
        if (!object->closed && close_object(object) != GCX_SUCCESS) {
            broken("%s can't be closed: %s", object->name, gcx_last_error_message());
        }
    }
    uint32_t alive = 0;
    if (gcx_context_list(-1, NULL, 0, &alive) != GCX_SUCCESS) {
        broken("contexts are alive at the end: %s", gcx_last_error_message());
    }
}
