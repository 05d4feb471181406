/* What Python gives as C's values, and C's as Python's. Those that begin with to_ return 0 or NULL
 * after a failure, with the exception set; arrays come from calloc.
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
        const int good =
            wanted != NULL && to_handle(lease, &handle) && to_u32(wanted, &sizes[i].sm_count);
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

#endif
