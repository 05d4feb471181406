/* The structs of gcx.h that functions fill in, and lists of them, for every language: see gcx_common.i,
 * which includes this.
 */

/* ------------------------------------------------------------------------------------------
 * Structs that are filled in
 * ---------------------------------------------------------------------------------------- */

%define FILLED_STRUCT(TYPE, NAME)
%typemap(in, numinputs=0) TYPE* NAME (TYPE filled) {
    memset(&filled, 0, sizeof(filled));
    filled.struct_size = sizeof(filled);
    $1 = &filled;
}
%enddef

FILLED_STRUCT(gcx_driver_info, info)
%typemap(argout) gcx_driver_info* info {
    STRUCT_BEGIN();
    SIGNED($1->version);
    SIGNED($1->header_version);
    SIGNED($1->simulated);
    TEXT($1->library);
    GIVES(STRUCT_END(gcx_driver_info))
}
FILLED_STRUCT(gcx_capability_info, info)
%typemap(argout) gcx_capability_info* info {
    STRUCT_BEGIN();
    SIGNED($1->available);
    SIGNED($1->required_version);
    TEXT($1->name);
    GIVES(STRUCT_END(gcx_capability_info))
}
FILLED_STRUCT(gcx_device_info, info)
%typemap(argout) gcx_device_info* info {
    STRUCT_BEGIN();
    SIGNED($1->compute_capability_major);
    SIGNED($1->compute_capability_minor);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->min_partition_size);
    UNSIGNED($1->coscheduled_alignment);
    UNSIGNED($1->locality_domain_count);
    TEXT($1->name);
    BYTES($1->uuid, sizeof($1->uuid));
    GIVES(STRUCT_END(gcx_device_info))
}
FILLED_STRUCT(gcx_resource_info, info)
%typemap(argout) gcx_resource_info* info {
    STRUCT_BEGIN();
    SIGNED($1->type);
    SIGNED($1->device);
    SIGNED($1->family);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->atom_count);
    UNSIGNED($1->min_partition_size);
    UNSIGNED($1->coscheduled_alignment);
    UNSIGNED($1->flags);
    UNSIGNED($1->locality_domain_id);
    SIGNED($1->workqueue_scope);
    UNSIGNED($1->workqueue_concurrency_limit);
    GIVES(STRUCT_END(gcx_resource_info))
}
FILLED_STRUCT(gcx_context_info, info)
%typemap(argout) gcx_context_info* info {
    STRUCT_BEGIN();
    SIGNED($1->device);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->stream_count);
    UNSIGNED($1->id);
    GIVES(STRUCT_END(gcx_context_info))
}
FILLED_STRUCT(gcx_stream_info, info)
%typemap(argout) gcx_stream_info* info {
    STRUCT_BEGIN();
    SIGNED($1->device);
    SIGNED($1->priority);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->context_id);
    GIVES(STRUCT_END(gcx_stream_info))
}
FILLED_STRUCT(gcx_lease_info, info)
%typemap(argout) gcx_lease_info* info {
    STRUCT_BEGIN();
    SIGNED($1->device);
    SIGNED($1->family);
    UNSIGNED($1->flags);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->exclusive_sm_count);
    UNSIGNED($1->stream_count);
    UNSIGNED($1->id);
    UNSIGNED($1->changes);
    TEXT($1->name);
    GIVES(STRUCT_END(gcx_lease_info))
}
FILLED_STRUCT(gcx_graph_info, info)
%typemap(argout) gcx_graph_info* info {
    STRUCT_BEGIN();
    SIGNED($1->device);
    UNSIGNED($1->flags);
    UNSIGNED($1->node_count);
    UNSIGNED($1->kernel_count);
    UNSIGNED($1->part_count);
    UNSIGNED($1->executables);
    UNSIGNED($1->max_executables);
    UNSIGNED($1->launches);
    UNSIGNED($1->made);
    UNSIGNED($1->evicted);
    GIVES(STRUCT_END(gcx_graph_info))
}
FILLED_STRUCT(gcx_queue_info, info)
%typemap(argout) gcx_queue_info* info {
    STRUCT_BEGIN();
    UNSIGNED($1->connections);
    SIGNED($1->source);
    SIGNED($1->started);
    SIGNED($1->certain);
    SIGNED($1->too_few);
    GIVES(STRUCT_END(gcx_queue_info))
}
FILLED_STRUCT(gcx_cache_stats, stats)
%typemap(argout) gcx_cache_stats* stats {
    STRUCT_BEGIN();
    UNSIGNED($1->limit);
    UNSIGNED($1->in_use);
    UNSIGNED($1->kept);
    UNSIGNED($1->hits);
    UNSIGNED($1->misses);
    UNSIGNED($1->evicted);
    UNSIGNED($1->lost);
    UNSIGNED($1->prepared);
    UNSIGNED($1->making_ns);
    UNSIGNED($1->longest_making_ns);
    UNSIGNED($1->kept_streams);
    GIVES(STRUCT_END(gcx_cache_stats))
}
FILLED_STRUCT(gcx_cache_trimmed, trimmed)
%typemap(argout) gcx_cache_trimmed* trimmed {
    STRUCT_BEGIN();
    UNSIGNED($1->contexts);
    UNSIGNED($1->streams);
    UNSIGNED($1->contexts_left);
    UNSIGNED($1->streams_left);
    UNSIGNED($1->bytes);
    GIVES(STRUCT_END(gcx_cache_trimmed))
}
FILLED_STRUCT(gcx_kernel_fit, fit)
%typemap(argout) gcx_kernel_fit* fit {
    STRUCT_BEGIN();
    UNSIGNED($1->sm_count);
    UNSIGNED($1->blocks_per_sm);
    UNSIGNED($1->max_blocks);
    UNSIGNED($1->max_clusters);
    UNSIGNED($1->max_cluster_blocks);
    GIVES(STRUCT_END(gcx_kernel_fit))
}

