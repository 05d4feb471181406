package gcx

import (
	"reflect"
	"testing"
	"unsafe"
)

// over is a stream of a context of SMs of a device, closed at the test's end.
func over(t *testing.T, device int32, sms uint32) Stream {
	t.Helper()
	context, stream, err := newStream(device, sms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{stream.Close(), context.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return stream
}

func graphOf(t *testing.T, captured uintptr, params GraphParams) Graph {
	t.Helper()
	graph, err := NewGraph(captured, params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := graph.Close(); err != nil {
			t.Error(err)
		}
	})
	return graph
}

// runsOn asks that a launch ran on a stream's SMs.
func (own *program) runsOn(t *testing.T, stream Stream, launched error) {
	t.Helper()
	if launched != nil {
		t.Fatal(launched)
	}
	sms := own.sms(t, stream)
	if want, err := stream.ProbeSMs(); err != nil || !reflect.DeepEqual(sms, want) {
		t.Errorf("it ran on %v, not %v; %v", sms, want, err)
	}
}

func TestAGraphRunsWhereItIsLaunched(t *testing.T) {
	own := newProgram(t)
	small, large := over(t, 0, 24), over(t, 0, 64)
	captured := own.captured(t, small, 2)
	graph := graphOf(t, captured, GraphParams{Flags: GraphNodePriorities, MaxExecutables: 2})
	did(t, "cuGraphDestroy", own.free(captured))
	resource, err := large.Resource(SM)
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.Prepare(0, resource); err != nil {
		t.Fatal(err)
	}
	own.runsOn(t, large, graph.Launch(large))
	own.runsOn(t, small, graph.Launch(small))
	own.runsOn(t, large, graph.LaunchParts(large))
	info, err := graph.Info()
	if err != nil || info.Made != 2 || info.Launches != 3 || info.PartCount != 1 || info.MaxExecutables != 2 {
		t.Errorf("%+v, %v", info, err)
	}

	// On a lease: the SMs that it has at the launch.
	lease := acquired(t, 0, 16, LeaseParams{})
	stream, err := lease.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.Prepare(PrepareForLeases, layouts(t, 2)[1]); err != nil {
		t.Error(err)
	}
	own.runsOn(t, stream, graph.Launch(stream))
	if err := Resize(0, LeaseSize{Lease: lease, SMCount: 40}); err != nil {
		t.Error(err)
	}
	own.runsOn(t, stream, graph.Launch(stream))
	if info, err = graph.Info(); err != nil || info.Executables != 2 || info.Evicted != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	allClosed(t, stream, lease)
}

func TestAGraphsKernelsAreChanged(t *testing.T) {
	own := newProgram(t)
	stream := over(t, 0, 24)
	captured := own.captured(t, stream, 20)
	graph := graphOf(t, captured, GraphParams{})
	nodes, err := graph.Nodes()
	if err != nil || len(nodes) != 20 {
		t.Fatal(nodes, err)
	}
	node := nodes[19]
	if node.Kind != NodeKernel || node.Name() != "gcx_probe" || node.Parent != NoNode ||
		node.Grid != [3]uint32{maxSMs, 1, 1} || node.BlocksPerSM == 0 {
		t.Errorf("%+v", node)
	}
	own.runsOn(t, stream, graph.Launch(stream))
	// All note to a place of nobody's, but for one whose grid is a single block.
	elsewhere := arguments{own.noted, 0, nanoseconds}
	for i := range nodes {
		params := KernelParams{
			Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
			Arguments: append([]byte(nil), (*[16]byte)(unsafe.Pointer(&elsewhere))[:]...),
		}
		if i == 7 {
			params.Arguments = nil
		}
		if err := graph.SetKernel(uint32(i), params); err != nil {
			t.Fatal(err)
		}
	}
	if err := graph.Launch(stream); err != nil {
		t.Fatal(err)
	}
	if sms := own.sms(t, stream); len(sms) != 1 {
		t.Errorf("one block on %v", sms)
	}
	if err := graph.Update(captured); err != nil {
		t.Fatal(err)
	}
	own.runsOn(t, stream, graph.Launch(stream))
	shorter := own.captured(t, stream, 19)
	const updateFailure Result = 910
	refused(t, "other nodes", graph.Update(shorter), updateFailure)
	if updateFailure.Error() != "GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE" {
		t.Error(updateFailure.Error())
	}
	did(t, "cuGraphDestroy", own.free(shorter))
	did(t, "cuGraphDestroy", own.free(captured))
}

func TestGraphsAreMisused(t *testing.T) {
	own := newProgram(t)
	stream, there := over(t, 0, 24), over(t, 1, 24)
	captured := own.captured(t, stream, 2)
	graph, err := NewGraph(captured, GraphParams{})
	if err != nil {
		t.Fatal(err)
	}
	all := layouts(t, 2)
	_, nothing := NewGraph(0, GraphParams{})
	_, flags := NewGraph(captured, GraphParams{Flags: 0x80})
	for what, err := range map[string]error{
		"no graph": nothing, "unknown flags": flags, "no such node": graph.SetPart(0, 2),
		"no such part": graph.SetPart(3, 0), "too many parts": graph.SetPart(MaxGraphParts, 0),
		"a part without nodes": graph.SetPart(1),
		"no stream":            graph.LaunchParts(), "two streams for one part": graph.LaunchParts(stream, stream),
		"no resource": graph.Prepare(0), "unknown flags of preparing": graph.Prepare(0x80, all[0]),
		"two resources for one part": graph.Prepare(0, all...),
		"no grid":                    graph.SetKernel(0, KernelParams{}),
		"short arguments": graph.SetKernel(0, KernelParams{
			Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Arguments: make([]byte, 8)}),
		"an update by nothing": graph.Update(0),
	} {
		refused(t, what, err, InvalidValue)
	}
	refused(t, "a stream of another device", graph.Launch(there), InvalidDevice)
	// Two parts, and one again.
	if err := graph.SetPart(1, 1); err != nil {
		t.Error(err)
	}
	if err := graph.LaunchParts(stream, over(t, 0, 64)); err != nil {
		t.Error(err)
	}
	if sms := own.sms(t, stream); len(sms) != 64 {
		t.Errorf("%d SMs", len(sms))
	}
	if err := graph.Launch(stream); err != nil {
		t.Error(err)
	}
	// Given up while its work is under way, which finishes.
	if err := graph.Close(); err != nil {
		t.Error(err)
	}
	if sms := own.sms(t, stream); len(sms) != 24 {
		t.Errorf("%d SMs", len(sms))
	}
	_, info := graph.Info()
	_, nodes := graph.Nodes()
	for what, err := range map[string]error{
		"closed twice": graph.Close(), "a closed graph's launch": graph.Launch(stream),
		"a closed graph's info": info, "a closed graph's nodes": nodes,
		"a closed graph, prepared": graph.Prepare(0, all[0]), "a closed graph's part": graph.SetPart(0, 0),
		"a closed graph's kernel": graph.SetKernel(0, KernelParams{}),
		"a closed graph's update": graph.Update(captured), "zero graph": Graph{}.Close(),
		"a stream for a graph": Graph{stream.handle}.Close(),
	} {
		refused(t, what, err, InvalidHandle)
	}
	did(t, "cuGraphDestroy", own.free(captured))
}
