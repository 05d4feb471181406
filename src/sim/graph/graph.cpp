#include "sim/graph/graph.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {

Graph& new_graph(Machine& machine) {
    auto graph = std::make_unique<Graph>();
    graph->handle = new_handle();
    Graph& made = *graph;
    machine.graphs[made.handle] = std::move(graph);
    return made;
}

void delete_graph(Machine& machine, Handle handle) {
    const auto found = machine.graphs.find(handle);
    if (found == machine.graphs.end())
        return;
    const std::unique_ptr<Graph> graph = std::move(found->second);
    machine.graphs.erase(found);
    for (const auto& node : graph->nodes)
        if (node->work.child != 0)
            delete_graph(machine, node->work.child);
}

const Node* find_node(const Graph& graph, Handle node) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other->handle == node; });
    return found == graph.nodes.end() ? nullptr : found->get();
}

Node* find_node(Graph& graph, Handle node) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other->handle == node; });
    return found == graph.nodes.end() ? nullptr : found->get();
}

Node* find_node(Machine& machine, CUgraphNode node) {
    for (const auto& [handle, graph] : machine.graphs)
        if (Node* const found = find_node(*graph, to_handle(node)); found != nullptr)
            return found;
    return nullptr;
}

Node& add_node(Graph& graph, Work work, std::vector<Handle> dependencies) {
    auto node = std::make_unique<Node>();
    node->handle = new_handle();
    node->graph = graph.handle;
    node->work = std::move(work);
    node->dependencies = std::move(dependencies);
    graph.nodes.push_back(std::move(node));
    return *graph.nodes.back();
}

void copy_nodes(Machine& machine, const Graph& from, Graph& to) {
    std::unordered_map<Handle, Handle> copies;
    for (const auto& node : from.nodes) {
        Node& copy = add_node(to, node->work, node->dependencies);
        copy.origin = node->handle;
        copies[node->handle] = copy.handle;
        if (node->work.child != 0) {
            Graph& child = new_graph(machine);
            child.hidden = true;
            copy_nodes(machine, *machine.graphs[node->work.child], child);
            copy.work.child = child.handle;
        }
    }
    for (const auto& node : to.nodes)
        for (Handle& dependency : node->dependencies)
            if (const auto copy = copies.find(dependency); copy != copies.end())
                dependency = copy->second;
}

std::vector<Node*> in_order(const Graph& graph) {
    std::vector<Node*> order;
    std::set<Handle> done;
    while (order.size() < graph.nodes.size()) {
        const std::size_t before = order.size();
        for (const auto& node : graph.nodes) {
            const auto& needs = node->dependencies;
            if (done.contains(node->handle) ||
                !std::all_of(needs.begin(), needs.end(),
                             [&](Handle handle) { return done.contains(handle); }))
                continue;
            done.insert(node->handle);
            order.push_back(node.get());
        }
        if (order.size() == before)
            return {};
    }
    return order;
}

namespace {

// All but the context.
CUresult read_launch(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                     const Function& function, Work& work) {
    work.kind = Work::Kind::Kernel;
    work.function = function.handle;
    work.by_kernel = function.kernel != 0;
    LaunchConfig& config = work.config;
    config.grid[0] = parameters.gridDimX;
    config.grid[1] = parameters.gridDimY;
    config.grid[2] = parameters.gridDimZ;
    config.block[0] = parameters.blockDimX;
    config.block[1] = parameters.blockDimY;
    config.block[2] = parameters.blockDimZ;
    config.shared_bytes = parameters.sharedMemBytes;
    const CUresult code = check_launch(machine, *work.context, function.handle, config);
    if (code != CUDA_SUCCESS)
        return code;
    return pack_arguments(function, parameters.kernelParams, parameters.extra, work);
}

const Function* function_of(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    if (parameters.func != nullptr)
        return find_function(machine, to_handle(parameters.func));
    const Function* const function = find_function(machine, to_handle(parameters.kern));
    return function == nullptr || function->kernel == 0 ? nullptr : function;
}

} // namespace

CUresult read_kernel_parameters(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                                Work& work) {
    const Function* const function = function_of(machine, parameters);
    if (function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const bool named = parameters.func == nullptr && parameters.ctx != nullptr;
    const CUresult code = named ? check_context(machine, parameters.ctx, work.context)
                                : current_context(machine, work.context);
    return code == CUDA_SUCCESS ? read_launch(machine, parameters, *function, work) : code;
}

CUresult change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work) {
    const Function* const function = function_of(machine, parameters);
    if (function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (parameters.func == nullptr && parameters.ctx != nullptr)
        if (const CUresult code = check_context(machine, parameters.ctx, work.context);
            code != CUDA_SUCCESS)
            return code;
    return read_launch(machine, parameters, *function, work);
}

void write_kernel_parameters(Machine& machine, Node& node, CUDA_KERNEL_NODE_PARAMS_v2& out) {
    const Work& work = node.work;
    out = {};
    out.func = to_pointer<CUfunction>(work.function);
    if (const Function* function = find_function(machine, work.function);
        function != nullptr && work.by_kernel)
        out.kern = to_pointer<CUkernel>(function->kernel);
    out.ctx = to_pointer<CUcontext>(work.context->handle);
    out.gridDimX = work.config.grid[0];
    out.gridDimY = work.config.grid[1];
    out.gridDimZ = work.config.grid[2];
    out.blockDimX = work.config.block[0];
    out.blockDimY = work.config.block[1];
    out.blockDimZ = work.config.block[2];
    out.sharedMemBytes = work.config.shared_bytes;
    node.argument_pointers.clear();
    for (const std::size_t offset : work.argument_offsets)
        node.argument_pointers.push_back(node.work.arguments.data() + offset);
    out.kernelParams = node.argument_pointers.empty() ? nullptr : node.argument_pointers.data();
}

} // namespace gcx::sim
