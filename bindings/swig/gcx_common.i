/* What SWIG has to know of gcx.h, for every language: which parameters are inputs, which are
 * outputs and how long they are, which begin with struct_size, what is a handle, when a call has
 * failed. A language's own .i file comes before this and includes it at its end. It says how the
 * values are passed there, by the macros below. FAIL, GIVES, GIVES_NOTHING and CREATED are SWIG's, the
 * others C's. Those that begin with TO_ are 0 or NULL after a failure, with the exception set.
 *
 *   FAIL                         leaves the wrapper with the exception that is set
 *   GIVES(VALUE)                 makes VALUE, one of the language's, what the function returns
 *   GIVES_NOTHING                what a function returns that gives nothing
 *   RAISE(RESULT)                sets the exception of a failed call
 *   DELIVER()                    gives out what messages.h has noted; 0 with an exception set
 *   CREATED(TYPE)                the typemaps of TYPE*, a handle which the call's caller then owns
 *   MEMORY_EXHAUSTED()           sets the exception
 *   TO_U32(INPUT, TO) and so TO_U64, TO_I32, TO_HANDLE, TO_RESOURCE
 *   TO_RESOURCES(INPUT, COUNT)   an array from calloc, or NULL
 *   TO_REQUESTS(INPUT, COUNT)    likewise
 *   TO_SIZES(INPUT, COUNT)       likewise, of leases' handles with their counts of SMs
 *   TO_STREAMS(INPUT, COUNT), TO_NUMBERS(INPUT, COUNT)    likewise, of handles, of uint32_t
 *   TO_BYTES(INPUT, DATA, SIZE)  bytes that are valid during the call, or NULL
 *   U32, I32, F32, HANDLE, TRUTH, RESOURCE    one of the language's values of one in C
 *   RESOURCES, NUMBERS           of an array and its length
 *   PAIR, SPLIT, PLAN            of two int32_t; groups, count, remainder; counts, count, remainder
 *   STRUCT_BEGIN(), SIGNED, UNSIGNED, TEXT, BYTES, SMS, STRUCT_END(TYPE)
 *                                a struct from its fields in the header's order, less struct_size
 *   LIST_BEGIN(TYPE, COUNT), LIST_ADD(INDEX, STRUCT), LIST_END()    of structs
 */

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

/* True: all has finished; false: not yet. */
%typemap(out) gcx_result gcx_stream_query, gcx_result gcx_event_query,
              gcx_result gcx_lease_query {
    if ($1 != GCX_SUCCESS && $1 != GCX_ERROR_NOT_READY) {
        RAISE($1);
        FAIL
    }
    if (!DELIVER())
        FAIL
    $result = TRUTH($1 == GCX_SUCCESS);
}

/* ------------------------------------------------------------------------------------------
 * Numbers
 * ---------------------------------------------------------------------------------------- */

%typemap(in) uint32_t {
    if (!TO_U32($input, &$1))
        FAIL
}
%typemap(in) uint64_t {
    if (!TO_U64($input, &$1))
        FAIL
}
%typemap(out) uint32_t { $result = U32($1); }

%typemap(in) int32_t, gcx_resource_type, gcx_sm_family, gcx_capability, gcx_workqueue_scope,
             gcx_result, gcx_log_level {
    int32_t number = 0;
    if (!TO_I32($input, &number))
        FAIL
    $1 = ($1_ltype)number;
}

%typemap(in, numinputs=0) int32_t* count (int32_t number = 0),
                          int32_t* reporting (int32_t number = 0),
                          uint32_t* sm_count (uint32_t number = 0),
                          uint32_t* blocks (uint32_t number = 0),
                          float* milliseconds (float number = 0) { $1 = &number; }
%typemap(argout) int32_t* count, int32_t* reporting { GIVES(I32(*$1)) }
%typemap(argout) uint32_t* sm_count, uint32_t* blocks { GIVES(U32(*$1)) }
%typemap(argout) float* milliseconds { GIVES(F32(*$1)) }

%typemap(in, numinputs=0) (int32_t* least, int32_t* greatest) (int32_t low = 0, int32_t high = 0) {
    $1 = &low;
    $2 = &high;
}
%typemap(argout) (int32_t* least, int32_t* greatest) { GIVES(PAIR(*$1, *$2)) }

