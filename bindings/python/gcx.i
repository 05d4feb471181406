/* The private layer of the Python package: every function of gcx.h, with Python's own values.
 *
 *   resources   immutable bytes, as long as the struct
 *   handles     int, also native ones; 0 is NULL
 *   structs     tuples of their fields in the header's order, without struct_size
 *   results     an exception, made by the callable that was given to set_error_factory
 *   messages    diagnostics, given to the callable of set_log_receiver when the call that caused
 *               them returns: nothing of Python's runs inside the library
 *
 * The GIL is given up in every call that opens, asks or waits for the driver or for another thread.
 */
%module(package="gcx", threads="1") gcx_functions

%begin %{
#define PY_SSIZE_T_CLEAN
%}

%{
#include <gcx.h>

#include <stdlib.h>
#include <string.h>

static PyObject* text_of(const char* text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* What Python gave is kept by interpreter: a process can have several, each with classes of its
 * own. */
#define ERROR_FACTORY "gcx.error_factory" /* factory(number, name, message) gives the exception */
#define LOG_RECEIVER "gcx.log_receiver"   /* receiver(level, message) */

static PyObject* kept(const char* name) {
    PyObject* interpreter = PyInterpreterState_GetDict(PyInterpreterState_Get());
    return interpreter != NULL ? PyDict_GetItemString(interpreter, name) : NULL;
}

static PyObject* keep(const char* name, PyObject* object) {
    PyObject* interpreter = PyInterpreterState_GetDict(PyInterpreterState_Get());
    if (interpreter == NULL)
        return PyErr_NoMemory();
    if (PyDict_SetItemString(interpreter, name, object) < 0)
        return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

/* Diagnostics of the call that the thread is in. Only threads that never come back to Python fill
 * it up. */
#define MOST_MESSAGES 64

typedef struct message {
    struct message* next;
    gcx_log_level level;
    char text[];
} message;

static _Thread_local struct {
    message* first;
    message* last;
    int count;
} messages;

static void note_message(gcx_log_level level, const char* text, void* unused) {
    const size_t size = strlen(text) + 1;
    message* noted = messages.count < MOST_MESSAGES ? malloc(sizeof(message) + size) : NULL;
    (void)unused;
    if (noted == NULL)
        return;
    noted->next = NULL;
    noted->level = level;
    memcpy(noted->text, text, size);
    if (messages.last != NULL)
        messages.last->next = noted;
    else
        messages.first = noted;
    messages.last = noted;
    messages.count++;
}

/* After a call, with the GIL and without an exception. The receiver may call gcx again. */
static void deliver_messages(void) {
    PyObject* receiver;
    message* next = messages.first;
    if (next == NULL)
        return;
    memset(&messages, 0, sizeof(messages));
    receiver = kept(LOG_RECEIVER);
    Py_XINCREF(receiver);
    while (next != NULL) {
        message* const current = next;
        PyObject* text = text_of(current->text);
        PyObject* answer = NULL;
        if (receiver != NULL && text != NULL)
            answer = PyObject_CallFunction(receiver, "iO", (int)current->level, text);
        if (answer == NULL && PyErr_Occurred() != NULL)
            PyErr_WriteUnraisable(receiver);
        Py_XDECREF(answer);
        Py_XDECREF(text);
        next = current->next;
        free(current);
    }
    Py_XDECREF(receiver);
}

static void raise_result(gcx_result result) {
    PyObject* text = text_of(gcx_last_error_message());
    PyObject* factory;
    PyObject* error = NULL;
    deliver_messages();
    if (text == NULL)
        return;
    factory = kept(ERROR_FACTORY);
    if (factory == NULL)
        PyErr_SetObject(PyExc_RuntimeError, text);
    else
        error = PyObject_CallFunction(factory, "isO", (int)result, gcx_result_name(result), text);
    Py_DECREF(text);
    if (error != NULL) {
        PyErr_SetObject((PyObject*)Py_TYPE(error), error);
        Py_DECREF(error);
    }
}

static PyObject* resource_bytes(const gcx_resource* resource) {
    return PyBytes_FromStringAndSize((const char*)resource, (Py_ssize_t)sizeof(*resource));
}

static int to_resource(PyObject* object, gcx_resource* resource) {
    char* data = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object, &data, &size) < 0)
        return -1;
    if (size != (Py_ssize_t)sizeof(*resource)) {
        PyErr_Format(PyExc_ValueError, "a resource has %zd bytes, not %zd",
                     (Py_ssize_t)sizeof(*resource), size);
        return -1;
    }
    memcpy(resource, data, sizeof(*resource));
    return 0;
}

static int to_u32(PyObject* object, uint32_t* value) {
    const unsigned long number = PyLong_AsUnsignedLong(object);
    if (number == (unsigned long)-1 && PyErr_Occurred() != NULL)
        return -1;
    if (number > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a number is more than 32 bits hold");
        return -1;
    }
    *value = (uint32_t)number;
    return 0;
}

/* An int is a count; a sequence has the fields in the header's order. */
static int to_request(PyObject* object, gcx_sm_request* request) {
    uint32_t* const fields[] = {&request->sm_count, &request->coscheduled_sm_count,
                                &request->preferred_coscheduled_sm_count, &request->flags,
                                &request->locality_domain_id};
    Py_ssize_t i;
    memset(request, 0, sizeof(*request));
    if (PyLong_Check(object))
        return to_u32(object, &request->sm_count);
    for (i = 0; i < (Py_ssize_t)(sizeof(fields) / sizeof(fields[0])); i++) {
        PyObject* field = PySequence_GetItem(object, i);
        int status;
        if (field == NULL)
            return -1;
        status = to_u32(field, fields[i]);
        Py_DECREF(field);
        if (status < 0)
            return -1;
    }
    return 0;
}

static gcx_sm_request* to_requests(PyObject* sequence, uint32_t* count) {
    const Py_ssize_t size = PySequence_Size(sequence);
    gcx_sm_request* requests = NULL;
    Py_ssize_t i;
    if (size < 0)
        return NULL;
    requests = (gcx_sm_request*)calloc((size_t)size + 1, sizeof(*requests));
    if (requests == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < size; i++) {
        PyObject* item = PySequence_GetItem(sequence, i);
        const int status = item != NULL ? to_request(item, &requests[i]) : -1;
        Py_XDECREF(item);
        if (status < 0) {
            free(requests);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return requests;
}

static gcx_resource* to_resources(PyObject* sequence, uint32_t* count) {
    const Py_ssize_t size = PySequence_Size(sequence);
    gcx_resource* resources = NULL;
    Py_ssize_t i;
    if (size < 0)
        return NULL;
    resources = (gcx_resource*)calloc((size_t)size + 1, sizeof(*resources));
    if (resources == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < size; i++) {
        PyObject* item = PySequence_GetItem(sequence, i);
        const int status = item != NULL ? to_resource(item, &resources[i]) : -1;
        Py_XDECREF(item);
        if (status < 0) {
            free(resources);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return resources;
}

/* A tuple of count resources, or NULL with an exception. */
static PyObject* resource_tuple(const gcx_resource* resources, uint32_t count) {
    PyObject* tuple = PyTuple_New((Py_ssize_t)count);
    uint32_t i;
    for (i = 0; tuple != NULL && i < count; i++) {
        PyObject* item = resource_bytes(&resources[i]);
        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

static PyObject* number_tuple(const uint32_t* numbers, uint32_t count) {
    PyObject* tuple = PyTuple_New((Py_ssize_t)count);
    uint32_t i;
    for (i = 0; tuple != NULL && i < count; i++) {
        PyObject* item = PyLong_FromUnsignedLong(numbers[i]);
        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}
%}

/* These never wait. */
%nothread set_error_factory;
%nothread set_log_receiver;
%nothread gcx_version;
%nothread gcx_result_name;
%nothread gcx_result_string;
%nothread gcx_last_error_message;

%inline %{
/* Which callable makes the exceptions in this interpreter. */
static PyObject* set_error_factory(PyObject* factory) { return keep(ERROR_FACTORY, factory); }

/* Which callable is given the diagnostics in this interpreter, in place of standard error. */
static PyObject* set_log_receiver(PyObject* receiver) {
    gcx_log_set_callback(GCX_LOG_DEBUG, note_message, NULL);
    return keep(LOG_RECEIVER, receiver);
}
%}

/* The list has room for as many as there are: another thread may make some meanwhile. */
%rename("$ignore", fullname=1) gcx_context_list;
%rename(gcx_context_list) list_contexts;
%nothread list_contexts;
%inline %{
static PyObject* list_contexts(int device) {
    gcx_live_context* contexts = NULL;
    PyObject* list = NULL;
    uint32_t count = 16;
    uint32_t room;
    uint32_t i;
    gcx_result result;
    do {
        gcx_live_context* const more = realloc(contexts, count * sizeof(*contexts));
        room = count;
        if (more == NULL) {
            free(contexts);
            return PyErr_NoMemory();
        }
        contexts = more;
        Py_BEGIN_ALLOW_THREADS
        result = gcx_context_list(device, contexts, room, &count);
        Py_END_ALLOW_THREADS
    } while (result == GCX_ERROR_INVALID_VALUE && count > room);
    if (result != GCX_SUCCESS)
        raise_result(result);
    else
        list = PyList_New((Py_ssize_t)count);
    for (i = 0; list != NULL && i < count; i++) {
        const gcx_live_context* const context = &contexts[i];
        PyObject* item = Py_BuildValue(
            "(KiIIIIN)", (unsigned long long)context->id, (int)context->device,
            (unsigned)context->sm_count, (unsigned)context->handle_count,
            (unsigned)context->stream_count, (unsigned)context->flags,
            resource_bytes(&context->resource));
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    free(contexts);
    return list;
}
%}

/* ------------------------------------------------------------------------------------------
 * Results
 * ---------------------------------------------------------------------------------------- */

%typemap(out) gcx_result {
    if ($1 != GCX_SUCCESS) {
        raise_result($1);
        SWIG_fail;
    }
    deliver_messages();
    $result = SWIG_Py_Void();
}

/* True: all has finished; False: not yet. */
%typemap(out) gcx_result gcx_stream_query, gcx_result gcx_event_query {
    if ($1 != GCX_SUCCESS && $1 != GCX_ERROR_NOT_READY) {
        raise_result($1);
        SWIG_fail;
    }
    deliver_messages();
    $result = PyBool_FromLong($1 == GCX_SUCCESS);
}

%define GIVES(VALUE)
    Py_XDECREF($result);
    $result = VALUE;
    if ($result == NULL)
        SWIG_fail;
%enddef

/* ------------------------------------------------------------------------------------------
 * Numbers
 * ---------------------------------------------------------------------------------------- */

%typemap(in) uint32_t {
    if (to_u32($input, &$1) < 0)
        SWIG_fail;
}

%typemap(in) int32_t, gcx_resource_type, gcx_sm_family, gcx_capability, gcx_workqueue_scope,
             gcx_result {
    const long number = PyLong_AsLong($input);
    if (number == -1 && PyErr_Occurred() != NULL)
        SWIG_fail;
    if (number > INT32_MAX || number < INT32_MIN) {
        PyErr_SetString(PyExc_OverflowError, "a number is more than 32 bits hold");
        SWIG_fail;
    }
    $1 = ($1_ltype)number;
}

%typemap(out) uint32_t { $result = PyLong_FromUnsignedLong($1); }

%typemap(in, numinputs=0) int32_t* count (int32_t value = 0), uint32_t* sm_count (uint32_t value = 0),
                          uint32_t* blocks (uint32_t value = 0), float* milliseconds (float value = 0) { $1 = &value; }
%typemap(in, numinputs=0) (int32_t* least, int32_t* greatest) (int32_t low = 0, int32_t high = 0) {
    $1 = &low;
    $2 = &high;
}
%typemap(argout) (int32_t* least, int32_t* greatest) {
    GIVES(Py_BuildValue("(ii)", (int)*$1, (int)*$2))
}
%typemap(argout) int32_t* count { GIVES(PyLong_FromLong(*$1)) }
%typemap(argout) uint32_t* sm_count, uint32_t* blocks { GIVES(PyLong_FromUnsignedLong(*$1)) }
%typemap(argout) float* milliseconds { GIVES(PyFloat_FromDouble(*$1)) }

/* SM numbers. */
%typemap(in, numinputs=0) (uint32_t* sm_ids, uint32_t capacity, uint32_t* count)
        (uint32_t ids[GCX_MAX_SMS], uint32_t found = 0) {
    $1 = ids;
    $2 = GCX_MAX_SMS;
    $3 = &found;
}
%typemap(argout) (uint32_t* sm_ids, uint32_t capacity, uint32_t* count) {
    GIVES(number_tuple($1, *$3))
}

/* ------------------------------------------------------------------------------------------
 * Strings
 * ---------------------------------------------------------------------------------------- */

/* A name or a path, or None. */
%typemap(in) const char* driver (PyObject* name = NULL) {
    if ($input != Py_None && !PyUnicode_FSConverter($input, &name))
        SWIG_fail;
    $1 = name != NULL ? PyBytes_AsString(name) : NULL;
}
%typemap(freearg) const char* driver { Py_XDECREF(name$argnum); }

/* ------------------------------------------------------------------------------------------
 * Resources and requests
 * ---------------------------------------------------------------------------------------- */

%typemap(in) const gcx_resource* (gcx_resource value) {
    if (to_resource($input, &value) < 0)
        SWIG_fail;
    $1 = &value;
}

%typemap(in, numinputs=0) gcx_resource* (gcx_resource value) {
    memset(&value, 0, sizeof(value));
    $1 = &value;
}
%typemap(argout) gcx_resource* { GIVES(resource_bytes($1)) }
%typemap(argout) const gcx_resource* ""

%typemap(in) (const gcx_resource* resources, uint32_t resource_count) {
    $1 = to_resources($input, &$2);
    if ($1 == NULL)
        SWIG_fail;
}
%typemap(freearg) (const gcx_resource* resources, uint32_t resource_count) { free((void*)$1); }
%typemap(argout) (const gcx_resource* resources, uint32_t resource_count) ""

%typemap(in) (const gcx_sm_request* requests, uint32_t request_count) {
    $1 = to_requests($input, &$2);
    if ($1 == NULL)
        SWIG_fail;
}
%typemap(freearg) (const gcx_sm_request* requests, uint32_t request_count) { free((void*)$1); }

/* The outputs of a split have room for one entry more than the requests, which are the second
 * argument: the remainder is the last. */
%typemap(in, numinputs=0) (gcx_resource* groups, gcx_resource* remainder) (gcx_resource rest) {
    $1 = NULL;
    memset(&rest, 0, sizeof(rest));
    $2 = &rest;
}
%typemap(check) (gcx_resource* groups, gcx_resource* remainder) {
    $1 = (gcx_resource*)calloc((size_t)arg3 + 1, sizeof(gcx_resource));
    if ($1 == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
}
%typemap(argout) (gcx_resource* groups, gcx_resource* remainder) {
    GIVES(Py_BuildValue("(NN)", resource_tuple($1, arg3), resource_bytes($2)))
}
%typemap(freearg) (gcx_resource* groups, gcx_resource* remainder) { free($1); }

%typemap(in, numinputs=0) (uint32_t* sm_counts, uint32_t* remainder_sm_count) (uint32_t rest = 0) {
    $1 = NULL;
    $2 = &rest;
}
%typemap(check) (uint32_t* sm_counts, uint32_t* remainder_sm_count) {
    $1 = (uint32_t*)calloc((size_t)arg3 + 1, sizeof(uint32_t));
    if ($1 == NULL) {
        PyErr_NoMemory();
        SWIG_fail;
    }
}
%typemap(argout) (uint32_t* sm_counts, uint32_t* remainder_sm_count) {
    GIVES(Py_BuildValue("(Nk)", number_tuple($1, arg3), (unsigned long)*$2))
}
%typemap(freearg) (uint32_t* sm_counts, uint32_t* remainder_sm_count) { free($1); }

/* ------------------------------------------------------------------------------------------
 * Handles
 * ---------------------------------------------------------------------------------------- */

%typemap(in) gcx_context, gcx_stream, gcx_event, struct CUctx_st*, struct CUgreenCtx_st*,
             struct CUstream_st*, struct CUevent_st* {
    $1 = ($1_ltype)PyLong_AsVoidPtr($input);
    if ($1 == NULL && PyErr_Occurred() != NULL)
        SWIG_fail;
}
%typemap(out) struct CUctx_st*, struct CUgreenCtx_st*, struct CUstream_st*, struct CUevent_st* {
    deliver_messages();
    $result = PyLong_FromVoidPtr((void*)$1);
}
%typemap(in, numinputs=0) gcx_context* (gcx_context value = NULL), gcx_stream* (gcx_stream value = NULL),
                          gcx_event* (gcx_event value = NULL) { $1 = &value; }
%typemap(argout) gcx_context*, gcx_stream*, gcx_event* { GIVES(PyLong_FromVoidPtr((void*)*$1)) }

/* A context's parameters are its flags. */
%typemap(in) const gcx_context_params* params (gcx_context_params value) {
    memset(&value, 0, sizeof(value));
    value.struct_size = sizeof(value);
    if (to_u32($input, &value.flags) < 0)
        SWIG_fail;
    $1 = &value;
}

/* A stream's parameters are its priority. */
%typemap(in) const gcx_stream_params* params (gcx_stream_params value) {
    const long priority = PyLong_AsLong($input);
    if (priority == -1 && PyErr_Occurred() != NULL)
        SWIG_fail;
    if (priority > INT32_MAX || priority < INT32_MIN) {
        PyErr_SetString(PyExc_OverflowError, "a priority is more than 32 bits hold");
        SWIG_fail;
    }
    memset(&value, 0, sizeof(value));
    value.struct_size = sizeof(value);
    value.priority = (int32_t)priority;
    $1 = &value;
}

/* ------------------------------------------------------------------------------------------
 * Structs that are filled in
 * ---------------------------------------------------------------------------------------- */

%define STRUCT_OUT(TYPE, NAME)
%typemap(in, numinputs=0) TYPE* NAME (TYPE value) {
    memset(&value, 0, sizeof(value));
    value.struct_size = sizeof(value);
    $1 = &value;
}
%enddef

STRUCT_OUT(gcx_driver_info, info)
%typemap(argout) gcx_driver_info* info {
    GIVES(Py_BuildValue("(iiiN)", (int)$1->version, (int)$1->header_version, (int)$1->simulated,
                        text_of($1->library)))
}
STRUCT_OUT(gcx_capability_info, info)
%typemap(argout) gcx_capability_info* info {
    GIVES(Py_BuildValue("(iiN)", (int)$1->available, (int)$1->required_version, text_of($1->name)))
}
STRUCT_OUT(gcx_device_info, info)
%typemap(argout) gcx_device_info* info {
    GIVES(Py_BuildValue("(iiIIIINy#)", (int)$1->compute_capability_major,
                        (int)$1->compute_capability_minor, (unsigned)$1->sm_count,
                        (unsigned)$1->min_partition_size, (unsigned)$1->coscheduled_alignment,
                        (unsigned)$1->locality_domain_count, text_of($1->name),
                        (const char*)$1->uuid, (Py_ssize_t)sizeof($1->uuid)))
}
STRUCT_OUT(gcx_resource_info, info)
%typemap(argout) gcx_resource_info* info {
    GIVES(Py_BuildValue("(iiiIIIIIIiI)", (int)$1->type, (int)$1->device, (int)$1->family,
                        (unsigned)$1->sm_count, (unsigned)$1->atom_count,
                        (unsigned)$1->min_partition_size, (unsigned)$1->coscheduled_alignment,
                        (unsigned)$1->flags, (unsigned)$1->locality_domain_id,
                        (int)$1->workqueue_scope, (unsigned)$1->workqueue_concurrency_limit))
}
STRUCT_OUT(gcx_context_info, info)
%typemap(argout) gcx_context_info* info {
    GIVES(Py_BuildValue("(iIIK)", (int)$1->device, (unsigned)$1->sm_count,
                        (unsigned)$1->stream_count, (unsigned long long)$1->id))
}
STRUCT_OUT(gcx_stream_info, info)
%typemap(argout) gcx_stream_info* info {
    GIVES(Py_BuildValue("(iiIK)", (int)$1->device, (int)$1->priority, (unsigned)$1->sm_count,
                        (unsigned long long)$1->context_id))
}
STRUCT_OUT(gcx_cache_stats, stats)
%typemap(argout) gcx_cache_stats* stats {
    GIVES(Py_BuildValue("(IIIKKKK)", (unsigned)$1->limit, (unsigned)$1->in_use, (unsigned)$1->kept,
                        (unsigned long long)$1->hits, (unsigned long long)$1->misses,
                        (unsigned long long)$1->evicted, (unsigned long long)$1->lost))
}

/* The structs are tuples and bytes here; for diagnostics there is set_log_receiver. */
%rename("$ignore", %$isclass) "";
%ignore gcx_log_set_callback;
%ignore gcx_log_callback;
%rename("$ignore", regexmatch$name="_INIT$") "";
%rename("$ignore", regexmatch$name="^GCX_(API|H|RESULT_H|STRUCT_INIT)$") "";

#define __attribute__(x)
%include "gcx_result.h"
%include "gcx.h"
