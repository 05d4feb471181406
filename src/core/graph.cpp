#include "core/graph.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {

Executable::Executable(Device& device, const TargetKey& its_key, PartTargets its_targets,
                       std::vector<CapturedContext> its_captured)
    : key(its_key), targets(std::move(its_targets)), captured(std::move(its_captured)),
      driver_(device.driver()), primary_(device.retain_primary()) {
}

bool Executable::captured_alive() const {
    return std::all_of(captured.begin(), captured.end(),
                       [&](const CapturedContext& one) { return one.alive(driver_); });
}

bool Executable::alive() const {
    return captured_alive() &&
           std::all_of(targets.begin(), targets.end(), [&](const PartTarget& target) {
               return (target.id & PartTarget::kExternal) == 0 ||
                      driver_.context_has_id(target.context, target.id & ~PartTarget::kExternal);
           });
}

Executable::~Executable() {
    // A destructor's caller cannot repeat a failed call, so a temporary failure gets a second try.
    for (const bool last : {false, true}) {
        try {
            destroy();
            return;
        } catch (const Error& error) {
            if (last)
                log::write(GCX_LOG_ERROR,
                           "an executable graph could not be destroyed: " + error.message);
        }
    }
}

void Executable::launch(CUstream stream) {
    GCX_CALL(driver_, cuGraphLaunch, native_, stream);
}

CUresult Executable::set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    return driver_.cuGraphExecKernelNodeSetParams(native_, node, &params);
}

void Executable::destroy() {
    // A reset of the device has destroyed it, and naming it could crash the process.
    if (native_ != nullptr && primary_.alive())
        GCX_CALL(driver_, cuGraphExecDestroy, native_);
    native_ = nullptr;
}

ExecutableCache::Pointer ExecutableCache::find(const TargetKey& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.executable->key == key;
    });
    if (found == entries_.end())
        return nullptr;
    found->last_used = ++clock_;
    return found->executable;
}

void ExecutableCache::add(Pointer executable) {
    Pointer evicted; // destroyed outside the lock
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= limit_) {
        const auto oldest =
            std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
                return a.last_used < b.last_used;
            });
        evicted = std::move(oldest->executable);
        *oldest = {std::move(executable), ++clock_};
        evicted_++;
    } else {
        entries_.push_back({std::move(executable), ++clock_});
    }
}

std::vector<ExecutableCache::Pointer> ExecutableCache::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Pointer> found;
    found.reserve(entries_.size());
    for (const Entry& entry : entries_)
        found.push_back(entry.executable);
    return found;
}

void ExecutableCache::replace(std::vector<Pointer> others) {
    std::vector<Entry> entries; // the former entries are destroyed outside the lock
    const std::lock_guard lock(mutex_);
    for (Pointer& other : others) {
        const auto former = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
            return entry.executable->key == other->key;
        });
        entries.push_back({std::move(other), former->last_used});
    }
    std::swap(entries_, entries);
}

void ExecutableCache::remove(const Pointer& one) {
    const std::lock_guard lock(mutex_); // the caller has a reference, so nothing is destroyed here
    std::erase_if(entries_, [&](const Entry& entry) { return entry.executable == one; });
}

uint64_t ExecutableCache::evicted() const {
    const std::lock_guard lock(mutex_);
    return evicted_;
}

void ExecutableCache::destroy() {
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) {
        entries_.back().executable->destroy();
        entries_.pop_back();
    }
}

namespace {

constexpr uint32_t kDefaultExecutables = 16;

} // namespace

Graph::Graph(ContextCache& cache, const Driver& driver, CUgraph captured,
             const gcx_graph_params& params, const DeviceOf& device_of)
    : cache_(cache), driver_(driver), flags_(params.flags),
      movable_(std::make_unique<MovableGraph>(cache, driver, captured, device_of)),
      device_(movable_->all().device()), primary_(device_.retain_primary()), events_(device_),
      executables_(params.max_executables == 0 ? kDefaultExecutables : params.max_executables),
      part_count_(movable_->all().part_count()) {
}