/* SM numbers. */
%typemap(in, numinputs=0) (uint32_t* sm_ids, uint32_t capacity, uint32_t* count)
        (uint32_t ids[GCX_MAX_SMS], uint32_t found = 0) {
    $1 = ids;
    $2 = GCX_MAX_SMS;
    $3 = &found;
}
%typemap(argout) (uint32_t* sm_ids, uint32_t capacity, uint32_t* count) { GIVES(NUMBERS($1, *$3)) }

/* ------------------------------------------------------------------------------------------
 * Resources and requests
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

%typemap(in) (const gcx_resource* resources, uint32_t resource_count) {
    $1 = TO_RESOURCES($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const gcx_resource* resources, uint32_t resource_count) { free((void*)$1); }
%typemap(argout) (const gcx_resource* resources, uint32_t resource_count) ""

%typemap(in) (const gcx_sm_request* requests, uint32_t request_count) {
    $1 = TO_REQUESTS($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const gcx_sm_request* requests, uint32_t request_count) { free((void*)$1); }

%typemap(in) (const gcx_lease_size* sizes, uint32_t count) {
    $1 = TO_SIZES($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const gcx_lease_size* sizes, uint32_t count) { free((void*)$1); }

%typemap(in) (const gcx_resource* resources, uint32_t count) {
    $1 = TO_RESOURCES($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const gcx_resource* resources, uint32_t count) { free((void*)$1); }
%typemap(argout) (const gcx_resource* resources, uint32_t count) ""

%typemap(in) (const gcx_stream* streams, uint32_t count) {
    $1 = TO_STREAMS($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const gcx_stream* streams, uint32_t count) { free((void*)$1); }
%typemap(argout) (const gcx_stream* streams, uint32_t count) ""

%typemap(in) (const uint32_t* nodes, uint32_t count) {
    $1 = TO_NUMBERS($input, &$2);
    if ($1 == NULL)
        FAIL
}
%typemap(freearg) (const uint32_t* nodes, uint32_t count) { free((void*)$1); }

/* The outputs of a split have as many entries as there are requests, whose count is the third
 * argument, and the remainder. */
%typemap(in, numinputs=0) (gcx_resource* groups, gcx_resource* remainder) (gcx_resource rest) {
    $1 = NULL;
    memset(&rest, 0, sizeof(rest));
    $2 = &rest;
}
%typemap(check) (gcx_resource* groups, gcx_resource* remainder) {
    $1 = (gcx_resource*)calloc((size_t)arg3 + 1, sizeof(gcx_resource));
    if ($1 == NULL) {
        MEMORY_EXHAUSTED();
        FAIL
    }
}
%typemap(argout) (gcx_resource* groups, gcx_resource* remainder) { GIVES(SPLIT($1, arg3, $2)) }
%typemap(freearg) (gcx_resource* groups, gcx_resource* remainder) { free($1); }

%typemap(in, numinputs=0) (uint32_t* sm_counts, uint32_t* remainder_sm_count) (uint32_t rest = 0) {
    $1 = NULL;
    $2 = &rest;
}
%typemap(check) (uint32_t* sm_counts, uint32_t* remainder_sm_count) {
    $1 = (uint32_t*)calloc((size_t)arg3 + 1, sizeof(uint32_t));
    if ($1 == NULL) {
        MEMORY_EXHAUSTED();
        FAIL
    }
}
%typemap(argout) (uint32_t* sm_counts, uint32_t* remainder_sm_count) { GIVES(PLAN($1, arg3, *$2)) }
%typemap(freearg) (uint32_t* sm_counts, uint32_t* remainder_sm_count) { free($1); }

/* ------------------------------------------------------------------------------------------
 * Handles
 * ---------------------------------------------------------------------------------------- */

%typemap(in) gcx_context, gcx_stream, gcx_event, gcx_lease, gcx_cancel, gcx_graph,
             struct CUctx_st*, struct CUgreenCtx_st*, struct CUstream_st*, struct CUevent_st*,
             struct CUfunc_st*, struct CUgraph_st* {
    void* handle = NULL;
    if (!TO_HANDLE($input, &handle))
        FAIL
    $1 = ($1_ltype)handle;
}
%typemap(out) struct CUctx_st*, struct CUgreenCtx_st*, struct CUstream_st*, struct CUevent_st* {
    if (!DELIVER())
        FAIL
    $result = HANDLE($1);
}
CREATED(gcx_context)
CREATED(gcx_stream)
CREATED(gcx_event)
CREATED(gcx_lease)
CREATED(gcx_cancel)
CREATED(gcx_graph)