/* ------------------------------------------------------------------------------------------
 * Lists, however long they are: another thread may make what they have meanwhile
 * ---------------------------------------------------------------------------------------- */

%define LISTED(TYPE, FUNCTION, LISTING)
%typemap(in, numinputs=0) (TYPE** list, uint32_t* list_count) (TYPE* found = NULL,
                                                               uint32_t length = 0) {
    $1 = &found;
    $2 = &length;
}
%typemap(freearg) (TYPE** list, uint32_t* list_count) {
    if ($1 != NULL)
        free(*$1);
}
%rename("$ignore", fullname=1) FUNCTION;
%rename(FUNCTION) LISTING;
%enddef

%{
/* The body of a function that lists: CALL fills the `room` entries of *list and sets `needed`. */
#define LIST_ALL(CALL)                                                                             \
    uint32_t needed = 16;                                                                          \
    uint32_t room;                                                                                 \
    gcx_result result;                                                                             \
    do {                                                                                           \
        void* const grown = realloc(*list, needed * sizeof(**list));                               \
        room = needed;                                                                             \
        if (grown == NULL)                                                                         \
            return GCX_ERROR_OUT_OF_MEMORY;                                                        \
        *list = grown;                                                                             \
        result = CALL;                                                                             \
    } while (result == GCX_ERROR_INVALID_VALUE && needed > room);                                  \
    *list_count = needed;                                                                          \
    return result
%}

