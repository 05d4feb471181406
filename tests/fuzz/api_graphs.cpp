// Operations on graphs. Also checks that the number of executables stays within the limit.

#include "api.hpp"

#include <memory>

namespace fuzz {
namespace {

constexpr uint32_t kMaxNodes = 16;

// A graph of a few nodes in the primary context, destroyed at the end of the scope.
class Captured {
  public:
    explicit Captured(Bytes& bytes) {
        if (cuDevicePrimaryCtxRetain(&primary_, 0) != CUDA_SUCCESS)
            return;
        retained_ = true;
        if (cuCtxPushCurrent(primary_) != CUDA_SUCCESS)
            return;
        if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS)
            graph = nullptr;
        CUgraphNode last = nullptr;
        for (uint32_t left = bytes.next() % 4U; left > 0 && graph != nullptr; left--)
            add(bytes, last);
        CUcontext popped = nullptr;
        if (cuCtxPopCurrent(&popped) != CUDA_SUCCESS)
            cuCtxPopCurrent(&popped);
    }
    // Repeats each call in case it failed by injection.
    ~Captured() {
        if (graph != nullptr && cuGraphDestroy(graph) != CUDA_SUCCESS)
            cuGraphDestroy(graph);
        if (retained_ && cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS)
            cuDevicePrimaryCtxRelease(0);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    CUgraph graph = nullptr;

  private:
    void add(Bytes& bytes, CUgraphNode& last) {
        const std::size_t behind = last == nullptr ? 0 : 1;
        CUgraphNode added = nullptr;
        CUkernel kernel = bytes.flag() ? nullptr : kernel_.get();
        if (kernel == nullptr) {
            if (cuGraphAddEmptyNode(&added, graph, &last, behind) == CUDA_SUCCESS)
                last = added;
            return;
        }
        uint64_t argument = bytes.next();
        void* arguments[] = {&argument};
        CUDA_KERNEL_NODE_PARAMS params{};
        params.kern = kernel;
        params.ctx = primary_;
        params.gridDimX = 1U + bytes.next();
        params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
        params.blockDimX = 32;
        params.kernelParams = arguments;
        if (cuGraphAddKernelNode(&added, graph, &last, behind, &params) == CUDA_SUCCESS)
            last = added;
    }

    CUcontext primary_ = nullptr;
    const Kernel kernel_;
    bool retained_ = false;
};

} // namespace

void make_graph(Bytes& bytes, Shared& shared) {
    if (!shared.single_thread) // another thread could launch a kernel of the unloaded library
        return;
    const Captured captured(bytes);
    gcx_graph_params params = sized<gcx_graph_params>(bytes).value;
    params.flags = bytes.next() % 3;
    params.max_executables = bytes.next() % 4;
    Out<gcx_graph> graph;
    if (CALL_OUT(graph, gcx_graph_create(captured.graph, bytes.flag() ? &params : nullptr,
                                         &graph.value)) != GCX_SUCCESS)
        return;
    // The kernels are unloaded with the library, so that only graphs without kernels are stored.
    gcx_graph_info info = GCX_GRAPH_INFO_INIT;
    const bool known = CALL(gcx_graph_get_info(graph.value, &info)) == GCX_SUCCESS;
    gcx_stream stream = shared.streams.pick(bytes);
    CALL(gcx_graph_launch(graph.value, &stream, 1));
    if (bytes.flag())
        CALL(gcx_graph_update(graph.value, captured.graph));
    if (known && info.kernel_count == 0) {
        shared.graphs.put(bytes, graph.value);
    } else if (CALL(gcx_graph_destroy(graph.value)) != GCX_SUCCESS) {
        must(gcx_graph_destroy(graph.value) == GCX_SUCCESS, "a graph can't be destroyed");
    }
}

void launch_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    gcx_stream streams[3];
    for (gcx_stream& stream : streams)
        stream = shared.streams.pick(bytes);
    CALL(gcx_graph_launch(graph, bytes.flag() ? streams : nullptr, bytes.next() % 4));
}

void prepare_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    const gcx_resource resources[] = {shared.resource(bytes), shared.resource(bytes)};
    CALL(gcx_graph_prepare(graph, resources, bytes.next() % 3, bytes.next() % 3));
}

void change_graph(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    const uint32_t nodes[] = {bytes.next() % 8U, bytes.next() % 8U};
    CALL(gcx_graph_set_part(graph, nodes, bytes.next() % 3, bytes.next() % 4));
    auto params = sized<gcx_kernel_params>(bytes);
    params.value.arguments = nullptr;
    CALL(gcx_graph_set_kernel(graph, nodes[0], &params.value));
    if (bytes.next() == 0x11)
        shared.graphs.destroy(graph);
}

void graph_facts(Bytes& bytes, Shared& shared) {
    gcx_graph graph = shared.graphs.pick(bytes);
    auto info = sized<gcx_graph_info>(bytes);
    if (CALL_OUT(info, gcx_graph_get_info(graph, &info.value)) == GCX_SUCCESS)
        must(info.value.executables <= info.value.max_executables, "too many executables");
    const uint32_t capacity = bytes.next() % kMaxNodes;
    const std::unique_ptr<gcx_graph_node[]> nodes(new gcx_graph_node[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_graph_get_nodes(graph, nodes.get(), capacity, &count)) == GCX_SUCCESS)
        must(count <= capacity, "more nodes than there is room for");
}

} // namespace fuzz