void Graph::check_alive() const {
    if (!primary_.alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             format("the graph died: the primary context of %s was reset; destroy the handle and "
                    "capture the graph again",
                    device_.label().c_str()));
}

void Graph::close() {
    executables_.destroy();
    movable_->destroy();
    events_.clear();
    primary_ = Device::PrimaryContextRef();
}

void Graph::launch(std::span<Stream* const> streams) {
    // The executable is made outside the submit lock, because resizes wait for that. If it was
    // evicted or a lease was resized in the meantime, the second round makes it inside.
    for (bool make_now = false;; make_now = true) {
        auto missing = try_launch(streams, make_now);
        if (!missing)
            break;
        make(missing->key, std::move(missing->targets));
    }
    launches_.fetch_add(1, std::memory_order_relaxed);
}

void Graph::check_count(std::size_t count) const {
    const uint32_t parts = part_count_.load(std::memory_order_relaxed);
    if (count != parts)
        fail(GCX_ERROR_INVALID_VALUE,
             format("count is %zu and the graph has %u part%s; pass 1 for all parts together, or "
                    "the number of parts",
                    count, parts, parts == 1 ? "" : "s"));
}

// Returns nothing if the graph was launched, or the missing executable.
std::optional<Graph::MissingExecutable> Graph::try_launch(std::span<Stream* const> streams,
                                                          bool make_now) {
    std::array<SubmitLock*, GCX_MAX_GRAPH_PARTS> locks{};
    for (std::size_t i = 0; i < streams.size(); i++)
        locks[i] = streams[i]->submit_lock();
    const SubmitLock::Shared submitting(std::span<SubmitLock*>(locks).first(streams.size()));
    LaunchTargets launch_targets;
    for (Stream* stream : streams)
        add_target(launch_targets, *stream);
    launch_targets.key.fold();
    Pointer executable = executables_.find(launch_targets.key);
    if (executable == nullptr) {
        MissingExecutable missing = describe_missing(launch_targets, streams);
        if (!make_now)
            return missing;
        executable = make(missing.key, std::move(missing.targets));
    }
    if (submit(*executable, launch_targets))
        return std::nullopt;
    return describe_missing(launch_targets, streams); // a change has replaced it
}

void Graph::add_target(LaunchTargets& launch_targets, Stream& stream) const {
    if (stream.device() != device_.ordinal())
        fail(GCX_ERROR_INVALID_DEVICE, format("the graph is of %s, the stream of device %d",
                                              device_.label().c_str(), stream.device()));
    Stream::Target& target = launch_targets.at[launch_targets.count++];
    target = stream.target();
    if (is_capturing(driver_, target.native) == true)
        fail(GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED,
             "the stream is capturing a graph: end the capture first, or add the captured graph to "
             "it as a child node (cuGraphAddChildGraphNode)");
    launch_targets.key.add(id_of(target));
}

uint64_t Graph::id_of(const Stream::Target& target) const {
    if (target.green != nullptr)
        return target.green->id;
    check_alive(); // the caller has checked those of gcx
    if (target.context == primary_.context())
        return 0;
    unsigned long long id = 0;
    const CUresult result = driver_.cuCtxGetId(target.context, &id);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT)
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             "the stream's context, which gcx did not create, has been destroyed; launch the graph "
             "in another stream");
    driver_.check(result, "cuCtxGetId");
    return PartTarget::kExternal | id;
}

Graph::MissingExecutable Graph::describe_missing(const LaunchTargets& launch_targets,
                                                 std::span<Stream* const> streams) {
    MissingExecutable missing{launch_targets.key, {}};
    for (uint32_t i = 0; i < launch_targets.key.count(); i++) {
        const Stream::Target& at = launch_targets.at[i];
        PartTarget& target = missing.targets.emplace_back();
        target.id = id_of(at);
        if (target.id == 0)
            continue;
        target.context = at.context;
        target.sm_count = streams[i]->sm_count(at);
        if (at.green != nullptr)
            target.keep_alive = cache_.share(*at.green, ContextCache::Use::graph);
    }
    return missing;
}

