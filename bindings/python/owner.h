/* gcx._gcx.Owner, the base of every Python object with a handle.
 *
 * A signal handler of Python's can raise between any two bytecodes, so a handle must never be a
 * plain value of Python: it would be lost, with its SMs. A function that
 * creates a handle therefore takes the owner as its last argument and stores the handle in it
 * before it returns to the interpreter. The owner releases the handle in C, where no signal handler
 * runs.
 */
#ifndef GCX_PYTHON_OWNER_H
#define GCX_PYTHON_OWNER_H

#include "messages.h"
#include "values.h"

typedef gcx_result (*destroy_function)(void* handle);

typedef struct owner {
    PyObject_HEAD void* handle; /* NULL: never created, or released */
    destroy_function destroy;
} owner;

static void raise_result(gcx_result result);
static int deliver_messages(void);

/* Messages of finalizers. A finalizer can't raise, so Python code in it would swallow what a
 * signal handler raises. The next call, in any thread, delivers the messages. The GIL guards the
 * list. */
static message_list deferred;

static void move_messages(message_list* to, message_list* from) {
    if (from->first == NULL)
        return;
    if (to->last != NULL)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    memset(from, 0, sizeof(*from));
}

/* Removes the oldest message of a nonempty list; the caller frees it. */
static message* first_message(message_list* list) {
    message* const first = list->first;
    list->first = first->next;
    list->count--;
    if (list->first == NULL)
        list->last = NULL;
    return first;
}

/* Returns whether nothing is left to release after this result: the handle was destroyed, now or by
 * another thread, or this process is a forked child, which does not own it. */
static int is_gone(gcx_result result) {
    return result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE ||
           result == GCX_ERROR_NOT_INITIALIZED;
}

/* Releases the handle, without raising. Used as the finalizer, which runs before the
 * object's attributes are dropped. */
static void finalize_owner(PyObject* self) {
    owner* const mine = (owner*)self;
    void* const handle = mine->handle;
    PyThreadState* python;
    gcx_result result;
    if (handle == NULL)
        return;
    mine->handle = NULL;
    python = PyEval_SaveThread();
    result = mine->destroy(handle);
    if (!is_gone(result) && result != GCX_ERROR_DEINITIALIZED) {
        char text[1024];
        snprintf(text, sizeof(text), "an object was collected, and its handle is not released: %s",
                 gcx_last_error_message());
        note_message(GCX_LOG_ERROR, text, NULL);
    }
    PyEval_RestoreThread(python);
    move_messages(&deferred, &messages);
    while (deferred.count > MOST_MESSAGES)
        free(first_message(&deferred));
}

static void free_owner(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    const freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    finalize_owner(self); /* A subclass's __del__ may not call this one's. */
    free_object(self);
    Py_DECREF(type);
}

/* Returns the handle as an int, 0 if there is none. */
static PyObject* handle_of_owner(PyObject* self, void* unused) {
    (void)unused;
    return PyLong_FromVoidPtr(((owner*)self)->handle);
}

/* Releases the handle. If that fails the owner keeps it, and the error is raised. */
static PyObject* release_owner(PyObject* self, PyObject* unused) {
    owner* const mine = (owner*)self;
    void* const handle = mine->handle;
    (void)unused;
    if (handle != NULL) {
        PyThreadState* const python = PyEval_SaveThread();
        const gcx_result result = mine->destroy(handle);
        PyEval_RestoreThread(python);
        if (!is_gone(result)) {
            raise_result(result);
            return NULL;
        }
        if (mine->handle == handle)
            mine->handle = NULL;
        if (!deliver_messages())
            return NULL;
    }
    Py_INCREF(Py_None);
    return Py_None;
}

/* Drops a handle that a call has consumed. */
static PyObject* forget_owner(PyObject* self, PyObject* unused) {
    (void)unused;
    ((owner*)self)->handle = NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

/* Creates the type, one for each interpreter of the process. */
static PyObject* new_owner_type(void) {
    static PyMethodDef methods[] = {{"_release", release_owner, METH_NOARGS, NULL},
                                    {"_forget", forget_owner, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyGetSetDef attributes[] = {{"_handle", handle_of_owner, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, (void*)free_owner},
                           {Py_tp_finalize, (void*)finalize_owner},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, attributes},
                           {0, NULL}};
    PyType_Spec spec = {"gcx._gcx.Owner", (int)sizeof(owner), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return PyType_FromSpec(&spec);
}

/* Returns whether an object can own a handle: its type has the slots of Owner of any interpreter.
 */
static int to_owner(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    while (type != NULL && PyType_GetSlot(type, Py_tp_dealloc) != (void*)free_owner)
        type = (PyTypeObject*)PyType_GetSlot(type, Py_tp_base);
    if (type == NULL)
        PyErr_SetString(PyExc_TypeError, "the last argument must be a gcx._gcx.Owner");
    return type != NULL;
}

/* Stores a handle in the owner, and releases its former one. */
static void own(PyObject* object, void* handle, destroy_function destroy) {
    owner* const mine = (owner*)object;
    finalize_owner(object);
    mine->handle = handle;
    mine->destroy = destroy;
}

#endif
