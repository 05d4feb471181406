/* What the parts of the C runner share: the objects of a vector, and what a step answers. */
#ifndef GCX_VECTORS_H
#define GCX_VECTORS_H

#include <gcx.h>

#include <stddef.h>

enum {
    MAX_LIST = 512,    /* items of a list in a field */
    MAX_OBJECTS = 512, /* of a vector */
    MAX_TEXT = 16384   /* of a line, and of what a step answers */
};

enum kind { RESOURCE, CONTEXT, STREAM, EVENT, LEASE };

struct object {
    char name[64];
    enum kind kind;
    int closed;
    gcx_resource resource;
    gcx_context context;
    gcx_stream stream;
    gcx_event event;
    gcx_lease lease;
};

struct vector {
    struct object objects[MAX_OBJECTS];
    size_t object_count;
    size_t pushed;         /* contexts that are on the stack */
    gcx_cache_stats cache; /* as it was when the vector began */
    char outputs[MAX_TEXT];
};

/* Says that the vector differs: the data are wrong, or a promise is broken that no field tells. */
void broken(const char* format, ...);

/* ---- operations.c ---- */

typedef gcx_result operation_function(struct vector* vector, char** inputs);

struct operation {
    const char* name;
    size_t input_count;
    operation_function* run;
};
/* The row of kOperations, or NULL if there is none of this name. */
const struct operation* find_operation(const char* name);

/* ---- objects.c ---- */

operation_function op_context, op_get, op_stream, op_event, op_adopt, op_cluster, op_probe, op_push,
    op_pop, op_current, op_record, op_wait, op_synchronize, op_query, op_elapsed, op_close, op_live,
    op_limit, op_cache, op_ahead, op_trim;

/* ---- leases.c ---- */

operation_function op_lease, op_resize, op_prepare, op_hand_over, op_held, op_alone, op_leases;

/* ---- values.c ---- */

struct word {
    const char* name;
    int number;
};
extern const struct word kTypes[];
extern const struct word kFamilies[];
extern const struct word kScopes[];

uint32_t number_of(const char* text);
/* A number of SMs, or "rest". */
uint32_t count_of(const char* text);
int number_of_word(const struct word* words, const char* text);
const char* word_of_number(const struct word* words, int number);
uint32_t flags_of(char* text);
/* The items of a list, which are separated in place; gives the number of them. */
uint32_t items_of(char* text, char** items);
uint32_t requests_of(char* text, gcx_sm_request* requests);

/* Appends to the outputs: one field, or several apart by tabs. */
void answer(struct vector* vector, const char* format, ...);
void answer_list(struct vector* vector, const char* items);
void answer_ids(struct vector* vector, const uint32_t* ids, uint32_t count);

struct object* object_of(struct vector* vector, const char* name);
const gcx_resource* resource_of(struct vector* vector, const char* name);
uint32_t sm_count_of(const gcx_resource* resource);
/* Keeps what a successful call made, and checks that a failed one wrote nothing. */
gcx_result made(struct vector* vector, gcx_result result, const char* name, enum kind kind,
                const struct object* value);
gcx_result made_resource(struct vector* vector, gcx_result result, const char* name,
                         const gcx_resource* value);
gcx_result close_object(struct object* object);
/* Gives up what the vector left, the last first, and checks that no context is alive. */
void close_all(struct vector* vector);

#endif
