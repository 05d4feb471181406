/* What SWIG has to know of gcx.h, for every language: which parameters are inputs, which are
 * outputs and how long they are, when a call has failed. Which function has which is generated:
 * generated/functions.i declares the functions for SWIG, and fields.h adds up a struct's fields. A
 * language's own .i file comes before this and includes it at its end. It says how values are passed
 * there, by the macros below. FAIL, GIVES, GIVES_NOTHING and CREATED are SWIG's, the others C's.
 * Those that begin with TO_ are 0 or NULL after a failure, with the exception set.
 *
 *   FAIL                         leaves the wrapper with the exception that is set
 *   GIVES(VALUE)                 makes VALUE, one of the language's, what the function returns
 *   GIVES_NOTHING                what a function returns that gives nothing
 *   RAISE(RESULT)                sets the exception of a failed call
 *   DELIVER()                    gives out what messages.h has noted; 0 with an exception set
 *   CREATED(TYPE)                the typemaps of TYPE*, a handle which the call's caller then owns
 *   MEMORY_EXHAUSTED()           sets the exception
 *   TO_uint32_t(INPUT, TO) and so TO_uint64_t, TO_int32_t, TO_HANDLE, TO_RESOURCE
 *   TO_ARRAY(TYPE, INPUT, COUNT) an array from calloc, or NULL
 *   TO_DATA(INPUT, DATA, SIZE)   bytes that are valid during the call, or NULL
 *   FROM_int32_t and so FROM_uint32_t, FROM_float, HANDLE, TRUTH, RESOURCE, TEXT_VALUE
 *                                one of the language's values of one in C
 *   NUMBERS_VALUE                of an array of uint32_t and its length
 *   PAIR                         of two int32_t
 *   SPLIT_gcx_resource, SPLIT_uint32_t    of an array, its length and one more
 *   STRUCT_BEGIN(), SIGNED, UNSIGNED, REAL, TEXT, BYTES, SMS, STRUCT_END(TYPE)
 *                                a struct from its fields in the header's order, less struct_size
 *   LIST_BEGIN(TYPE, COUNT), LIST_ADD(INDEX, STRUCT), LIST_END()    of structs
 *   REPORT_VALUE(STRUCT, LIST)   of both
 */

%{
#include "fields.h"

/* The body of a function that lists, however long the list is: another thread may make what it has
 * longer at any time. CALL fills the `room` entries of *list and sets `needed`. */
#define LIST_ALL(FIRST_ROOM, CALL)                                                                 \
    uint32_t needed = FIRST_ROOM;                                                                  \
    uint32_t room;                                                                                 \
    gcx_result result;                                                                             \
    do {                                                                                           \
        void* const grown = realloc(*list, needed * sizeof(**list));                               \
        room = needed;                                                                             \
        if (grown == NULL)                                                                         \
            return GCX_ERROR_OUT_OF_MEMORY;                                                        \
        *list = grown;                                                                             \
        result = CALL;                                                                             \
    } while (result == GCX_ERROR_INSUFFICIENT_CAPACITY && needed > room);                          \
    *list_count = needed;                                                                          \
    return result

/* Begins a list of structs and adds them. */
#define LIST_STRUCTS(TYPE, STRUCTS, COUNT)                                                         \
    uint32_t i;                                                                                    \
    LIST_BEGIN(TYPE, COUNT);                                                                       \
    for (i = 0; i < COUNT; i++) {                                                                  \
        const TYPE* const item = &(STRUCTS)[i];                                                    \
        STRUCT_BEGIN();                                                                            \
        FIELDS_##TYPE(item);                                                                       \
        LIST_ADD(i, STRUCT_END(TYPE));                                                             \
    }
%}

/* ------------------------------------------------------------------------------------------
 * Results
 * ---------------------------------------------------------------------------------------- */

%typemap(out) gcx_result {
    if ($1 != GCX_SUCCESS) {
        RAISE($1);
        FAIL
    }
    if (!DELIVER())
        FAIL
    GIVES_NOTHING
}

/* Of a function with an answer that is no failure. True: all has finished; false: not yet. */
%define TRUTH_OF(FUNCTION)
%typemap(out) gcx_result FUNCTION {
    if ($1 != GCX_SUCCESS && $1 != GCX_ERROR_NOT_READY) {
        RAISE($1);
        FAIL
    }
    if (!DELIVER())
        FAIL
    $result = TRUTH($1 == GCX_SUCCESS);
}
%enddef

/* ------------------------------------------------------------------------------------------
 * Numbers
 * ---------------------------------------------------------------------------------------- */

%typemap(in) uint32_t, uint64_t {
    if (!TO_$1_type($input, &$1))
        FAIL
}
%typemap(out) uint32_t { $result = FROM_uint32_t($1); }

/* Enums too. */
%typemap(in) int32_t, gcx_result {
    int32_t number = 0;
    if (!TO_int32_t($input, &number))
        FAIL
    $1 = ($1_ltype)number;
}

