/* gcx/graph.h - CUDA graphs that run on the SMs of any stream. Included by gcx.h. */
#ifndef GCX_GRAPH_H
#define GCX_GRAPH_H

#include "partition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * Graphs
 *
 * A CUDA graph stays on the SMs that it was captured on, whichever stream launches it. A gcx_graph
 * takes a captured graph and launches it on the SMs of any stream. It instantiates one executable
 * for each set of SMs and caches it. docs/guides/graphs.md lists which nodes can be moved.
 *
 * Nodes. A node's number is its index in gcx_graph_get_nodes(): the order of cuGraphGetNodes, with
 *   the nodes of a child graph directly behind the node that contains it.
 * Parts. A graph that forks over several partitions has one part for each context that its kernels
 *   were captured in, numbered in order of appearance. Copies and memsets belong to the part of the
 *   nearest kernel before them, or else after them.
 * Grids. A kernel whose blocks wait for each other needs all its blocks on the SMs at once: at most
 *   blocks_per_sm of gcx_graph_node times the partition's SMs. A larger cooperative launch is
 *   refused when the executable is instantiated. A larger kernel with its own barrier hangs.
 * Threads. Launches of one executable run one after the other, as CUDA orders them. Launches on
 *   different sets of SMs run concurrently, on the same memory. A launch concurrent with a change
 *   of the graph runs the graph as it was before the change or after it.
 * ---------------------------------------------------------------------------------------- */

struct CUgraph_st;
typedef struct gcx_graph_s* gcx_graph;

#define GCX_MAX_GRAPH_PARTS 16u
#define GCX_MAX_KERNEL_NAME 256u /* bytes of a kernel's name, including the final 0; cut to fit */
#define GCX_NO_NODE 0xffffffffu

/* Kernels run with the priorities that they were captured with, as in PyTorch's graphs. Without it,
 * they run with the priority of the stream that the graph is launched in. */
#define GCX_GRAPH_NODE_PRIORITIES 0x1u

typedef struct gcx_graph_params {
    uint32_t struct_size;
    uint32_t flags;           /* GCX_GRAPH_ */
    uint32_t max_executables; /* cached executables, least recently used evicted first; 0: 16. Each
                                 keeps its contexts alive and takes some device memory: 0.12 MiB
                                 with 3 nodes on an H200 */
} gcx_graph_params;
#define GCX_GRAPH_PARAMS_INIT GCX_STRUCT_INIT(gcx_graph_params)

/* Creates a movable graph from a captured one, a CUgraph or cudaGraph_t. Copies it: the caller can
 * destroy or change the captured graph at once. params may be NULL. The green contexts of gcx that
 * kernels were captured in must exist; the graph keeps them alive.
 *
 * Errors:
 *   GCX_ERROR_NOT_SUPPORTED                   a node cannot be moved; the message has its kind and
 *                                             number
 *   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  kernels of two devices, or of more than
 *                                             GCX_MAX_GRAPH_PARTS contexts
 *   GCX_ERROR_INVALID_CONTEXT                 the graph has no kernels, and no context is current
 *                                             to tell its device
 *   GCX_ERROR_CONTEXT_IS_DESTROYED            a context that kernels were captured in was
 *                                             destroyed */
GCX_API gcx_result gcx_graph_create(struct CUgraph_st* captured, const gcx_graph_params* params,
                                    gcx_graph* graph);

/* Destroys the graph and its executables. Never waits; work in flight finishes. */
GCX_API gcx_result gcx_graph_destroy(gcx_graph graph);

/* Launches the graph in streams[0]. If count is 1, all parts run on the SMs that the stream has
 * now. If count is the number of parts, part i runs on the SMs of streams[i], for
 * streams[0 .. count - 1]: the graph starts behind the earlier work of all of them, their later
 * work waits for it, and parts without order between them run concurrently.
 *
 * Each launch runs on the SMs from before a resize of the lease or from after it: a resize waits
 * until this function has returned in other threads, not for the graph's work. In a stream of the
 * primary context that other code created, the graph runs as it was captured. The first launch on a
 * set of SMs instantiates the executable (gcx_graph_prepare); later ones with one stream take less
 * than 1 us longer than cuGraphLaunch (measured).
 *
 * Errors: those of gcx_graph_prepare, and
 *   GCX_ERROR_INVALID_DEVICE              the stream is of another device
 *   GCX_ERROR_CONTEXT_IS_DESTROYED        the stream's lease was released; or other code has
 *                                         destroyed the context of its stream, or one that the
 *                                         graph was captured in and is to run in
 *   GCX_ERROR_LEASE_PARKED                the stream's lease has no SMs
 *   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph: add the captured graph to
 *                                         that one as a child node instead */
GCX_API gcx_result gcx_graph_launch(gcx_graph graph, const gcx_stream* streams, uint32_t count);

/* Instantiates the executable for resources[0 .. count - 1] ahead of time, and creates their
 * contexts if there are none: one SM resource for all parts, or one for each part. flags is 0, or
 * GCX_PREPARE_FOR_LEASES for launches in streams of leases. Call it from a background thread: it
 * takes 1.2 to 1.4 times as long as cuGraphInstantiate (measured), and delays no launch. Does
 * nothing if the executable is cached.
 *
 * Errors: those of gcx_context_create, and
 *   GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE  a cooperative grid does not fit the SMs; the message
 *                                           has the kernel's name, its grid and the largest
 *                                           possible
 *   GCX_ERROR_INVALID_VALUE                 count is neither 1 nor the number of parts
 *   GCX_ERROR_INVALID_DEVICE                a resource is of another device
 *   GCX_ERROR_NOT_SUPPORTED                 the driver did not move a node as requested; the
 *                                           message says which */
