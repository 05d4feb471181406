/* Shared by the files of the C runner: the objects of a vector, and the outputs of a step. */
#ifndef GCX_VECTORS_H
#define GCX_VECTORS_H

#include <gcx.h>

#include <stddef.h>

enum {
    MAX_LIST = 512,    /* items of a list in a field */
    MAX_OBJECTS = 512, /* of a vector */
    MAX_TEXT = 16384   /* of a line, and of the outputs of a step */
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
    size_t pushed;         /* contexts on the stack */
    gcx_cache_stats cache; /* at the beginning of the vector */
    char outputs[MAX_TEXT];
};

/* Reports that the vector differs: the data are wrong, or gcx violates a rule that no field shows.
 */
void broken(const char* format, ...);

/* ---- operations.c ---- */

typedef gcx_result operation_function(struct vector* vector, char** inputs);

struct operation {
    const char* name;
    size_t input_count;
    operation_function* run;
};
/* Returns the operation, or NULL if the name is unknown. */
const struct operation* find_operation(const char* name);

/* ---- values.c ---- */

struct word {
    const char* name;
    int number;
};
extern const struct word kTypes[];
extern const struct word kFamilies[];
extern const struct word kScopes[];

uint32_t number_of(const char* text);
/* Parses a number of SMs or "rest". */
uint32_t count_of(const char* text);
int number_of_word(const struct word* words, const char* text);
const char* word_of_number(const struct word* words, int number);
uint32_t flags_of(char* text);
/* Splits a list in place and returns the number of items. */
uint32_t items_of(char* text, char** items);
uint32_t requests_of(char* text, gcx_sm_request* requests);

/* Appends one field, or several separated by tabs, to the outputs. */
void answer(struct vector* vector, const char* format, ...);
struct list {
    char text[MAX_TEXT];
    size_t length;
};
void add_item(struct list* list, const char* format, ...);
void answer_list(struct vector* vector, const struct list* list);
void answer_ids(struct vector* vector, const uint32_t* ids, uint32_t count);

struct object* object_of(struct vector* vector, const char* name);
const gcx_resource* resource_of(struct vector* vector, const char* name);
uint32_t sm_count_of(const gcx_resource* resource);
/* Stores what a successful call created, and checks that a failed one wrote nothing. */
gcx_result made(struct vector* vector, gcx_result result, const char* name, enum kind kind,
                const struct object* value);
gcx_result made_resource(struct vector* vector, gcx_result result, const char* name,
                         const gcx_resource* value);
gcx_result close_object(struct object* object);
/* Closes the open objects in reverse order and checks that no context is alive. */
void close_all(struct vector* vector);

#endif
