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
#include "values.h"

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
%}

/* What the package's version has beyond the numbers of gcx_version: .dev0, or nothing. */
%constant char* VERSION_SUFFIX = GCX_VERSION_SUFFIX;

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
#define REAL(number) made.items[made.count++] = PyFloat_FromDouble((double)(number))
#define PATH(text) PyUnicode_DecodeFSDefault(text)
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
%typemap(in) const char* driver (PyObject* name = NULL), const char* folder (PyObject* name = NULL),
             const char* token (PyObject* name = NULL) {
    if ($input != Py_None && !PyUnicode_FSConverter($input, &name))
        SWIG_fail;
    $1 = name != NULL ? PyBytes_AsString(name) : NULL;
}
%typemap(freearg) const char* driver, const char* folder, const char* token {
    Py_XDECREF(name$argnum);
}

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
