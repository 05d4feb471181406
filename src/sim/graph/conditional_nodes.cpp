// Conditional nodes, by the header's text. No kernel of the simulation sets a condition: it has the
// value it was made with, and what a loop repeats runs once.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

namespace gcx::sim {
namespace {

void check_size(const CUDA_CONDITIONAL_NODE_PARAMS& p) {
    switch (static_cast<int>(p.type)) {
    case CU_GRAPH_COND_TYPE_IF:
        return require(p.size == 1 || p.size == 2);
    case CU_GRAPH_COND_TYPE_WHILE:
        return require(p.size == 1);
    case 2: // CU_GRAPH_COND_TYPE_SWITCH, of 12.8
        return require(p.size >= 1);
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

} // namespace

Node& add_conditional(Machine& machine, const NodePlace& place,
                      CUDA_CONDITIONAL_NODE_PARAMS& parameters) {
    check_size(parameters);
    Conditional& condition =
        known(find(machine.conditionals, to_pointer<void*>(parameters.handle)));
    require(!condition.used && condition.graph == to_handle(place.graph) &&
            condition.context == &context_or_current(machine, parameters.ctx));
    Work work;
    work.kind = Work::Kind::Conditional;
    work.context = condition.context;
    Node& node = add_node(machine, place, std::move(work));
    condition.used = true;
    for (unsigned i = 0; i < parameters.size; i++) {
        Graph& body = new_graph(machine);
        body.hidden = true;
        node.work.bodies.push_back(body.handle);
        node.body_pointers.push_back(to_pointer<CUgraph>(body.handle));
    }
    parameters.phGraph_out = node.body_pointers.data();
    node.work.parameters = to_bytes(parameters);
    return node;
}

const Graph* chosen_body(Machine& machine, const Work& work) {
    const auto p = parameters_of<CUDA_CONDITIONAL_NODE_PARAMS>(work, Work::Kind::Conditional);
    const Conditional* const condition = find(machine.conditionals, to_pointer<void*>(p.handle));
    const unsigned value = condition == nullptr ? 0 : condition->value;
    // The first of an IF or a WHILE is for what isn't 0, the second of an IF for 0.
    const bool by_number = static_cast<int>(p.type) == 2;
    const std::size_t index = by_number ? value : value != 0 ? 0 : 1;
    return index < work.bodies.size() ? machine.graphs[work.bodies[index]].get() : nullptr;
}

GCX_SIM_API(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph graph,
            CUcontext context, unsigned value, unsigned flags) {
    GCX_SIM_BODY({
        require(out != nullptr && flags <= CU_GRAPH_COND_ASSIGN_DEFAULT);
        const Graph& owner = graph_of(machine, graph);
        Context& place = context_or_current(machine, context);
        Conditional& made = create(machine.conditionals);
        made.graph = owner.handle;
        made.context = &place;
        made.value = flags == CU_GRAPH_COND_ASSIGN_DEFAULT ? value : 0;
        *out = made.handle;
    });
}

} // namespace gcx::sim
