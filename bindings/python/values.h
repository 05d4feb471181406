/* Conversions between values of Python and C. Functions named to_ return 0 or NULL after a failure,
 * with the exception set; arrays come from calloc.
 */
#ifndef GCX_PYTHON_VALUES_H
#define GCX_PYTHON_VALUES_H

#include <Python.h>

#include <gcx.h>

#include <stdlib.h>
#include <string.h>

static PyObject* resource_bytes(const gcx_resource* resource) {
    return PyBytes_FromStringAndSize((const char*)resource, (Py_ssize_t)sizeof(*resource));
}

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
        PyErr_SetString(PyExc_OverflowError, "a number does not fit 32 bits");
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
        PyErr_SetString(PyExc_OverflowError, "a number does not fit 32 bits");
        return 0;
    }
    *value = (int32_t)number;
    return 1;
}

static int to_handle(PyObject* object, void** handle) {
    *handle = PyLong_AsVoidPtr(object);
    return *handle != NULL || PyErr_Occurred() == NULL;
}

/* Reads a struct's field from a sequence of its fields in the header's order. An int stands for the
 * first field, with the others 0. */
static int u32_field(PyObject* fields, Py_ssize_t index, uint32_t* value) {
    PyObject* field;
    int good;
    if (PyLong_Check(fields))
        return index > 0 || to_u32(fields, value);
    field = PySequence_GetItem(fields, index);
    good = field != NULL && to_u32(field, value);
    Py_XDECREF(field);
    return good;
}

static int handle_field(PyObject* fields, Py_ssize_t index, void** value) {
    PyObject* const field = PySequence_GetItem(fields, index);
    const int good = field != NULL && to_handle(field, value);
    Py_XDECREF(field);
    return good;
}

/* Defines array_of_TYPE(sequence, count), which returns an array whose items CONVERT makes. */
#define ARRAY_OF(TYPE, CONVERT)                                                                    \
    static TYPE* array_of_##TYPE(PyObject* sequence, uint32_t* count) {                            \
        const Py_ssize_t size = PySequence_Size(sequence);                                         \
        TYPE* array = NULL;                                                                        \
        Py_ssize_t i;                                                                              \
        if (size < 0)                                                                              \
            return NULL;                                                                           \
        array = (TYPE*)calloc((size_t)size + 1, sizeof(*array));                                   \
        if (array == NULL) {                                                                       \
            PyErr_NoMemory();                                                                      \
            return NULL;                                                                           \
        }                                                                                          \
        for (i = 0; i < size; i++) {                                                               \
            PyObject* item = PySequence_GetItem(sequence, i);                                      \
            const int good = item != NULL && CONVERT(item, &array[i]);                             \
            Py_XDECREF(item);                                                                      \
            if (!good) {                                                                           \
                free(array);                                                                       \
                return NULL;                                                                       \
            }                                                                                      \
        }                                                                                          \
        *count = (uint32_t)size;                                                                   \
        return array;                                                                              \
    }

static int to_stream(PyObject* object, gcx_stream* stream) {
    void* handle = NULL;
    const int good = to_handle(object, &handle);
    *stream = (gcx_stream)handle;
    return good;
}

ARRAY_OF(gcx_resource, to_resource)
ARRAY_OF(gcx_stream, to_stream)
ARRAY_OF(uint32_t, to_u32)

/* Converts None to NULL. */
static int to_bytes(PyObject* object, void** data, uint64_t* size) {
    char* bytes = NULL;
    Py_ssize_t length = 0;
    if (object != Py_None && PyBytes_AsStringAndSize(object, &bytes, &length) < 0)
        return 0;
    *data = bytes;
    *size = (uint64_t)length;
    return 1;
}

/* Defines NAME(array, count), which returns a tuple of what MAKE returns for the address of each
 * item, or NULL with an exception. */
#define TUPLE_OF(NAME, TYPE, MAKE)                                                                 \
    static PyObject* NAME(const TYPE* array, uint32_t count) {                                     \
        PyObject* tuple = PyTuple_New((Py_ssize_t)count);                                          \
        uint32_t i;                                                                                \
        for (i = 0; tuple != NULL && i < count; i++) {                                             \
            PyObject* item = MAKE(&array[i]);                                                      \
            if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {                 \
                Py_DECREF(tuple);                                                                  \
                return NULL;                                                                       \
            }                                                                                      \
        }                                                                                          \
        return tuple;                                                                              \
    }
#define NUMBER_AT(number) PyLong_FromUnsignedLong(*(number))

TUPLE_OF(resource_tuple, gcx_resource, resource_bytes)
TUPLE_OF(number_tuple, uint32_t, NUMBER_AT)

#include "inputs.h"

#endif
