// Part of gcx.hpp: graphs, captured once and launched on any SMs.
//
//     const gcx::graph step(captured);       // copies a CUgraph or cudaGraph_t
//     step.prepare(large);                   // optional: ahead of the first launch
//     step.launch(decode);                   // on the SMs that the stream has now
//
// See gcx.h, Graphs, for parts and for what can be moved.
#pragma once

#include "cache.hpp"
#include "error.hpp"
#include "generated/raw.hpp"
#include "library.hpp"
#include "objects.hpp"
#include "owner.hpp"
#include "resource.hpp"
#include "view.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gcx {

// gcx_graph_params. From C++20 on: {.max_executables = 64}.
struct graph_params {
    graph_flags flags = graph_flags::none;
    uint32_t max_executables = 0; // cached; 0: 16
};

// gcx_kernel_params, but for the arguments: {{blocks}, {threads}}.
struct dimensions {
    uint32_t x = 1;
    uint32_t y = 1;
    uint32_t z = 1;
};
struct kernel_params {
    dimensions grid;  // blocks
    dimensions block; // threads
    uint32_t shared_bytes = 0;

    // Returns the parameters of a node of gcx::graph::nodes().
    static kernel_params of(const gcx_graph_node& node) noexcept {
        return {{node.grid[0], node.grid[1], node.grid[2]},
                {node.block[0], node.block[1], node.block[2]},
                node.shared_bytes};
    }
};

class graph : public detail::owner<gcx_graph, gcx_graph_destroy> {
  public:
    graph() noexcept = default;
    // gcx_graph_create: copies the captured graph.
    explicit graph(CUgraph_st* captured, const graph_params& params = {}) {
        gcx_graph_params raw = GCX_GRAPH_PARAMS_INIT;
        raw.flags = static_cast<uint32_t>(params.flags);
        raw.max_executables = params.max_executables;
        check(gcx_graph_create(captured, &raw, receive()));
    }
    // Takes ownership of a handle of gcx.h.
    static graph adopt(gcx_graph owned) noexcept {
        graph adopted;
        *adopted.receive() = owned;
        return adopted;
    }

    // gcx_graph_launch: all parts on the SMs that one stream has now, or each part on the SMs of its
    // own stream.
    void launch(const stream& in) const {
        gcx_stream const one = in.handle();
        check(gcx_graph_launch(handle(), &one, 1));
    }
    void launch(view<stream_ref> streams) const {
        check(gcx_graph_launch(handle(), reinterpret_cast<const gcx_stream*>(streams.data()),
                               detail::size_for_c(streams.size())));
    }

    // gcx_graph_prepare: for one resource for all parts, or one for each part.
    void prepare(view<resource> resources, prepare_flags flags = prepare_flags::none) const {
        check(gcx_graph_prepare(handle(), reinterpret_cast<const gcx_resource*>(resources.data()),
                                detail::size_for_c(resources.size()),
                                static_cast<uint32_t>(flags)));
    }

    // gcx_graph_set_part
    void set_part(view<uint32_t> nodes, uint32_t part) const {
        check(gcx_graph_set_part(handle(), nodes.data(), detail::size_for_c(nodes.size()), part));
    }

    // gcx_graph_set_kernel: with the present arguments, with those of a struct, or with bytes.
    void set_kernel(uint32_t node, const kernel_params& params) const {
        set_kernel(node, params, nullptr, 0);
    }
    template <class Arguments>
    void set_kernel(uint32_t node, const kernel_params& params, const Arguments& arguments) const {
        static_assert(std::is_class_v<Arguments> && std::is_trivially_copyable_v<Arguments>,
                      "a struct of all arguments of the kernel, as C would lay it out");
        set_kernel(node, params, &arguments, sizeof arguments);
    }
    void set_kernel(uint32_t node, const kernel_params& params, const void* arguments,
                    std::size_t argument_bytes) const {
        gcx_kernel_params raw = GCX_KERNEL_PARAMS_INIT;
        raw.shared_bytes = params.shared_bytes;
        put(params.grid, raw.grid);
        put(params.block, raw.block);
        raw.arguments = arguments;
        raw.argument_bytes = argument_bytes;
        check(gcx_graph_set_kernel(handle(), node, &raw));
    }

    // gcx_graph_update
    void update(CUgraph_st* captured) const { check(gcx_graph_update(handle(), captured)); }

    // gcx_graph_get_info, and some of its fields.
    gcx_graph_info info() const { return raw::graph_get_info(handle()); }
    int32_t device() const { return info().device; }
    uint32_t part_count() const { return info().part_count; }

    // gcx_graph_get_nodes
    std::vector<gcx_graph_node> nodes() const { return raw::graph_get_nodes(handle()); }

  private:
    static void put(const dimensions& from, uint32_t (&into)[3]) noexcept {
        into[0] = from.x;
        into[1] = from.y;
        into[2] = from.z;
    }
};

} // namespace gcx