/* A context's parameters are its flags. */
%typemap(in) const gcx_context_params* params (gcx_context_params filled) {
    memset(&filled, 0, sizeof(filled));
    filled.struct_size = sizeof(filled);
    if (!TO_U32($input, &filled.flags))
        FAIL
    $1 = &filled;
}

/* A stream's parameters are its priority. */
%typemap(in) const gcx_stream_params* params (gcx_stream_params filled) {
    memset(&filled, 0, sizeof(filled));
    filled.struct_size = sizeof(filled);
    if (!TO_I32($input, &filled.priority))
        FAIL
    $1 = &filled;
}

%include "gcx_structs.i"
%include "gcx_holds.i"

/* ------------------------------------------------------------------------------------------
 * The parameters of a lease, one by one
 * ---------------------------------------------------------------------------------------- */

%rename("$ignore", fullname=1) gcx_lease_acquire;
%rename(gcx_lease_acquire) acquire_lease;
%inline %{
static gcx_result acquire_lease(int32_t device, uint32_t wanted, uint32_t flags,
                                gcx_sm_family family, uint32_t min_sm_count,
                                uint32_t exclusive_sm_count, uint32_t timeout_ms,
                                gcx_cancel cancel, const char* lease_name, gcx_lease* lease) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = flags;
    params.family = family;
    params.min_sm_count = min_sm_count;
    params.exclusive_sm_count = exclusive_sm_count;
    params.timeout_ms = timeout_ms;
    params.cancel = cancel;
    params.name = lease_name;
    return gcx_lease_acquire(device, wanted, &params, lease);
}
%}

/* ------------------------------------------------------------------------------------------
 * What of a kernel fits: the launch's fields one by one
 * ---------------------------------------------------------------------------------------- */

%rename("$ignore", fullname=1) gcx_stream_get_kernel_fit;
%rename(gcx_stream_get_kernel_fit) get_kernel_fit;
%inline %{
static gcx_result get_kernel_fit(gcx_stream stream, struct CUfunc_st* function,
                                 uint32_t block_threads, uint32_t dynamic_shared_bytes,
                                 uint32_t cluster_blocks, gcx_kernel_fit* fit) {
    gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
    params.block_threads = block_threads;
    params.dynamic_shared_bytes = dynamic_shared_bytes;
    params.cluster_blocks = cluster_blocks;
    return gcx_stream_get_kernel_fit(stream, function, &params, fit);
}
%}

/* ------------------------------------------------------------------------------------------
 * The parameters of a graph and of its kernels, one by one
 * ---------------------------------------------------------------------------------------- */

%rename("$ignore", fullname=1) gcx_graph_create;
%rename(gcx_graph_create) create_graph;
%inline %{
static gcx_result create_graph(struct CUgraph_st* captured, uint32_t flags,
                               uint32_t max_executables, gcx_graph* graph) {
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.flags = flags;
    params.max_executables = max_executables;
    return gcx_graph_create(captured, &params, graph);
}
%}

%typemap(in) (const void* arguments, uint64_t argument_bytes) {
    if (!TO_BYTES($input, &$1, &$2))
        FAIL
}
%rename("$ignore", fullname=1) gcx_graph_set_kernel;
%rename(gcx_graph_set_kernel) set_graph_kernel;
%inline %{
static gcx_result set_graph_kernel(gcx_graph graph, uint32_t node, uint32_t grid_x,
                                   uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                                   uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                                   const void* arguments, uint64_t argument_bytes) {
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = grid_x;
    params.grid[1] = grid_y;
    params.grid[2] = grid_z;
    params.block[0] = block_x;
    params.block[1] = block_y;
    params.block[2] = block_z;
    params.shared_bytes = shared_bytes;
    params.arguments = arguments;
    params.argument_bytes = argument_bytes;
    return gcx_graph_set_kernel(graph, node, &params);
}
%}

/* The structs are values of the language here. */
%rename("$ignore", %$isclass) "";
%rename("$ignore", regexmatch$name="_INIT$") "";
%rename("$ignore", regexmatch$name="^GCX_(API|H|RESULT_H|STRUCT_INIT)$") "";

#define __attribute__(x)
%include "gcx_result.h"
%include "gcx.h"