// Launches the executable. Returns false if a change left it incomplete.
bool Graph::submit(Executable& executable, const LaunchTargets& launch_targets) {
    const auto lock = executable.lock();
    if (!executable.usable)
        return false;
    if (!executable.captured_alive())
        fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
             "a context that the graph was captured in, and runs in with this stream, has been "
             "destroyed; launch the graph in a stream of a partition, or capture it again");
    launch_in(executable, launch_targets);
    return true;
}

// Launches in the first stream, after the work of the other streams. Their later work waits for the
// graph.
void Graph::launch_in(Executable& executable, const LaunchTargets& launch_targets) {
    CUstream const first = launch_targets.at[0].native;
    if (launch_targets.count == 1) {
        executable.launch(first);
        return;
    }
    for (uint32_t i = 1; i < launch_targets.count; i++) {
        const RelaxedCapture relaxed(driver_);
        CUstream const other = launch_targets.at[i].native;
        // An idle stream needs no wait, and each waiting stream occupies one of the device's
        // queues.
        if (other == first || driver_.cuStreamQuery(other) == CUDA_SUCCESS)
            continue;
        const EventPool::Event before = events_.take();
        GCX_CALL(driver_, cuEventRecord, before.native(), other);
        GCX_CALL(driver_, cuStreamWaitEvent, first, before.native(), CU_EVENT_WAIT_DEFAULT);
    }
    const EventPool::Event after = events_.take();
    executable.launch(first);
    CUresult result = retry_once([&] { return driver_.cuEventRecord(after.native(), first); });
    for (uint32_t i = 1; i < launch_targets.count && result == CUDA_SUCCESS; i++) {
        CUstream const other = launch_targets.at[i].native;
        if (other != first)
            result = retry_once([&] {
                return driver_.cuStreamWaitEvent(other, after.native(), CU_EVENT_WAIT_DEFAULT);
            });
    }
    if (result == CUDA_SUCCESS)
        return;
    // The graph runs and cannot be cancelled, so this thread waits instead of the streams.
    const RelaxedCapture relaxed(driver_);
    GCX_CALL(driver_, cuStreamSynchronize, first);
}

void Graph::prepare(std::span<const ContextKey> contexts) {
    if (contexts.size() != 1)
        check_count(contexts.size());
    TargetKey key;
    PartTargets targets;
    for (const ContextKey& context_key : contexts) { // before any context is made
        if (context_key.device != &device_)
            fail(GCX_ERROR_INVALID_DEVICE,
                 format("the graph is of %s, a resource of %s", device_.label().c_str(),
                        context_key.device->label().c_str()));
    }
    for (const ContextKey& context_key : contexts) {
        PartTarget& target = targets.emplace_back();
        target.keep_alive =
            cache_.get(context_key, ContextCache::Sharing::shared, ContextCache::Use::graph);
        target.id = target.keep_alive->id;
        target.context = target.keep_alive->native;
        target.sm_count = target.keep_alive->sm_count();
        key.add(target.id);
    }
    key.fold();
    targets.erase(targets.begin() + key.count(), targets.end());
    make(key, std::move(targets));
}

Graph::Pointer Graph::make(const TargetKey& key, PartTargets targets) {
    const std::lock_guard lock(building_);
    if (Pointer executable = executables_.find(key)) // another thread may have built it
        return executable;
    check_alive();
    if (key.count() != 1)
        check_count(key.count()); // parts may have been added since the caller checked
    Pointer executable = build(*movable_, key, std::move(targets));
    executables_.add(executable);
    return executable;
}

