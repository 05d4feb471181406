package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Graph is a captured CUDA graph that is launched on any stream's SMs.
type Graph raw.Graph

// KernelParams is what a kernel is launched with.
type KernelParams struct {
	SharedBytes uint32
	Grid, Block [3]uint32
	Arguments   []byte // each at its offset in a C struct; nil: the present ones
}

// NewGraph copies a CUgraph, which stays the caller's.
func NewGraph(captured uintptr, params raw.GraphParams) (Graph, error) {
	return created[Graph](func(graph *raw.Graph) Result {
		return Raw.GraphCreate(captured, sized(&params), graph)
	})
}

// Launch runs all parts on the SMs that one stream has now, or each part on the SMs of its stream.
func (graph Graph) Launch(streams ...Stream) error {
	return check(func() Result {
		of := (*raw.Stream)(first(streams))
		return Raw.GraphLaunch(raw.Graph(graph), of, length(streams))
	})
}

// Prepare creates the executable for one resource, or for one of each part, ahead of time. flags is
// 0 or raw.PrepareForLeases.
func (graph Graph) Prepare(flags uint32, resources ...Resource) error {
	return check(func() Result {
		of := first(resources).raw()
		return Raw.GraphPrepare(raw.Graph(graph), of, length(resources), flags)
	})
}

// SetPart assigns nodes to a part: an existing one, or the next, which needs at least one node.
func (graph Graph) SetPart(part uint32, nodes ...uint32) error {
	return check(func() Result {
		return Raw.GraphSetPart(raw.Graph(graph), first(nodes), length(nodes), part)
	})
}

// SetKernel changes the parameters of a kernel node, in all executables or nowhere.
func (graph Graph) SetKernel(node uint32, params KernelParams) error {
	c := sized(&raw.KernelParams{
		SharedBytes: params.SharedBytes, Grid: params.Grid, Block: params.Block,
		Arguments: first(params.Arguments), ArgumentBytes: uint64(len(params.Arguments)),
	})
	if params.Arguments != nil && len(params.Arguments) == 0 {
		c.Arguments = new(byte) // NULL would be the present ones
	}
	return check(func() Result { return Raw.GraphSetKernel(raw.Graph(graph), node, c) })
}

// Update copies all parameters of another CUgraph with the same nodes.
func (graph Graph) Update(captured uintptr) error {
	return check(func() Result { return Raw.GraphUpdate(raw.Graph(graph), captured) })
}
