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
#include "messages.h"

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

/* After a call, with the GIL and without an exception. The receiver may call gcx again. */
static void deliver_messages(void) {
    PyObject* receiver;
    message* next = take_messages();
    if (next == NULL)
        return;
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

/* These return 0 after a failure, with the exception set. */

static int to_resource(PyObject* object, gcx_resource* resource) {
    char* data = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object, &data, &size) < 0)
        return 0;
    if (size != (Py_ssize_t)sizeof(*resource)) {
        PyErr_Format(PyExc_ValueError, "a resource has %zd bytes, not %zd",
                     (Py_ssize_t)sizeof(*resource), size);
        return 0;
    }
    memcpy(resource, data, sizeof(*resource));
    return 1;
}

static int to_u32(PyObject* object, uint32_t* value) {
    const unsigned long number = PyLong_AsUnsignedLong(object);
    if (number == (unsigned long)-1 && PyErr_Occurred() != NULL)
        return 0;
    if (number > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a number is more than 32 bits hold");
        return 0;
    }
    *value = (uint32_t)number;
    return 1;
}

static int to_u64(PyObject* object, uint64_t* value) {
    *value = PyLong_AsUnsignedLongLong(object);
    return *value != UINT64_MAX || PyErr_Occurred() == NULL;
}

static int to_i32(PyObject* object, int32_t* value) {
    const long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred() != NULL)
        return 0;
    if (number > INT32_MAX || number < INT32_MIN) {
        PyErr_SetString(PyExc_OverflowError, "a number is more than 32 bits hold");
        return 0;
    }
    *value = (int32_t)number;
    return 1;
}

static int to_handle(PyObject* object, void** handle) {
    *handle = PyLong_AsVoidPtr(object);
    return *handle != NULL || PyErr_Occurred() == NULL;
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
        const int good = field != NULL && to_u32(field, fields[i]);
        Py_XDECREF(field);
        if (!good)
            return 0;
    }
    return 1;
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
        const int good = item != NULL && to_request(item, &requests[i]);
        Py_XDECREF(item);
        if (!good) {
            free(requests);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return requests;
}