// Returns the captured contexts that an executable with these targets runs in. The primary context
// is not among them, because the graph keeps it alive.
std::vector<CapturedContext> Graph::captured_for(const MovableGraph& movable,
                                                 std::span<const PartTarget> targets) {
    std::vector<CapturedContext> captured;
    for (uint32_t i = 0; i < movable.nodes().size(); i++) {
        const GraphNode& node = movable.nodes()[i];
        if (!node.has_context() || node.captured == primary_.context() ||
            MovableGraph::target_of(node, targets).id != 0)
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

Graph::Pointer Graph::build(MovableGraph& movable, const TargetKey& key, PartTargets targets) {
    movable.check_grids(targets);
    std::vector<CapturedContext> captured = captured_for(movable, targets);
    auto executable =
        std::make_shared<Executable>(device_, key, std::move(targets), std::move(captured));
    // instantiation requires a current context
    const ScopedCurrent current(driver_, primary_.context());
    executable->set_native(
        movable.instantiate(executable->targets, (flags_ & GCX_GRAPH_NODE_PRIORITIES) != 0));
    built_.fetch_add(1, std::memory_order_relaxed);
    return executable;
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
    info.instantiated = built_.load(std::memory_order_relaxed);
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

namespace {

// The driver does not report these nodes' parameters, so they may differ.
bool has_hidden_parameters(const GraphNode& node) {
    return node.kind >= GCX_GRAPH_NODE_WAIT_EVENT;
}

[[noreturn]] void refuse_update(const std::string& where) {
    fail(GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
         "the captured graph differs: " + where + "; make a new graph object of it");
}

void check_same_shape(const GraphNodes& now, const GraphNodes& other) {
    if (&now.device() != &other.device())
        refuse_update(format("it is of %s, not %s", other.device().label().c_str(),
                             now.device().label().c_str()));
    if (now.nodes.size() != other.nodes.size())
        refuse_update(format("it has %zu nodes, not %zu", other.nodes.size(), now.nodes.size()));
    for (uint32_t i = 0; i < now.nodes.size(); i++) {
        if (now.nodes[i].kind != other.nodes[i].kind ||
            now.nodes[i].parent != other.nodes[i].parent)
            refuse_update("it has " + describe_node(other.nodes, i) + ", instead of " +
                          describe_node(now.nodes, i));
    }
    for (std::size_t i = 0; i < now.levels.size(); i++) {
        if (now.levels[i].edges != other.levels[i].edges)
            refuse_update("the order of its nodes differs");
    }
}

// Returns whether the graphs differ only in kernel parameters.
bool differs_in_parameters_alone(const GraphNodes& now, const GraphNodes& other) {
    // A context at the address of a destroyed one has another id.
    const bool same_contexts =
        std::equal(now.captured_in.begin(), now.captured_in.end(), other.captured_in.begin(),
                   other.captured_in.end(), [](const CapturedContext& a, const CapturedContext& b) {
                       return a.native == b.native && a.id == b.id;
                   });
    return same_contexts && std::equal(now.nodes.begin(), now.nodes.end(), other.nodes.begin(),
                                       [](const GraphNode& a, const GraphNode& b) {
                                           return !has_hidden_parameters(a) &&
                                                  a.parameters == b.parameters &&
                                                  a.captured == b.captured &&
                                                  a.kernel.attributes == b.kernel.attributes;
                                       });
}

} // namespace

void Graph::set_part(std::span<const uint32_t> numbers, uint32_t part) {
    const std::lock_guard lock(building_);
    GraphNodes& nodes = movable_->all();
    for (const uint32_t number : numbers) {
        if (number >= nodes.nodes.size())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("there is no node %u; the graph has %zu, counted from 0", number,
                        nodes.nodes.size()));
    }
    if (part > nodes.part_count() || part >= GCX_MAX_GRAPH_PARTS)
        fail(GCX_ERROR_INVALID_VALUE,
             format("part is %u; the graph has %u parts, counted from 0, so that the next is %u; "
                    "there can be %u",
                    part, nodes.part_count(), nodes.part_count(), GCX_MAX_GRAPH_PARTS));
    if (numbers.empty() && part == nodes.part_count())
        fail(GCX_ERROR_INVALID_VALUE,
             format("no nodes for part %u, which the graph doesn't have yet: give a new part at "
                    "least one node",
                    part));
    if (numbers.empty())
        return;                                                  // keeps the executables
    const std::vector<Pointer> executables = executables_.all(); // may throw, before any change
    nodes.set_part(numbers, part);
    part_count_.store(nodes.part_count(), std::memory_order_relaxed);
    for (const Pointer& executable : executables) {
        if (executable->key.count() > 1)
            executables_.remove(executable);
    }
}

namespace {

void check_sizes(const KernelLaunch& launch) {
    const auto& [x, y, z] = launch.block;
    if (std::count(launch.grid.begin(), launch.grid.end(), 0U) != 0 || x == 0 || y == 0 || z == 0)
        fail(GCX_ERROR_INVALID_VALUE, "params->grid and params->block have a 0; "
                                      "gcx_graph_get_nodes returns the current values");
    constexpr uint32_t kMaxThreads = 1024; // of a block, on all GPUs
    if (x > kMaxThreads || y > kMaxThreads || uint64_t{x} * y * z > kMaxThreads)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->block is %u x %u x %u; a block has at most %u threads", x, y, z,
                    kMaxThreads));
}

} // namespace

