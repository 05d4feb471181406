package gcx

import "runtime"

// Graph is a captured CUDA graph that is launched on any stream's SMs. Its zero value is none.
type Graph struct{ handle uintptr }

// What graphs are made with, and their limits.
const (
	GraphNodePriorities uint32 = 0x1 // kernels keep the priorities that they were captured with
	MaxGraphParts       uint32 = 16
	NoNode              uint32 = 0xffffffff // the parent of nodes that are in no child graph
)

// GraphParams is how to make a graph. Its zero value is the default.
type GraphParams struct {
	structSize     uint32
	Flags          uint32
	MaxExecutables uint32 // that are kept; 0: 16
}

// GraphInfo is what a graph says of itself.
type GraphInfo struct {
	structSize     uint32
	Device         int32
	Flags          uint32
	NodeCount      uint32 // those of child graphs too
	KernelCount    uint32
	PartCount      uint32
	Executables    uint32 // that are kept now
	MaxExecutables uint32
	Launches       uint64
	Made           uint64
	Evicted        uint64
}

// NodeKind is a CUgraphNodeType.
type NodeKind int32

// The kinds of nodes that can be moved.
const (
	NodeKernel          NodeKind = 0
	NodeMemcpy          NodeKind = 1
	NodeMemset          NodeKind = 2
	NodeHost            NodeKind = 3
	NodeGraph           NodeKind = 4
	NodeEmpty           NodeKind = 5
	NodeWaitEvent       NodeKind = 6
	NodeEventRecord     NodeKind = 7
	NodeSemaphoreSignal NodeKind = 8
	NodeSemaphoreWait   NodeKind = 9
)

// GraphNode is a node; from Cooperative on it is of kernels.
type GraphNode struct {
	Kind        NodeKind
	Parent      uint32 // number of the node whose child graph it is in, or NoNode
	Part        uint32
	Cooperative uint32
	Grid        [3]uint32
	Block       [3]uint32
	Cluster     [3]uint32
	SharedBytes uint32
	BlocksPerSM uint32 // times the partition's SMs is the largest grid whose blocks may wait for each other
	_           [9]uint32
	name        [256]byte
}

// Name is the kernel's, as compiled.
func (node GraphNode) Name() string { return text(node.name[:]) }

// KernelParams is what a kernel is launched with.
type KernelParams struct {
	SharedBytes uint32
	Grid, Block [3]uint32
	Arguments   []byte // each at its place, as in a C struct; nil: those that it has
}

type kernelParams struct {
	structSize    uint32
	sharedBytes   uint32
	grid, block   [3]uint32
	arguments     *byte
	argumentBytes uint64
}

// NewGraph takes a copy, to be closed, of a CUgraph, which stays the caller's.
func NewGraph(captured uintptr, params GraphParams) (Graph, error) {
	params.structSize = sizeOf(&params)
	var graph Graph
	err := check(func() Result { return c.GraphCreate(captured, &params, &graph.handle) })
	return graph, err
}

// Close gives the graph and its executables up; work in flight finishes.
func (graph Graph) Close() error {
	return check(func() Result { return c.GraphDestroy(graph.handle) })
}

// Launch runs all parts on the SMs that the stream has now.
func (graph Graph) Launch(stream Stream) error {
	return check(func() Result { return c.GraphLaunch(graph.handle, stream.handle) })
}

// LaunchParts runs each part on the SMs of its stream.
func (graph Graph) LaunchParts(streams ...Stream) error {
	return check(func() Result {
		return c.GraphLaunchParts(graph.handle, first(streams), uint32(len(streams)))
	})
}

// Prepare makes the executable for one resource, or for one for each part, ahead of time. flags is
// 0 or PrepareForLeases.
func (graph Graph) Prepare(flags uint32, resources ...Resource) error {
	return check(func() Result {
		return c.GraphPrepare(graph.handle, first(resources), uint32(len(resources)), flags)
	})
}

// SetPart says which part nodes are of: one that there is, or the next, which needs at least one
// node.
func (graph Graph) SetPart(part uint32, nodes ...uint32) error {
	return check(func() Result {
		return c.GraphSetPart(graph.handle, first(nodes), uint32(len(nodes)), part)
	})
}

// SetKernel gives a kernel node other parameters, in all executables or nowhere.
func (graph Graph) SetKernel(node uint32, params KernelParams) error {
	raw := kernelParams{
		sharedBytes: params.SharedBytes, grid: params.Grid, block: params.Block,
		arguments: first(params.Arguments), argumentBytes: uint64(len(params.Arguments)),
	}
	raw.structSize = sizeOf(&raw)
	defer runtime.KeepAlive(params.Arguments)
	return check(func() Result { return c.GraphSetKernel(graph.handle, node, &raw) })
}

// Update takes over all parameters of another CUgraph with the same nodes.
func (graph Graph) Update(captured uintptr) error {
	return check(func() Result { return c.GraphUpdate(graph.handle, captured) })
}

// Info tells what the graph is.
func (graph Graph) Info() (GraphInfo, error) {
	var info GraphInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.GraphGetInfo(graph.handle, &info) })
	return info, err
}

// Nodes lists the nodes; a node's number is its place.
func (graph Graph) Nodes() ([]GraphNode, error) {
	return listed(func(room *GraphNode, capacity uint32, count *uint32) Result {
		return c.GraphGetNodes(graph.handle, room, capacity, count)
	})
}
