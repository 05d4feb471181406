#include "core/graph.hpp"

#include "core/capture.hpp"
#include "core/give_back.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

constexpr uint32_t kDefaultExecutables = 16;

} // namespace

Graph::Graph(ContextCache& cache, const Driver& driver, CUgraph captured,
             const gcx_graph_params& params, const DeviceOf& device_of)
    : cache_(cache), driver_(driver), flags_(params.flags),
      movable_(std::make_unique<MovableGraph>(cache, driver, captured, device_of)),
      device_(movable_->all().device()), primary_(device_.hold_primary()), events_(device_),
      executables_(params.max_executables == 0 ? kDefaultExecutables : params.max_executables),
      part_count_(movable_->all().part_count()) {
}

void Graph::check_alive() const {
    if (!primary_.alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the graph died: the primary context of %s was reset. Destroy the handle, and "
                    "capture the graph again",
                    device_.label().c_str()));
}

void Graph::close() {
    executables_.destroy();
    movable_->destroy();
    events_.clear();
    primary_ = Device::PrimaryHold();
}

void Graph::launch(std::span<Stream* const> streams) {
    // An executable is made outside of the gate, which changes of leases wait for. If it is gone
    // again, or the lease went elsewhere in the meantime, it is made within.
    for (bool make_now = false;; make_now = true) {
        auto wanted = try_launch(streams, make_now);
        if (!wanted)
            break;
        make(wanted->key, std::move(wanted->places));
    }
    launches_.fetch_add(1, std::memory_order_relaxed);
}

void Graph::check_count(std::size_t count) const {
    const uint32_t parts = part_count_.load(std::memory_order_relaxed);
    if (count != parts)
        fail(GCX_ERROR_INVALID_VALUE,
             format("count is %zu; the graph has %u part%s, see gcx_graph_set_part", count, parts,
                    parts == 1 ? "" : "s"));
}

// Nothing if it was launched; else the executable that is missing.
std::optional<Graph::Wanted> Graph::try_launch(std::span<Stream* const> streams, bool make_now) {
    std::array<Gate*, GCX_MAX_GRAPH_PARTS> gates{};
    for (std::size_t i = 0; i < streams.size(); i++)
        gates[i] = streams[i]->gate();
    const Gate::Passes passes(std::span<Gate*>(gates).first(streams.size()));
    Lanes lanes;
    for (Stream* stream : streams)
        find_lane(lanes, *stream);
    lanes.key.fold();
    Pointer executable = executables_.find(lanes.key);
    if (executable == nullptr) {
        Wanted wanted = wanted_for(lanes, streams);
        if (!make_now)
            return wanted;
        executable = make(wanted.key, std::move(wanted.places));
    }
    if (submit(*executable, lanes))
        return std::nullopt;
    return wanted_for(lanes, streams); // A change has replaced it.
}

void Graph::find_lane(Lanes& lanes, Stream& stream) const {
    if (stream.device() != device_.ordinal())
        fail(GCX_ERROR_INVALID_DEVICE, format("the graph is of %s, the stream of device %d",
                                              device_.label().c_str(), stream.device()));
    Stream::Place& place = lanes.at[lanes.count++];
    place = stream.place();
    if (is_capturing(driver_, place.native) == true)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph: end the capture first, or add the captured graph to "
             "it as a child node (cuGraphAddChildGraphNode)");
    lanes.key.add(id_of(place));
}

uint64_t Graph::id_of(const Stream::Place& place) const {
    if (place.green != nullptr)
        return place.green->id;
    check_alive(); // which of those of gcx was asked already
    if (place.context == primary_.context())
        return 0;
    unsigned long long id = 0;
    GCX_CALL(driver_, cuCtxGetId, place.context, &id);
    return PartPlace::kForeign | id;
}

Graph::Wanted Graph::wanted_for(const Lanes& lanes, std::span<Stream* const> streams) {
    Wanted wanted{lanes.key, {}};
    for (uint32_t i = 0; i < lanes.key.count(); i++) {
        const Stream::Place& at = lanes.at[i];
        PartPlace& place = wanted.places.emplace_back();
        place.id = id_of(at);
        if (place.id == 0)
            continue;
        place.context = at.context;
        place.sm_count = streams[i]->sm_count(at);
        if (at.green != nullptr)
            place.hold = cache_.share(*at.green, ContextCache::Use::graph);
    }
    return wanted;
}

// Launches the executable unless a change has left it incomplete; says whether it did.
bool Graph::submit(Executable& executable, const Lanes& lanes) {
    const auto lock = executable.lock();
    if (!executable.usable)
        return false;
    if (!executable.captured_alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             "a context that the graph was captured in, and runs in with this stream, has been "
             "destroyed; launch the graph in a stream of a partition, or capture it again");
    launch_in(executable, lanes);
    return true;
}

// In the first stream, behind what the others have, which go on behind it.
void Graph::launch_in(Executable& executable, const Lanes& lanes) {
    CUstream const first = lanes.at[0].native;
    if (lanes.count == 1) {
        executable.launch(first);
        return;
    }
    for (uint32_t i = 1; i < lanes.count; i++) {
        const RelaxedCapture relaxed(driver_);
        CUstream const other = lanes.at[i].native;
        // One that has nothing to do is not waited for: what waits occupies one of the queues.
        if (other == first || driver_.cuStreamQuery(other) == CUDA_SUCCESS)
            continue;
        const EventPool::Event before = events_.take();
        GCX_CALL(driver_, cuEventRecord, before.native(), other);
        GCX_CALL(driver_, cuStreamWaitEvent, first, before.native(), CU_EVENT_WAIT_DEFAULT);
    }
    const EventPool::Event after = events_.take();
    executable.launch(first);
    CUresult result = give_back([&] { return driver_.cuEventRecord(after.native(), first); });
    for (uint32_t i = 1; i < lanes.count && result == CUDA_SUCCESS; i++) {
        CUstream const other = lanes.at[i].native;
        if (other != first)
            result = give_back([&] {
                return driver_.cuStreamWaitEvent(other, after.native(), CU_EVENT_WAIT_DEFAULT);
            });
    }
    if (result == CUDA_SUCCESS)
        return;
    // It runs, and can't be taken back: so the order is made here.
    const RelaxedCapture relaxed(driver_);
    GCX_CALL(driver_, cuStreamSynchronize, first);
}