KernelLaunch Graph::changed(uint32_t number, const gcx_kernel_params& params) {
    GraphNodes& all = movable_->all();
    if (number >= all.nodes.size() || !all.nodes[number].is_kernel())
        fail(GCX_ERROR_INVALID_VALUE,
             number < all.nodes.size()
                 ? describe_node(all.nodes, number) + ", launches no kernel"
                 : format("there is no node %u; the graph has %zu, counted from 0", number,
                          all.nodes.size()));
    KernelLaunch launch = all.nodes[number].kernel;
    std::copy_n(params.grid, 3, launch.grid.begin());
    std::copy_n(params.block, 3, launch.block.begin());
    launch.shared_bytes = params.shared_bytes;
    if (params.arguments != nullptr) {
        if (params.argument_bytes < launch.arguments.size())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->argument_bytes is %llu; the arguments of %s are %zu bytes",
                        static_cast<unsigned long long>(params.argument_bytes),
                        launch.layout->name.c_str(), launch.arguments.size()));
        std::copy_n(static_cast<const std::byte*>(params.arguments), launch.arguments.size(),
                    launch.arguments.begin());
    }
    check_sizes(launch);
    const ScopedCurrent current(driver_, primary_.context());
    launch.blocks_per_sm = all.blocks_per_sm(launch);
    return launch;
}

void Graph::set_kernel(uint32_t number, const gcx_kernel_params& params) {
    const std::lock_guard lock(building_);
    std::vector<Change> changes;
    changes.push_back({number, changed(number, params)});
    apply(std::move(changes));
}

void Graph::update(CUgraph captured, const DeviceOf& device_of) {
    const std::lock_guard lock(building_);
    auto other = std::make_unique<MovableGraph>(cache_, driver_, captured, device_of);
    GraphNodes& now = movable_->all();
    check_same_shape(now, other->all());
    if (differs_in_parameters_alone(now, other->all())) {
        std::vector<Change> changes;
        for (uint32_t i = 0; i < now.nodes.size(); i++) {
            KernelLaunch& launch = other->all().nodes[i].kernel;
            if (now.nodes[i].is_kernel() && !now.nodes[i].kernel.same_parameters(launch))
                changes.push_back({i, std::move(launch)});
        }
        if (!changes.empty())
            apply(std::move(changes));
        return;
    }
    other->all().copy_parts(now);
    executables_.replace(build_all(*other, live_executables()));
    std::swap(movable_, other);
}

