// Nodes that allocate and free memory.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

namespace gcx::sim {

// The header: the address is known at once and stays. Assumed: its memory is there from then on, as
// long as the graph.
Node& add_allocation(Machine& machine, const NodePlace& place, const CUmemPoolProps& properties,
                     std::size_t bytes, CUdeviceptr& address) {
    require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && bytes != 0 &&
            properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE);
    Device& device = known(machine.device(properties.location.id));
    Context& context = current_context(machine);
    edges_from(graph_of(machine, place.graph), place.dependencies, place.edges, place.count);
    require(place.out != nullptr);
    Work work;
    work.kind = Work::Kind::MemoryAlloc;
    work.owned_address = allocate(machine, device, context, bytes, MemoryKind::Device).address;
    address = work.owned_address;
    return add_node(machine, place, std::move(work));
}

Node& add_free(Machine& machine, const NodePlace& place, CUdeviceptr address) {
    require(find_allocation(machine, address) != nullptr);
    Work work;
    work.kind = Work::Kind::MemoryFree;
    work.parameters = to_bytes(address);
    return add_node(machine, place, std::move(work));
}

} // namespace gcx::sim
