// The state of the simulated machine. The lock of entry.hpp guards all of it.
#pragma once

#include "driver/cuda_api.h"
#include "gcx_sim.h"
#include "sim/partition/sm_set.hpp"
#include "sim/profiles/driver_version.hpp"
#include "sim/profiles/profile.hpp"

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gcx::sim {

// Handles are numbers, not addresses, and are never reused, so that a stale handle is recognized.
using Handle = uint64_t;
Handle new_handle();

template <class Pointer>
Pointer to_pointer(Handle handle) {
    return std::bit_cast<Pointer>(handle);
}

template <class Pointer>
Handle to_handle(Pointer pointer) {
    return std::bit_cast<Handle>(pointer);
}

// Stores parameters that the simulation only returns again.
template <class T>
std::string to_bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
using Table = std::unordered_map<Handle, std::unique_ptr<T>>;

template <class T, class Pointer>
T* find(const Table<T>& table, Pointer handle) {
    const auto found = table.find(to_handle(handle));
    return found == table.end() ? nullptr : found->second.get();
}

// Creates an object in the table, with a new handle.
template <class T>
T& create(Table<T>& table) {
    auto made = std::make_unique<T>();
    made->handle = new_handle();
    T& object = *made;
    table[object.handle] = std::move(made);
    return object;
}

struct Machine;
struct Context;
struct Graph;
struct Capture;

// A host function of the program, from its submission until it has returned. Also a stream's wait
// for a value in memory, which returns when the value is there.
struct HostCall {
    std::function<void()> function;
    uint64_t planned_ns = 0; // when it begins if no host function before it takes time
    uint64_t delay_ns = 0;   // how much later it returned
    bool returned = false;
};

// When something is done: at a time of the clock, and not before certain host functions have
// returned. entry/clock.hpp has its functions.
struct Moment {
    struct After {
        std::shared_ptr<const HostCall> call;
        uint64_t ns = 0; // the time if the call returns when planned; its delay comes on top
    };
    uint64_t ns = 0;
    std::vector<After> after;
};

// A stream's wait for a value, from its begin on.
struct ValueWait {
    std::shared_ptr<HostCall> call;
    std::function<bool(Machine&)> holds;
};

// What the device does to the machine at a moment.
struct Effect {
    Moment when;
    uint64_t number = 0; // in order of submission
    std::function<void(Machine&)> apply;
};

// A hardware queue. A stream occupies it while its first task waits, see work/queues.cpp.
struct Queue {
    uint64_t ticket = 0; // identifies one occupation
    uint64_t until = 0;
};

// The queues that the streams of some contexts share.
struct Queues {
    unsigned count = 0; // 0: the number of connections
    std::vector<Queue> all;
    uint64_t occupied_until = 0; // all queues are free from then on
};

struct Device {
    unsigned index = 0; // in the machine
    int ordinal = 0;    // the CUdevice; CUDA_VISIBLE_DEVICES can make it differ from index
    Profile profile;
    Context* primary = nullptr; // null or alive
    unsigned primary_retains = 0;
    unsigned primary_flags = 0;
    uint64_t memory_used = 0;
    uint64_t memory_lost = 0;
    unsigned free_context_slots = 0; // memory of destroyed green contexts that new ones reuse
    Moment busy;                     // until then: all work of all its contexts
    Handle workqueue = 0;            // the one that contexts share by default
    Queues queues;                   // of that workqueue
    Handle default_pool = 0;
    bool dynamic_parallelism = false; // a module that uses it was loaded
};

struct Workqueue {
    unsigned concurrency_limit = 0;
    unsigned scope = 0;
    Handle id = 0;                  // the same for contexts that share it
    std::shared_ptr<Queues> queues; // null: the device's
};

struct Stream {
    Handle handle = 0;
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    uint64_t id = 0;
    Moment busy;               // until then
    uint64_t queue_ticket = 0; // of the queue that it occupied last
    Capture* capture = nullptr;
    std::map<CUstreamAttrID, CUstreamAttrValue> attributes; // the ones that were set
    bool gone = false; // destroyed with its primary context; the handle stays known
};

// Sets of SMs that can hold one cluster: SMs of one GPC that came with one resource.
using Fragments = std::vector<SmSet>;

// SMs of one device, and what the driver tells of them.
struct Sms {
    SmSet sms;
    unsigned reported_sms = 0; // counts a group that was given twice two times
    Fragments fragments;
    unsigned min_partition_size = 0;
    unsigned alignment = 0;
    unsigned flags = 0; // of a structured split
    unsigned locality_domain = 0;
};

struct Context : Sms {
    enum class Kind { Primary, Created, Green };

    Handle handle = 0;
    Device* device = nullptr;
    Kind kind = Kind::Created;
    bool alive = true;
    uint64_t id = 0;
    Moment barrier; // later work starts no earlier
    Moment busy; // until then: all work, of destroyed streams and, in a primary one, of its green
                 // contexts too
    Moment blocking_busy; // the same of the blocking streams, since the NULL stream's last action
    Stream null_stream;
    std::map<uint64_t, std::unique_ptr<Stream>> thread_streams;
    std::map<int, std::size_t> limits;
    unsigned flags = 0; // of its creation
    CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
    std::set<int> peers;

    // Green contexts only.
    Handle green = 0;
    Handle green_alias = 0; // what cuStreamGetGreenCtx returns up to 13.0
    uint64_t green_id = 0;
    Context* primary = nullptr;
    Workqueue workqueue;

    // Returns the context that owns modules, events and memory: a green context's primary one.
    Context& owner() { return kind == Kind::Green ? *primary : *this; }
};

// A dependency of a graph's node. Without data it is on the completion of that node.
struct Edge {
    Handle node = 0;
    CUgraphEdgeData data{};
};

struct Event {
    Handle handle = 0;
    Context* context = nullptr;
    unsigned flags = 0;
    bool recorded = false;
    Moment done;
    Capture* capture = nullptr; // set if recorded in a capture, behind capture_nodes
    std::vector<Edge> capture_nodes;
};

struct Descriptor : Sms {
    Handle handle = 0;
    Device* device = nullptr;
    bool has_workqueue = false;
    Workqueue workqueue;
};

enum class MemoryKind { Device, Managed, Host, Registered, Module, Array };

struct Allocation {
    uint64_t address = 0;
    std::size_t bytes = 0;
    std::byte* data = nullptr; // the bytes; equals the address of memory that the host can use
    std::size_t mapped = 0;    // bytes to unmap
    MemoryKind kind = MemoryKind::Device;
    Device* device = nullptr;
    Context* context = nullptr;
    uint64_t id = 0;
    Handle pool = 0;
    bool freed = false;    // by cuMemFreeAsync, from
    Moment free_from;      // then on;
    uint64_t freed_in = 0; // the id of the stream
};

struct Pool {
    Handle handle = 0;
    Device* device = nullptr;
    uint64_t used = 0;
    uint64_t used_high = 0;
    std::map<int, uint64_t> attributes;
};

struct KernelParameter {
    std::size_t offset = 0;
    std::size_t size = 0;
};

// What an image says of a kernel.
struct KernelCode {
    std::string name;
    std::vector<KernelParameter> parameters;
};

struct LaunchConfig {
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    unsigned cluster[3] = {0, 0, 0};
    bool cooperative = false;

    uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
    unsigned threads() const { return block[0] * block[1] * block[2]; }
    unsigned cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
};

struct Function {
    Handle handle = 0;
    Handle kernel = 0;          // the CUkernel if it belongs to a library; launches accept it too
    Context* context = nullptr; // of its module; null for a library's
    KernelCode code;
    std::map<int, int> attributes;
    LaunchConfig legacy_config; // what cuFuncSetBlockShape and the like set for cuLaunch
    std::vector<std::byte> legacy_arguments;
};

struct Module {
    Handle handle = 0;
    bool is_library = false;
    Handle library_module = 0; // what cuLibraryGetModule returns
    Context* context = nullptr;
    bool any_name = false; // the image's names cannot be read; every name is accepted
    bool dynamic_parallelism = false;
    std::map<std::string, KernelCode> kernels;
    std::map<std::string, Handle> functions; // the ones requested so far
    std::map<std::string, std::size_t> globals;
    // A variable of a library has an address in each context.
    std::map<std::pair<std::string, Context*>, uint64_t> global_addresses;
};

// A task of a stream or a graph's node.
struct Work {
    enum class Kind {
        Kernel,
        Memcpy,
        Memset,
        Host,
        Empty,
        EventRecord,
        EventWait,
        ChildGraph,
        MemoryAlloc,
        MemoryFree,
        Conditional,
        MemoryOperation,
        Other
    };

    Work() = default;
    explicit Work(Kind of) : kind(of) {}

    Kind kind = Kind::Other;
    Context* context = nullptr; // provides the SMs
    uint64_t duration_ns = 0;
    std::function<void(Machine&)> effect; // at its end
    std::function<void()> host;
    std::function<bool(Machine&)> awaited; // it ends when this holds

    // Kernels
    Handle function = 0;
    LaunchConfig config;
    std::vector<std::byte> arguments;
    std::vector<std::size_t> argument_offsets;
    std::map<int, std::string> attributes;
    bool by_kernel = false; // launched by CUkernel, so the node's context can be changed

    Handle event = 0;
    Handle child = 0;           // a hidden graph that the node owns
    std::vector<Handle> bodies; // of a conditional node; hidden
    uint64_t owned_address = 0; // of an allocation node
    std::string parameters;     // the bytes of parameters that are only returned again
};

struct Node {
    Handle handle = 0;
    Handle origin = 0; // the node it was cloned from
    Handle graph = 0;
    Work work;
    std::vector<Edge> dependencies;
    std::vector<void*> argument_pointers; // returned by queries of the parameters
    std::vector<CUgraph> body_pointers;   // returned by queries of a conditional node
};

struct Graph {
    Handle handle = 0;
    bool hidden = false;                      // belongs to a capture or a node
    std::vector<std::unique_ptr<Node>> nodes; // in order of addition
    std::unordered_map<Handle, Node*> by_handle;
};

struct GraphExec {
    Handle handle = 0;
    Handle source = 0;
    uint64_t flags = 0;
    Moment busy; // until then
    uint64_t bytes = 0;
    Graph graph; // a copy; each node's origin is the source's node
    Device* device = nullptr;
};

// The variable of a conditional node. Never destroyed, since executables can outlive the graph.
struct Conditional {
    Handle handle = 0;
    Handle graph = 0;
    Context* context = nullptr;
    unsigned value = 0;
    bool used = false; // by a node
};

struct Capture {
    uint64_t id = 0;
    Handle graph = 0;
    bool into_existing = false;
    bool invalid = false;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread; // the one that began it
    Stream* origin = nullptr;
    std::map<Stream*, std::vector<Edge>> tips; // the dependencies of each stream's next node
};

struct Machine {
    std::string spec;
    uint64_t epoch = 0;
    const DriverVersion* driver = nullptr;
    bool initialised = false;
    unsigned connections = 0; // set by cuInit
    std::vector<std::unique_ptr<Device>> devices;
    uint64_t clock_ns = 0;
    std::vector<Effect> due;  // a heap: the next one is the first
    std::vector<Effect> held; // their host functions have not returned
    uint64_t next_effect = 1;
    std::deque<std::shared_ptr<HostCall>> ready; // host functions whose time has come
    std::shared_ptr<HostCall> running;           // the one that runs
    bool stuck = false;                          // it has run too long for others to wait for it
    std::vector<ValueWait> value_waits;          // the ones that do not hold yet
    uint64_t unfinished_calls = 0;               // host functions that have not returned
    uint64_t returned_calls = 0;
    unsigned waiting = 0;   // calls that have released the lock
    bool abandoned = false; // another machine replaces this one
    uint64_t calls = 0;
    std::map<std::string, uint64_t, std::less<>> calls_by_function;

    Table<Context> contexts;
    std::unordered_map<Handle, Context*> greens;
    Table<Stream> streams;
    std::unordered_set<Handle> dead_streams;
    Table<Event> events;
    Table<Descriptor> descriptors;
    std::map<uint64_t, Allocation> allocations;
    std::vector<uint64_t> freed; // addresses of those that cuMemFreeAsync freed
    Table<Pool> pools;
    Table<Module> modules;
    Table<Function> functions;
    std::unordered_map<Handle, Handle> kernels; // CUkernel to CUfunction
    Table<Graph> graphs;
    Table<GraphExec> graph_execs;
    Table<Conditional> conditionals;
    std::map<uint64_t, std::unique_ptr<Capture>> captures;

    uint64_t next_context_id = 1;
    uint64_t next_green_id = 1;
    uint64_t next_stream_id = 1;
    uint64_t next_split = 1;
    uint64_t next_capture = 1;
    uint64_t next_allocation = 1;
    uint64_t next_graph_launch = 1;
    std::vector<gcx_sim_run> runs; // at most runs_room
    std::size_t runs_room = 0;
    uint64_t runs_begun = 0; // how often the records were begun
    uint64_t next_queue_ticket = 1;
    uint64_t kernel_ns = 0;
    bool mps = false;                 // changes what devices report, not how work runs
    bool mps_limit = false;           // the daemon limits each client to half of the SMs
    bool dynamic_parallelism = false; // on every device, without a module

    ~Machine();
    bool has(Capability capability) const { return driver->version >= capability; }
    Device* device(CUdevice ordinal);
};

} // namespace gcx::sim