// Returns the executables whose contexts all exist. Removes the others.
std::vector<Graph::Pointer> Graph::live_executables() {
    std::vector<Pointer> all = executables_.all();
    std::erase_if(all, [&](const Pointer& executable) {
        const bool alive = executable->alive();
        if (!alive)
            executables_.remove(executable);
        return !alive;
    });
    return all;
}

std::vector<Graph::Pointer> Graph::build_all(MovableGraph& movable,
                                             const std::vector<Pointer>& like) {
    std::vector<Pointer> built;
    for (const Pointer& former : like) {
        PartTargets targets;
        for (const PartTarget& target : former->targets) {
            PartTarget& same = targets.emplace_back();
            same.id = target.id;
            same.context = target.context;
            same.sm_count = target.sm_count;
            if (target.keep_alive)
                same.keep_alive = cache_.share(*target.keep_alive, ContextCache::Use::graph);
        }
        built.push_back(build(movable, former->key, std::move(targets)));
    }
    return built;
}

// Changes all executables or none. On failure, removes the executables that were changed; they are
// made again on the next launch.
void Graph::apply(std::vector<Change> changes) {
    const auto exchange = [&] {
        for (Change& change : changes)
            change.launch = movable_->exchange_kernel(change.number, std::move(change.launch));
    };
    exchange();
    std::vector<Pointer> touched;
    try {
        const std::vector<Pointer> executables = live_executables();
        for (const Pointer& executable : executables)
            movable_->check_grids(executable->targets);
        if (executables.empty())
            check_parameters(changes);
        if (!set_in_place(executables, changes, touched))
            executables_.replace(build_all(*movable_, executables));
    } catch (...) {
        exchange();
        for (const Pointer& executable : touched)
            executables_.remove(executable);
        throw;
    }
}

// Lets the driver check the changed kernels where there is no executable to change.
void Graph::check_parameters(const std::vector<Change>& changes) {
    std::vector<MovableGraph::NodeTarget> where;
    where.reserve(changes.size());
    for (const Change& change : changes) {
        CUcontext context = movable_->nodes()[change.number].captured;
        for (const CapturedContext& captured : movable_->captured_in()) {
            if (captured.native == context && !captured.alive(driver_))
                context = primary_.context();
        }
        where.push_back({change.number, context});
    }
    movable_->move(where);
}

// Returns false if the driver cannot: if a kernel's code changes, or in child graphs, whose nodes
// in the executable it does not know.
bool Graph::set_in_place(const std::vector<Pointer>& executables,
                         const std::vector<Change>& changes, std::vector<Pointer>& touched) {
    const auto& nodes = movable_->nodes();
    for (const Change& change : changes) {
        const GraphNode& node = nodes[change.number];
        if (node.level != 0 || !node.kernel.same_code(change.launch))
            return false;
    }
    KernelParams params;
    std::vector<std::unique_lock<std::mutex>> locks; // held until all are changed
    locks.reserve(executables.size());
    for (const Pointer& executable : executables)
        locks.push_back(executable->lock());
    for (const Pointer& executable : executables) {
        touched.push_back(executable);
        executable->usable = false;
        CUresult result = CUDA_SUCCESS;
        std::vector<MovableGraph::NodeTarget> node_targets;
        node_targets.reserve(changes.size());
        for (const Change& change : changes)
            node_targets.push_back({change.number, MovableGraph::context_for(nodes[change.number],
                                                                             executable->targets)});
        movable_->in_contexts(node_targets, [&](const MovableGraph::NodeTarget& one) {
            const GraphNode& node = nodes[one.number];
            if (result == CUDA_SUCCESS)
                result = executable->set_kernel(node.native, *params.of(node.kernel, one.context));
        });
        if (result == CUDA_SUCCESS)
            continue;
        if (log::enabled(GCX_LOG_DEBUG))
            log::write(GCX_LOG_DEBUG, driver_.describe(result, "cuGraphExecKernelNodeSetParams") +
                                          "; the executables are recreated");
        return false;
    }
    for (const Pointer& executable : executables)
        executable->usable = true;
    return true;
}

} // namespace gcx
