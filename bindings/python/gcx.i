/* The private layer of the Python package: every function of gcx.h, with values of Python.
 *
 *   resources   immutable bytes, as long as the struct
 *   handles     int, also native ones; 0 is NULL. A call that creates one takes an Owner as its
 *               last argument and returns it, see owner.h
 *   structs     tuples of their fields in the header's order, without struct_size
 *   results     an exception, made by the callable of set_error_factory
 *   messages    passed to the callable of set_log_receiver when the call that caused them returns,
 *               if the logger gcx is enabled for them, so that no Python code runs inside the
 *               library. The call raises what the callable raises
 *
 * Every call that opens, calls or waits for the driver or another thread releases the GIL.
 */
%module(package="gcx", threads="1") gcx_functions

%begin %{
#define PY_SSIZE_T_CLEAN
%}

%{
#include "messages.h"
#include "owner.h"
#include "values.h"

static PyObject* text_of(const char* text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* Stored for each interpreter: a process can have several, each with its own classes. */
#define ERROR_FACTORY "gcx.error_factory" /* factory(number, name, message) returns the exception */
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

#define NO_LEVEL 1000 /* above the level of every message */

/* Returns an attribute. The name is interned, since Python's cache of methods keeps names that were
 * looked up. */
static PyObject* attribute_of(PyObject* object, const char* name) {
    PyObject* const text = PyUnicode_InternFromString(name);
    PyObject* const attribute = text != NULL ? PyObject_GetAttr(object, text) : NULL;
    Py_XDECREF(text);
    return attribute;
}

/* Returns the value of an attribute, 0 to NO_LEVEL; -1 with an exception. */
static long number_in(PyObject* object, const char* name) {
    PyObject* attribute = attribute_of(object, name);
    long number = attribute != NULL ? PyLong_AsLong(attribute) : -1;
    Py_XDECREF(attribute);
    if (number < 0 && PyErr_Occurred() == NULL)
        number = 0;
    return number < NO_LEVEL ? number : NO_LEVEL;
}

/* Returns the lowest level that the logger accepts, or inherits; -1 with an exception. */
static long level_of(PyObject* logger) {
    long level = 0;
    Py_INCREF(logger);
    while (level == 0 && logger != Py_None) {
        PyObject* parent;
        level = number_in(logger, "level");
        parent = level >= 0 ? attribute_of(logger, "parent") : NULL;
        Py_DECREF(logger);
        if (parent == NULL)
            return -1;
        logger = parent;
    }
    Py_DECREF(logger);
    return level;
}

/* Returns the lowest level that the logger gcx is enabled for; -1 with an exception. Reads
 * attributes, since Logger.isEnabledFor is Python code, in which signal handlers run: programs
 * without logging should not be affected. */
static long lowest_level(void) {
    PyObject* const logging = PyDict_GetItemString(PyImport_GetModuleDict(), "logging");
    PyObject* root = logging != NULL ? attribute_of(logging, "root") : NULL;
    PyObject* manager = root != NULL ? attribute_of(root, "manager") : NULL;
    PyObject* loggers = manager != NULL ? attribute_of(manager, "loggerDict") : NULL;
    long lowest = NO_LEVEL; /* Without the module logging no messages are wanted. */
    if (loggers != NULL) {
        PyObject* logger = PyDict_Check(loggers) ? PyDict_GetItemString(loggers, "gcx") : NULL;
        PyObject* const level = logger != NULL ? attribute_of(logger, "level") : NULL;
        long off_up_to;
        long disabled;
        if (level == NULL) { /* There is no such logger yet. It would inherit from the root. */
            PyErr_Clear();
            logger = root;
        }
        Py_XDECREF(level);
        off_up_to = number_in(manager, "_disable");
        disabled = off_up_to >= 0 ? number_in(logger, "disabled") : -1;
        if (disabled == 0)
            lowest = level_of(logger);
        if (lowest >= 0 && lowest <= off_up_to)
            lowest = off_up_to + 1;
    }
    Py_XDECREF(loggers);
    Py_XDECREF(manager);
    Py_XDECREF(root);
    if (PyErr_Occurred() == NULL)
        return lowest;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Clear(); /* An unknown version of logging: the receiver asks it. */
    return 0;
}

/* Delivers messages after a call, with the GIL and without an exception. Returns 0 if the receiver
 * raises, which may be the exception of a signal handler. The receiver may call gcx. */
static int deliver_messages(void) {
    message_list list = {NULL, NULL, 0};
    PyObject* receiver;
    long lowest;
    if (deferred.first == NULL && messages.first == NULL)
        return 1;
    move_messages(&list, &deferred);
    move_messages(&list, &messages);
    receiver = kept(LOG_RECEIVER);
    Py_XINCREF(receiver);
    lowest = receiver != NULL ? lowest_level() : NO_LEVEL;
    while (lowest >= 0 && list.first != NULL) {
        message* const next = first_message(&list);
        if (50 - 10 * (long)next->level >= lowest) {
            PyObject* text = text_of(next->text);
            PyObject* answer = NULL;
            if (text != NULL)
                answer = PyObject_CallFunction(receiver, "iO", (int)next->level, text);
            Py_XDECREF(text);
            if (answer == NULL)
                lowest = -1;
            Py_XDECREF(answer);
        }
        free(next);
    }
    Py_XDECREF(receiver);
    move_messages(&deferred, &list); /* The next call delivers the rest. */
    return lowest >= 0;
}

static void raise_result(gcx_result result) {
    PyObject* text = text_of(gcx_last_error_message());
    PyObject* factory;
    PyObject* error = NULL;
    if (text == NULL)
        return;
    if (!deliver_messages()) {
        Py_DECREF(text);
        return;
    }
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

/* The suffix of the package's version after the numbers of gcx_version: .dev0 or nothing. */
%constant char* VERSION_SUFFIX = GCX_VERSION_SUFFIX;

/* These never wait. */
%nothread set_error_factory;
%nothread set_log_receiver;
%nothread flush_messages;
%nothread make_owner_type;
%nothread gcx_version;
%nothread gcx_result_name;
%nothread gcx_result_string;
%nothread gcx_last_error_message;

%inline %{
/* Sets the callable that makes the exceptions in this interpreter. */
static PyObject* set_error_factory(PyObject* factory) { return keep(ERROR_FACTORY, factory); }

/* Sets the callable that receives this interpreter's diagnostics, instead of standard error. */
static PyObject* set_log_receiver(PyObject* receiver) {
    gcx_log_set_callback(GCX_LOG_DEBUG, note_message, NULL);
    return keep(LOG_RECEIVER, receiver);
}

/* Delivers the pending messages. */
static PyObject* flush_messages(void) {
    if (!deliver_messages())
        return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

/* The type Owner for this interpreter. */
static PyObject* make_owner_type(void) { return new_owner_type(); }
%}

/* ------------------------------------------------------------------------------------------
 * What gcx_common.i requires of a language
 * ---------------------------------------------------------------------------------------- */

%{
/* A tuple under construction; the structs of gcx.h have fewer fields than this. */
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

/* Appends the item and owns it. Returns NULL if the list or the item is NULL. */
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
#define TO_uint32_t(input, to) to_u32(input, to)
#define TO_uint64_t(input, to) to_u64(input, to)
#define TO_int32_t(input, to) to_i32(input, to)
#define TO_HANDLE(input, to) to_handle(input, to)
#define TO_RESOURCE(input, to) to_resource(input, to)
#define TO_ARRAY(type, input, count) array_of_##type(input, count)
#define TO_DATA(input, data, size) to_bytes(input, data, size)
#define FROM_uint32_t(number) PyLong_FromUnsignedLong(number)
#define FROM_int32_t(number) PyLong_FromLong(number)
#define FROM_float(number) PyFloat_FromDouble(number)
#define HANDLE(pointer) PyLong_FromVoidPtr((void*)(pointer))
#define TRUTH(holds) PyBool_FromLong(holds)
#define RESOURCE(resource) resource_bytes(resource)
#define TEXT_VALUE(text) PyUnicode_DecodeFSDefault(text)
#define NUMBERS_VALUE(numbers, count) number_tuple(numbers, count)
#define PAIR(a, b) Py_BuildValue("(ii)", (int)(a), (int)(b))
#define SPLIT_gcx_resource(groups, count, remainder)                                               \
    Py_BuildValue("(NN)", resource_tuple(groups, count), resource_bytes(remainder))
#define SPLIT_uint32_t(counts, count, remainder)                                                   \
    Py_BuildValue("(Nk)", number_tuple(counts, count), (unsigned long)*(remainder))
#define STRUCT_BEGIN() fields made = {{NULL}, 0}
#define SIGNED(number) made.items[made.count++] = PyLong_FromLongLong(number)
#define UNSIGNED(number) made.items[made.count++] = PyLong_FromUnsignedLongLong(number)
#define REAL(number) made.items[made.count++] = PyFloat_FromDouble((double)(number))
#define TEXT(text) made.items[made.count++] = text_of(text)
#define BYTES(data, size)                                                                          \
    made.items[made.count++] = PyBytes_FromStringAndSize((const char*)(data), (Py_ssize_t)(size))
#define SMS(resource) made.items[made.count++] = resource_bytes(resource)
#define STRUCT_END(type) tuple_of(&made)
#define LIST_BEGIN(type, count) PyObject* listed = PyList_New((Py_ssize_t)(count))
#define LIST_ADD(index, item) listed = list_with(listed, (Py_ssize_t)(index), item)
#define LIST_END() listed
#define REPORT_VALUE(record, list) Py_BuildValue("(NN)", record, list)
%}

%define FAIL SWIG_fail; %enddef

%define GIVES_NOTHING $result = SWIG_Py_Void(); %enddef

%define GIVES(VALUE)
    Py_XDECREF($result);
    $result = VALUE;
    if ($result == NULL)
        SWIG_fail;
%enddef

/* The owner is the last argument and the result. It gets the handle on every way out of the
 * wrapper, since the delivery of messages may raise after the call succeeded. */
%define CREATED(TYPE)
%typemap(in) TYPE* (TYPE handle = NULL, PyObject* taker = NULL) {
    if (!to_owner($input))
        SWIG_fail;
    taker = $input;
    $1 = &handle;
}
%typemap(argout) TYPE* {
    Py_INCREF(taker$argnum);
    GIVES(taker$argnum)
}
%typemap(freearg) TYPE* {
    if (handle$argnum != NULL)
        own(taker$argnum, handle$argnum, TYPE##_released);
}
%enddef

/* A handle that its owner keeps. */
%typemap(in, numinputs=0) gcx_context* borrowed (gcx_context handle = NULL) { $1 = &handle; }
%typemap(argout) gcx_context* borrowed { GIVES(HANDLE(*$1)) }
%typemap(freearg) gcx_context* borrowed ""

/* Text or None, except for paths. */
%typemap(in) const char* (PyObject* utf8 = NULL) {
    if ($input != Py_None) {
        utf8 = PyUnicode_AsUTF8String($input);
        if (utf8 == NULL)
            SWIG_fail;
    }
    $1 = utf8 != NULL ? PyBytes_AsString(utf8) : NULL;
}
%typemap(freearg) const char* { Py_XDECREF(utf8$argnum); }
%typemap(in) const char* driver (PyObject* path = NULL), const char* folder (PyObject* path = NULL),
             const char* token (PyObject* path = NULL) {
    if ($input != Py_None && !PyUnicode_FSConverter($input, &path))
        SWIG_fail;
    $1 = path != NULL ? PyBytes_AsString(path) : NULL;
}
%typemap(freearg) const char* driver, const char* folder, const char* token {
    Py_XDECREF(path$argnum);
}

%rename(gcx_cache_prepare) prepare_cache;
%nothread prepare_cache;

%include "generated/module.i"
%include "gcx_common.i"

/* Releases the GIL explicitly, since progress(done, count) is called during the call. It may raise,
 * and so may a signal handler, which cancels the rest. */
%{
typedef struct preparing {
    PyThreadState* python;
    PyObject* progress;
    PyObject* raised[3]; /* the exception of progress */
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
    gcx_resource* const wanted = array_of_gcx_resource(resources, &count);
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
    if (call.raised[0] != NULL) { /* The next call delivers the messages. */
        PyErr_Restore(call.raised[0], call.raised[1], call.raised[2]);
        return NULL;
    }
    if (result != GCX_SUCCESS) {
        raise_result(result);
        return NULL;
    }
    if (!deliver_messages())
        return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}
%}