static gcx_lease_size* to_sizes(PyObject* sequence, uint32_t* count) {
    const Py_ssize_t size = PySequence_Size(sequence);
    gcx_lease_size* sizes = NULL;
    Py_ssize_t i;
    if (size < 0)
        return NULL;
    sizes = (gcx_lease_size*)calloc((size_t)size + 1, sizeof(*sizes));
    if (sizes == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < size; i++) {
        PyObject* item = PySequence_GetItem(sequence, i);
        PyObject* lease = item != NULL ? PySequence_GetItem(item, 0) : NULL;
        PyObject* wanted = lease != NULL ? PySequence_GetItem(item, 1) : NULL;
        void* handle = NULL;
        const int good = wanted != NULL && to_handle(lease, &handle) &&
                         to_u32(wanted, &sizes[i].sm_count);
        sizes[i].lease = (gcx_lease)handle;
        Py_XDECREF(wanted);
        Py_XDECREF(lease);
        Py_XDECREF(item);
        if (!good) {
            free(sizes);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return sizes;
}

static gcx_stream* to_streams(PyObject* sequence, uint32_t* count) {
    const Py_ssize_t size = PySequence_Size(sequence);
    gcx_stream* streams = NULL;
    Py_ssize_t i;
    if (size < 0)
        return NULL;
    streams = (gcx_stream*)calloc((size_t)size + 1, sizeof(*streams));
    if (streams == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < size; i++) {
        PyObject* item = PySequence_GetItem(sequence, i);
        void* handle = NULL;
        const int good = item != NULL && to_handle(item, &handle);
        streams[i] = (gcx_stream)handle;
        Py_XDECREF(item);
        if (!good) {
            free(streams);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return streams;
}

static uint32_t* to_numbers(PyObject* sequence, uint32_t* count) {
    const Py_ssize_t size = PySequence_Size(sequence);
    uint32_t* numbers = NULL;
    Py_ssize_t i;
    if (size < 0)
        return NULL;
    numbers = (uint32_t*)calloc((size_t)size + 1, sizeof(*numbers));
    if (numbers == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < size; i++) {
        PyObject* item = PySequence_GetItem(sequence, i);
        const int good = item != NULL && to_u32(item, &numbers[i]);
        Py_XDECREF(item);
        if (!good) {
            free(numbers);
            return NULL;
        }
    }
    *count = (uint32_t)size;
    return numbers;
}

/* None is NULL. */
static int to_bytes(PyObject* object, const void** data, uint64_t* size) {
    char* bytes = NULL;
    Py_ssize_t length = 0;
    if (object != Py_None && PyBytes_AsStringAndSize(object, &bytes, &length) < 0)
        return 0;
    *data = bytes;
    *size = (uint64_t)length;
    return 1;
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
        const int good = item != NULL && to_resource(item, &resources[i]);
        Py_XDECREF(item);
        if (!good) {
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

/* ------------------------------------------------------------------------------------------
 * What gcx_common.i asks of a language
 * ---------------------------------------------------------------------------------------- */

%{
/* A tuple that is being filled; the structs of gcx.h have fewer fields than this. */
typedef struct fields {
    PyObject* items[24];
    Py_ssize_t count;
} fields;

static PyObject* tuple_of(fields* made) {
    PyObject* tuple = PyTuple_New(made->count);
    Py_ssize_t i;
    for (i = 0; i < made->count; i++) {
        PyObject* const item = made->items[i];
        if (tuple == NULL || item == NULL) {
            Py_XDECREF(item);
            Py_CLEAR(tuple);
        } else if (PyTuple_SetItem(tuple, i, item) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

/* Keeps the item; a list or an item that is NULL gives NULL. */
static PyObject* list_with(PyObject* list, Py_ssize_t index, PyObject* item) {
    if (list == NULL || item == NULL)
        Py_XDECREF(item);
    else if (PyList_SetItem(list, index, item) == 0)
        return list;
    Py_XDECREF(list);
    return NULL;
}

#define RAISE(result) raise_result(result)
#define DELIVER() deliver_messages()
#define MEMORY_EXHAUSTED() PyErr_NoMemory()
#define TO_U32(input, to) to_u32(input, to)
#define TO_U64(input, to) to_u64(input, to)
#define TO_I32(input, to) to_i32(input, to)
#define TO_HANDLE(input, to) to_handle(input, to)
#define TO_RESOURCE(input, to) to_resource(input, to)
#define TO_RESOURCES(input, count) to_resources(input, count)
#define TO_REQUESTS(input, count) to_requests(input, count)
#define TO_SIZES(input, count) to_sizes(input, count)
#define TO_STREAMS(input, count) to_streams(input, count)
#define TO_NUMBERS(input, count) to_numbers(input, count)
#define TO_BYTES(input, data, size) to_bytes(input, data, size)
#define U32(number) PyLong_FromUnsignedLong(number)
#define I32(number) PyLong_FromLong(number)
#define F32(number) PyFloat_FromDouble(number)
#define HANDLE(pointer) PyLong_FromVoidPtr((void*)(pointer))
#define TRUTH(holds) PyBool_FromLong(holds)
#define RESOURCE(resource) resource_bytes(resource)
#define NUMBERS(numbers, count) number_tuple(numbers, count)
#define PAIR(a, b) Py_BuildValue("(ii)", (int)(a), (int)(b))
#define SPLIT(groups, count, remainder)                                                            \
    Py_BuildValue("(NN)", resource_tuple(groups, count), resource_bytes(remainder))
#define PLAN(counts, count, remainder)                                                             \
    Py_BuildValue("(Nk)", number_tuple(counts, count), (unsigned long)(remainder))
#define STRUCT_BEGIN() fields made = {{NULL}, 0}
#define SIGNED(number) made.items[made.count++] = PyLong_FromLongLong(number)
#define UNSIGNED(number) made.items[made.count++] = PyLong_FromUnsignedLongLong(number)
#define TEXT(text) made.items[made.count++] = text_of(text)
#define BYTES(data, size)                                                                          \
    made.items[made.count++] = PyBytes_FromStringAndSize((const char*)(data), (Py_ssize_t)(size))
#define SMS(resource) made.items[made.count++] = resource_bytes(resource)
#define STRUCT_END(type) tuple_of(&made)
#define LIST_BEGIN(type, count) PyObject* listed = PyList_New((Py_ssize_t)(count))
#define LIST_ADD(index, item) listed = list_with(listed, (Py_ssize_t)(index), item)
#define LIST_END() listed
%}

%define FAIL SWIG_fail; %enddef

%define GIVES_NOTHING $result = SWIG_Py_Void(); %enddef

%define GIVES(VALUE)
    Py_XDECREF($result);
    $result = VALUE;
    if ($result == NULL)
        SWIG_fail;
%enddef

/* A name or a path, or None. */
%typemap(in) const char* driver (PyObject* name = NULL) {
    if ($input != Py_None && !PyUnicode_FSConverter($input, &name))
        SWIG_fail;
    $1 = name != NULL ? PyBytes_AsString(name) : NULL;
}
%typemap(freearg) const char* driver { Py_XDECREF(name$argnum); }

/* A lease's or the process's name, or None. */
%typemap(in) const char* lease_name (PyObject* utf8 = NULL), const char* name (PyObject* utf8 = NULL) {
    if ($input != Py_None) {
        utf8 = PyUnicode_AsUTF8String($input);
        if (utf8 == NULL)
            SWIG_fail;
    }
    $1 = utf8 != NULL ? PyBytes_AsString(utf8) : NULL;
}
%typemap(freearg) const char* lease_name, const char* name { Py_XDECREF(utf8$argnum); }

/* For diagnostics there is set_log_receiver. */
%ignore gcx_log_set_callback;
%ignore gcx_log_callback;

/* See below. */
%rename("$ignore", fullname=1) gcx_cache_prepare;
%rename(gcx_cache_prepare) prepare_cache;
%nothread prepare_cache;

%include "gcx_common.i"

/* Contexts made ahead of time. The GIL is given up by hand, since the progress is told in the middle
 * of the call: progress(done, count) may raise, and so may a signal's handler, which gives the rest
 * up by cancel. */
%{
typedef struct preparing {
    PyThreadState* python;
    PyObject* progress;
    PyObject* raised[3]; /* what the progress raised */
    gcx_cancel cancel;
} preparing;

static void tell_progress(uint32_t done, uint32_t count, void* user_data) {
    preparing* const call = (preparing*)user_data;
    if (call->raised[0] != NULL)
        return;
    PyEval_RestoreThread(call->python);
    if (PyErr_CheckSignals() == 0 && call->progress != Py_None) {
        PyObject* answer = PyObject_CallFunction(call->progress, "kk", (unsigned long)done,
                                                 (unsigned long)count);
        Py_XDECREF(answer);
    }
    if (PyErr_Occurred() != NULL) {
        PyErr_Fetch(&call->raised[0], &call->raised[1], &call->raised[2]);
        gcx_cancel_signal(call->cancel);
    }
    call->python = PyEval_SaveThread();
}
%}
%inline %{
static PyObject* prepare_cache(PyObject* resources, uint32_t flags, gcx_cancel cancel,
                               PyObject* progress) {
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    preparing call = {NULL, progress, {NULL, NULL, NULL}, cancel};
    uint32_t count = 0;
    gcx_result result;
    gcx_resource* const wanted = to_resources(resources, &count);
    if (wanted == NULL)
        return NULL;
    params.flags = flags;
    params.cancel = cancel;
    params.progress = tell_progress;
    params.user_data = &call;
    call.python = PyEval_SaveThread();
    result = gcx_cache_prepare(wanted, count, &params);
    PyEval_RestoreThread(call.python);
    free(wanted);
    if (call.raised[0] != NULL) {
        deliver_messages();
        PyErr_Restore(call.raised[0], call.raised[1], call.raised[2]);
        return NULL;
    }
    if (result != GCX_SUCCESS) {
        raise_result(result);
        return NULL;
    }
    deliver_messages();
    Py_INCREF(Py_None);
    return Py_None;
}
%}