void Graph::prepare(std::span<const ContextKey> contexts) {
    if (contexts.size() != 1)
        check_count(contexts.size());
    PlaceKey key;
    Places places;
    for (const ContextKey& wanted : contexts) {
        if (wanted.device != &device_)
            fail(GCX_ERROR_INVALID_DEVICE,
                 format("the graph is of %s, a resource of %s", device_.label().c_str(),
                        wanted.device->label().c_str()));
        PartPlace& place = places.emplace_back();
        place.hold = cache_.get(wanted, ContextCache::Sharing::shared, ContextCache::Use::graph);
        place.id = place.hold->id;
        place.context = place.hold->native;
        place.sm_count = place.hold->sm_count();
        key.add(place.id);
    }
    key.fold();
    places.erase(places.begin() + key.count(), places.end());
    make(key, std::move(places));
}

Graph::Pointer Graph::make(const PlaceKey& key, Places places) {
    const std::lock_guard lock(building_);
    if (Pointer made = executables_.find(key)) // by another thread, or before
        return made;
    check_alive();
    if (key.count() != 1)
        check_count(key.count()); // Parts may have been added since the caller's was checked.
    Pointer made = build(*movable_, key, std::move(places));
    executables_.add(made);
    return made;
}

Graph::Targets Graph::targets_of(const Places& places) {
    Targets targets;
    for (const PartPlace& place : places)
        targets.push_back({place.context, place.sm_count});
    return targets;
}

// The contexts that an executable with these targets has from the capture. The primary context is
// the graph's own.
std::vector<CapturedContext> Graph::captured_for(const MovableGraph& movable,
                                                 const Targets& targets) {
    std::vector<CapturedContext> captured;
    for (uint32_t i = 0; i < movable.nodes().size(); i++) {
        const GraphNode& node = movable.nodes()[i];
        if (!node.has_place() || node.captured == primary_.context() ||
            MovableGraph::context_for(node, targets) != node.captured)
            continue;
        const auto is_it = [&](const CapturedContext& one) { return one.native == node.captured; };
        if (std::any_of(captured.begin(), captured.end(), is_it))
            continue;
        const auto& contexts = movable.captured_in();
        const auto found = std::find_if(contexts.begin(), contexts.end(), is_it);
        if (found == contexts.end())
            continue;
        if (!found->alive(driver_))
            fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
                 describe_node(movable.nodes(), i) +
                     ", was captured in a context that has been destroyed since; launch the graph "
                     "in a stream of a partition, or capture it again");
        CapturedContext& one = captured.emplace_back();
        one.native = found->native;
        one.id = found->id;
        if (found->keep)
            one.keep = cache_.share(*found->keep, ContextCache::Use::graph);
    }
    return captured;
}

Graph::Pointer Graph::build(MovableGraph& movable, const PlaceKey& key, Places places) {
    const Targets targets = targets_of(places);
    movable.check_grids(targets);
    auto made = std::make_shared<Executable>(device_, key, std::move(places),
                                             captured_for(movable, targets));
    const ScopedCurrent current(driver_, primary_.context()); // instantiating asks for one
    made->take(movable.instantiate(targets, (flags_ & GCX_GRAPH_NODE_PRIORITIES) != 0));
    made_.fetch_add(1, std::memory_order_relaxed);
    return made;
}

void Graph::get_info(gcx_graph_info& info) const {
    const std::lock_guard lock(building_);
    const auto& nodes = movable_->nodes();
    info.device = device_.ordinal();
    info.flags = flags_;
    info.node_count = static_cast<uint32_t>(nodes.size());
    info.kernel_count = static_cast<uint32_t>(std::count_if(
        nodes.begin(), nodes.end(), [](const GraphNode& node) { return node.is_kernel(); }));
    info.part_count = part_count_.load(std::memory_order_relaxed);
    info.executables = static_cast<uint32_t>(executables_.all().size());
    info.max_executables = executables_.limit();
    info.launches = launches_.load(std::memory_order_relaxed);
    info.made = made_.load(std::memory_order_relaxed);
    info.evicted = executables_.evicted();
}

std::vector<gcx_graph_node> Graph::describe_nodes() const {
    const std::lock_guard lock(building_);
    std::vector<gcx_graph_node> described;
    for (const GraphNode& node : movable_->nodes()) {
        gcx_graph_node& one = described.emplace_back();
        one.kind = node.kind;
        one.parent = node.parent;
        one.part = node.part;
        if (!node.is_kernel())
            continue;
        const KernelLaunch& launch = node.kernel;
        const auto cluster = launch.cluster();
        one.cooperative = launch.cooperative() ? 1 : 0;
        std::copy(launch.grid.begin(), launch.grid.end(), one.grid);
        std::copy(launch.block.begin(), launch.block.end(), one.block);
        if (cluster[0] * cluster[1] * cluster[2] > 1)
            std::copy(cluster.begin(), cluster.end(), one.cluster);
        one.shared_bytes = launch.shared_bytes;
        one.blocks_per_sm = launch.blocks_per_sm;
        std::strncpy(one.name, launch.layout->name.c_str(), sizeof one.name - 1);
    }
    return described;
}

} // namespace gcx
