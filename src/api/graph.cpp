// Graphs, which are captured once and launched on the SMs of any stream.

#include "api/library.hpp"
#include "api/result.hpp"

#include <algorithm>
#include <array>
#include <vector>

using namespace gcx;

namespace {

Graph::DeviceOf device_of(Library& lib) {
    return [&lib](int32_t ordinal) -> Device& { return lib.device(ordinal); };
}

gcx_graph_params graph_params(const gcx_graph_params* params) {
    const auto options = params_or_defaults(params, GCX_GRAPH_PARAMS_INIT);
    if ((options.flags & ~GCX_GRAPH_NODE_PRIORITIES) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->flags is %#x; there is only GCX_GRAPH_NODE_PRIORITIES (1)",
                    options.flags));
    return options;
}

bool for_leases(uint32_t flags) {
    if ((flags & ~GCX_PREPARE_FOR_LEASES) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("flags is %#x; there is only GCX_PREPARE_FOR_LEASES (1)", flags));
    return flags != 0;
}

void launch_parts(Library& lib, gcx_graph graph, std::span<const gcx_stream> streams) {
    const auto its = pin_alive(lib.graphs, graph);
    its->check_count(streams.size());
    std::array<std::optional<HandleTable<Stream>::Pin>, GCX_MAX_GRAPH_PARTS> pins;
    std::array<Stream*, GCX_MAX_GRAPH_PARTS> where{};
    for (std::size_t i = 0; i < streams.size(); i++)
        where[i] = &*pins[i].emplace(pin_alive(lib.streams, streams[i]));
    its->launch(std::span<Stream* const>(where).first(streams.size()));
}

void check_part_count(uint32_t count) {
    if (count == 0 || count > GCX_MAX_GRAPH_PARTS)
        fail(GCX_ERROR_INVALID_VALUE,
             format("count is %u; a graph has 1 to %u parts", count, GCX_MAX_GRAPH_PARTS));
}

} // namespace

gcx_result gcx_graph_create(struct CUgraph_st* captured, const gcx_graph_params* params,
                            gcx_graph* graph) {
    GCX_BODY({
        not_null(captured, "captured");
        not_null(graph, "graph");
        const gcx_graph_params options = graph_params(params);
        Library& lib = library();
        auto object =
            std::make_unique<Graph>(lib.cache, lib.driver, captured, options, device_of(lib));
        *graph = handle_of<gcx_graph>(lib.graphs.add(std::move(object)));
    });
}

gcx_result gcx_graph_destroy(gcx_graph graph) {
    GCX_BODY({
        if (Library* const lib = library_to_destroy_in(); lib != nullptr)
            lib->graphs.close(lib->graphs.pin(graph));
    });
}

gcx_result gcx_graph_launch(gcx_graph graph, const gcx_stream* streams, uint32_t count) {
    GCX_BODY({
        check_part_count(count);
        not_null(streams, "streams");
        Library& lib = library();
        if (count != 1) {
            launch_parts(lib, graph, {streams, count});
            return;
        }
        const auto its = lib.graphs.pin(graph); // launch() checks whether it is alive, if needed
        const auto where = pin_alive(lib.streams, streams[0]);
        Stream* const one[] = {&*where};
        its->launch(one);
    });
}

gcx_result gcx_graph_prepare(gcx_graph graph, const gcx_resource* resources, uint32_t count,
                             uint32_t flags) {
    GCX_BODY({
        check_part_count(count);
        not_null(resources, "resources");
        const bool leased = for_leases(flags);
        Library& lib = library();
        const auto its = pin_alive(lib.graphs, graph);
        std::vector<ContextKey> contexts;
        for (uint32_t i = 0; i < count; i++) {
            const SmResource sms = lib.sm_resource(&resources[i]);
            contexts.push_back(
                {sms.device, sms.family, sms.set,
                 leased ? LeaseManager::workqueue(*sms.device) : std::optional<Workqueue>()});
            check_has_sms(contexts.back());
        }
        its->prepare(contexts);
    });
}

gcx_result gcx_graph_set_part(gcx_graph graph, const uint32_t* nodes, uint32_t count,
                              uint32_t part) {
    GCX_BODY({
        if (count != 0)
            not_null(nodes, "nodes");
        const auto its = pin_alive(library().graphs, graph);
        its->set_part({nodes, count}, part);
    });
}

gcx_result gcx_graph_set_kernel(gcx_graph graph, uint32_t node, const gcx_kernel_params* params) {
    GCX_BODY({
        const gcx_kernel_params options = read_struct(params, "params");
        const auto its = pin_alive(library().graphs, graph);
        its->set_kernel(node, options);
    });
}

gcx_result gcx_graph_update(gcx_graph graph, struct CUgraph_st* captured) {
    GCX_BODY({
        not_null(captured, "captured");
        Library& lib = library();
        const auto its = pin_alive(lib.graphs, graph);
        its->update(captured, device_of(lib));
    });
}

gcx_result gcx_graph_get_info(gcx_graph graph, gcx_graph_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        const auto its = pin_alive(library().graphs, graph);
        its->get_info(*out);
        out.write();
    });
}

gcx_result gcx_graph_get_nodes(gcx_graph graph, gcx_graph_node* nodes, uint32_t capacity,
                               uint32_t* count) {
    GCX_BODY({
        check_list(nodes, "nodes", capacity, count);
        const auto its = pin_alive(library().graphs, graph);
        const auto described = its->describe_nodes();
        give_list(described, "nodes", nodes, capacity, count);
    });
}