%typemap(argout) (gcx_live_context** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_live_context, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_live_context* const context = &(*$1)[i];
        STRUCT_BEGIN();
        UNSIGNED(context->id);
        SIGNED(context->device);
        UNSIGNED(context->sm_count);
        UNSIGNED(context->handle_count);
        UNSIGNED(context->stream_count);
        UNSIGNED(context->flags);
        SMS(&context->resource);
        LIST_ADD(i, STRUCT_END(gcx_live_context));
    }
    GIVES(LIST_END())
}
%typemap(argout) (gcx_live_lease** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_live_lease, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_live_lease* const lease = &(*$1)[i];
        STRUCT_BEGIN();
        UNSIGNED(lease->id);
        SIGNED(lease->device);
        SIGNED(lease->family);
        UNSIGNED(lease->flags);
        UNSIGNED(lease->sm_count);
        UNSIGNED(lease->exclusive_sm_count);
        UNSIGNED(lease->stream_count);
        UNSIGNED(lease->waits);
        TEXT(lease->name);
        SMS(&lease->resource);
        LIST_ADD(i, STRUCT_END(gcx_live_lease));
    }
    GIVES(LIST_END())
}
%typemap(argout) (gcx_published_process** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_published_process, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_published_process* const process = &(*$1)[i];
        STRUCT_BEGIN();
        UNSIGNED(process->process);
        UNSIGNED(process->since_ms);
        SIGNED(process->pid);
        SIGNED(process->simulated);
        SIGNED(process->driver_version);
        UNSIGNED(process->device_count);
        UNSIGNED(process->lease_count);
        UNSIGNED(process->unlisted_count);
        TEXT(process->name);
        LIST_ADD(i, STRUCT_END(gcx_published_process));
    }
    GIVES(LIST_END())
}
/* The sets of atoms are the bytes of their words. */
%typemap(argout) (gcx_published_lease** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_published_lease, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_published_lease* const lease = &(*$1)[i];
        STRUCT_BEGIN();
        UNSIGNED(lease->process);
        UNSIGNED(lease->id);
        UNSIGNED(lease->changes);
        SIGNED(lease->pid);
        SIGNED(lease->simulated);
        SIGNED(lease->device);
        SIGNED(lease->family);
        UNSIGNED(lease->flags);
        UNSIGNED(lease->waits);
        UNSIGNED(lease->sm_count);
        UNSIGNED(lease->exclusive_sm_count);
        UNSIGNED(lease->stream_count);
        UNSIGNED(lease->device_sm_count);
        UNSIGNED(lease->atom_count);
        UNSIGNED(lease->atom_sm_count);
        UNSIGNED(lease->last_atom_sm_count);
        BYTES(lease->exclusive_atoms, sizeof(lease->exclusive_atoms));
        BYTES(lease->shared_atoms, sizeof(lease->shared_atoms));
        BYTES(lease->device_uuid, sizeof(lease->device_uuid));
        TEXT(lease->name);
        TEXT(lease->process_name);
        TEXT(lease->device_name);
        LIST_ADD(i, STRUCT_END(gcx_published_lease));
    }
    GIVES(LIST_END())
}
%typemap(argout) (gcx_graph_node** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_graph_node, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_graph_node* const node = &(*$1)[i];
        STRUCT_BEGIN();
        SIGNED(node->kind);
        UNSIGNED(node->parent);
        UNSIGNED(node->part);
        UNSIGNED(node->cooperative);
        UNSIGNED(node->grid[0]);
        UNSIGNED(node->grid[1]);
        UNSIGNED(node->grid[2]);
        UNSIGNED(node->block[0]);
        UNSIGNED(node->block[1]);
        UNSIGNED(node->block[2]);
        UNSIGNED(node->cluster[0]);
        UNSIGNED(node->cluster[1]);
        UNSIGNED(node->cluster[2]);
        UNSIGNED(node->shared_bytes);
        UNSIGNED(node->blocks_per_sm);
        TEXT(node->name);
        LIST_ADD(i, STRUCT_END(gcx_graph_node));
    }
    GIVES(LIST_END())
}
LISTED(gcx_live_context, gcx_context_list, list_contexts)
LISTED(gcx_live_lease, gcx_lease_list, list_leases)
LISTED(gcx_published_process, gcx_published_process_list, list_published_processes)
LISTED(gcx_published_lease, gcx_published_lease_list, list_published_leases)
LISTED(gcx_graph_node, gcx_graph_get_nodes, list_graph_nodes)
%inline %{
static gcx_result list_contexts(int32_t device, gcx_live_context** list, uint32_t* list_count) {
    LIST_ALL(gcx_context_list(device, *list, room, &needed));
}
static gcx_result list_leases(int32_t device, gcx_live_lease** list, uint32_t* list_count) {
    LIST_ALL(gcx_lease_list(device, *list, room, &needed));
}
static gcx_result list_published_processes(gcx_published_process** list, uint32_t* list_count) {
    LIST_ALL(gcx_published_process_list(*list, room, &needed));
}
static gcx_result list_published_leases(gcx_published_lease** list, uint32_t* list_count) {
    LIST_ALL(gcx_published_lease_list(*list, room, &needed));
}
static gcx_result list_graph_nodes(gcx_graph graph, gcx_graph_node** list, uint32_t* list_count) {
    LIST_ALL(gcx_graph_get_nodes(graph, *list, room, &needed));
}
%}