GCX_API gcx_result gcx_graph_prepare(gcx_graph graph, const gcx_resource* resources, uint32_t count,
                                     uint32_t flags);

/* Assigns nodes[0 .. count - 1] to a part: an existing one, or the next number. A child graph's
 * node stands for all its nodes. Destroys the executables that were instantiated for several sets
 * of SMs. A part without nodes stays and runs nothing. If count is 0, nothing changes.
 *
 * Errors:
 *   GCX_ERROR_INVALID_VALUE  there is no such node; part is greater than the number of parts or is
 *                            GCX_MAX_GRAPH_PARTS; part is the next one and count is 0 */
GCX_API gcx_result gcx_graph_set_part(gcx_graph graph, const uint32_t* nodes, uint32_t count,
                                      uint32_t part);

/* The launch parameters of a kernel node. */
typedef struct gcx_kernel_params {
    uint32_t struct_size;
    uint32_t shared_bytes;   /* dynamic shared memory of a block */
    uint32_t grid[3];        /* blocks */
    uint32_t block[3];       /* threads */
    const void* arguments;   /* at their offsets (cuFuncGetParamInfo), as in a C struct; copied;
                                NULL: the present ones */
    uint64_t argument_bytes; /* at least to the end of the last argument */
} gcx_kernel_params;
#define GCX_KERNEL_PARAMS_INIT GCX_STRUCT_INIT(gcx_kernel_params)

/* Changes the parameters of a kernel node in the graph and all its executables, or in none. Later
 * launches have them. Only arguments have a default, so set all other fields; gcx_graph_get_nodes()
 * returns the present ones. The driver updates executables in place, except for nodes of child
 * graphs, where the executables are instantiated again.
 *
 * Errors: those of gcx_graph_prepare, the driver's about the parameters, and
 *   GCX_ERROR_INVALID_VALUE  there is no such node; it is not a kernel's; the grid or the block has
 *                            a 0; the arguments are too short */
GCX_API gcx_result gcx_graph_set_kernel(gcx_graph graph, uint32_t node,
                                        const gcx_kernel_params* params);

/* Updates the graph to the parameters of another captured graph with the same nodes in the same
 * order, in all executables or in none. Parts stay. If only the parameters of kernels outside child
 * graphs differ, the driver updates executables in place; otherwise they are instantiated again.
 * The caller still owns captured.
 *
 * Errors: those of gcx_graph_create and, about the executables, of gcx_graph_prepare, and
 *   GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE  the device, the nodes or their order differ; the message
 *                                        says where */
GCX_API gcx_result gcx_graph_update(gcx_graph graph, struct CUgraph_st* captured);

typedef struct gcx_graph_info {
    uint32_t struct_size;
    int32_t device;
    uint32_t flags;        /* GCX_GRAPH_ */
    uint32_t node_count;   /* including those of child graphs */
    uint32_t kernel_count; /* of these, kernels */
    uint32_t part_count;
    uint32_t executables; /* cached now */
    uint32_t max_executables;
    uint64_t launches;     /* since it was created */
    uint64_t instantiated; /* executables instantiated since then */
    uint64_t evicted;      /* of these, destroyed because of max_executables */
} gcx_graph_info;
#define GCX_GRAPH_INFO_INIT GCX_STRUCT_INIT(gcx_graph_info)

/* Returns the properties of a graph. */
GCX_API gcx_result gcx_graph_get_info(gcx_graph graph, gcx_graph_info* info);

/* Kinds of nodes, CUgraphNodeType. */
typedef enum gcx_graph_node_kind GCX_ENUM_OF_INT {
    GCX_GRAPH_NODE_KERNEL = 0,
    GCX_GRAPH_NODE_MEMCPY = 1,
    GCX_GRAPH_NODE_MEMSET = 2,
    GCX_GRAPH_NODE_HOST = 3,
    GCX_GRAPH_NODE_GRAPH = 4, /* a child graph */
    GCX_GRAPH_NODE_EMPTY = 5,
    GCX_GRAPH_NODE_WAIT_EVENT = 6,
    GCX_GRAPH_NODE_EVENT_RECORD = 7,
    GCX_GRAPH_NODE_SEMAPHORE_SIGNAL = 8,
    GCX_GRAPH_NODE_SEMAPHORE_WAIT = 9
} gcx_graph_node_kind;

/* Describes a node. */
typedef struct gcx_graph_node {
    gcx_graph_node_kind kind;
    uint32_t parent; /* number of the node whose child graph contains it; GCX_NO_NODE: none */
    uint32_t part;
    /* Of kernels, else 0. */
    uint32_t cooperative;   /* 1: a cooperative launch */
    uint32_t grid[3];       /* blocks */
    uint32_t block[3];      /* threads */
    uint32_t cluster[3];    /* blocks; 0 without clusters */
    uint32_t shared_bytes;  /* dynamic shared memory of a block */
    uint32_t blocks_per_sm; /* blocks that run on one SM at once. The largest grid whose blocks may
                               wait for each other is this times the partition's SMs */
    uint32_t reserved[9];   /* 0 */
    char name[256];         /* the kernel's, as compiled */
} gcx_graph_node;

/* Lists the nodes. nodes may be NULL if capacity is 0. */
GCX_API gcx_result gcx_graph_get_nodes(gcx_graph graph, gcx_graph_node* nodes, uint32_t capacity,
                                       uint32_t* count);

#ifdef __cplusplus
}
#endif

#endif