%define SCALAR(TYPE, NAME)
%typemap(in, numinputs=0) TYPE* NAME (TYPE number = 0) { $1 = &number; }
%typemap(argout) TYPE* NAME { GIVES(FROM_##TYPE(*$1)) }
%enddef

%define PAIR_OF(TYPE, FIRST, SECOND)
%typemap(in, numinputs=0) (TYPE* FIRST, TYPE* SECOND) (TYPE low = 0, TYPE high = 0) {
    $1 = &low;
    $2 = &high;
}
%typemap(argout) (TYPE* FIRST, TYPE* SECOND) { GIVES(PAIR(*$1, *$2)) }
%enddef

/* ------------------------------------------------------------------------------------------
 * Resources, arrays and structs
 * ---------------------------------------------------------------------------------------- */

%typemap(in) const gcx_resource* (gcx_resource copy) {
    if (!TO_RESOURCE($input, &copy))
        FAIL
    $1 = &copy;
}
%typemap(in, numinputs=0) gcx_resource* (gcx_resource filled) {
    memset(&filled, 0, sizeof(filled));
    $1 = &filled;
}
%typemap(argout) gcx_resource* { GIVES(RESOURCE($1)) }
%typemap(argout) const gcx_resource* ""

%define ARRAY(TYPE, NAME, COUNT)
%typemap(in) (const TYPE* NAME, uint32_t COUNT) {
    $1 = TO_ARRAY(TYPE, $input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const TYPE* NAME, uint32_t COUNT) { free((void*)$1); }
%typemap(argout) (const TYPE* NAME, uint32_t COUNT) ""
%enddef

%define DATA(PARAMETERS)
%typemap(in) PARAMETERS {
    if (!TO_DATA($input, &$1, &$2))
        FAIL
}
%enddef

%define TEXT_OUT(TEXT, CAPACITY, ROOM)
%typemap(in, numinputs=0) (char* TEXT, uint32_t CAPACITY) (char text[ROOM]) {
    $1 = text;
    $2 = (uint32_t)sizeof(text);
}
%typemap(argout) (char* TEXT, uint32_t CAPACITY) { GIVES(TEXT_VALUE($1)) }
%enddef

/* Of parameters that begin with an array, whose length is an argument: allocates the array. */
%define ROOM(PARAMETERS, TYPE, LENGTH)
%typemap(check) PARAMETERS {
    $1 = calloc((size_t)LENGTH + 1, sizeof(TYPE));
    if ($1 == NULL) {
        MEMORY_EXHAUSTED();
        FAIL
    }
}
%typemap(freearg) PARAMETERS { free($1); }
%enddef

/* As many as there are requests, whose count is an argument, and what is left over. */
%define SPLIT_OUT(TYPE, PARTS, REST, LENGTH)
%typemap(in, numinputs=0) (TYPE* PARTS, TYPE* REST) (TYPE rest) {
    $1 = NULL;
    memset(&rest, 0, sizeof(rest));
    $2 = &rest;
}
%typemap(argout) (TYPE* PARTS, TYPE* REST) { GIVES(SPLIT_##TYPE($1, LENGTH, $2)) }
ROOM((TYPE* PARTS, TYPE* REST), TYPE, LENGTH)
%enddef

%define RECORD(TYPE)
%typemap(in, numinputs=0) TYPE* (TYPE filled) {
    memset(&filled, 0, sizeof(filled));
    filled.struct_size = sizeof(filled);
    $1 = &filled;
}
%typemap(argout) TYPE* {
    STRUCT_BEGIN();
    FIELDS_##TYPE($1);
    GIVES(STRUCT_END(TYPE))
}
%enddef

%define LISTED(TYPE)
%typemap(in, numinputs=0) (TYPE** list, uint32_t* list_count) (TYPE* found = NULL,
                                                               uint32_t length = 0) {
    $1 = &found;
    $2 = &length;
}
%typemap(freearg) (TYPE** list, uint32_t* list_count) {
    if ($1 != NULL)
        free(*$1);
}
%enddef

%define LIST(TYPE)
LISTED(TYPE)
%typemap(argout) (TYPE** list, uint32_t* list_count) {
    LIST_STRUCTS(TYPE, *$1, *$2);
    GIVES(LIST_END())
}
%enddef

/* A struct, and as many of another as an argument says. */
%define REPORT(ITEM, ITEMS, TYPE, NAME, LENGTH)
%typemap(in, numinputs=0) (ITEM* ITEMS, TYPE* NAME) (TYPE filled) {
    $1 = NULL;
    memset(&filled, 0, sizeof(filled));
    filled.struct_size = sizeof(filled);
    $2 = &filled;
}
%typemap(argout) (ITEM* ITEMS, TYPE* NAME) {
    LIST_STRUCTS(ITEM, $1, LENGTH);
    STRUCT_BEGIN();
    FIELDS_##TYPE($2);
    GIVES(REPORT_VALUE(STRUCT_END(TYPE), LIST_END()))
}
ROOM((ITEM* ITEMS, TYPE* NAME), ITEM, LENGTH)
%enddef

%define NUMBERS(TYPE)
LISTED(TYPE)
%typemap(argout) (TYPE** list, uint32_t* list_count) { GIVES(NUMBERS_VALUE(*$1, *$2)) }
%enddef

/* ------------------------------------------------------------------------------------------
 * Handles
 * ---------------------------------------------------------------------------------------- */

%define HANDLE_IN(TYPE)
%typemap(in) TYPE {
    void* handle = NULL;
    if (!TO_HANDLE($input, &handle))
        FAIL
    $1 = ($1_ltype)handle;
}
%enddef

%define NATIVE(TYPE)
HANDLE_IN(TYPE)
%typemap(out) TYPE {
    if (!DELIVER())
        FAIL
    $result = HANDLE($1);
}
%enddef

%include "generated/functions.i"
