package gcx

import (
	"reflect"
	"testing"
	"unsafe"

	"example.org/gcx/bindings/go/generated/raw"
)

// runsOn checks that a launch ran on the SMs of a stream.
func (own *program) runsOn(t *testing.T, stream Stream, launched error) {
	t.Helper()
	noError(t, launched)
	if sms, want := own.sms(t, stream), must[[]uint32](t)(stream.ProbeSMs()); !reflect.DeepEqual(sms, want) {
		t.Errorf("it ran on %v, not %v", sms, want)
	}
}

func TestGraphRunsWhereItIsLaunched(t *testing.T) {
	own := newProgram(t)
	small, large := over(t, 0, 24), over(t, 0, 64)
	captured := own.captured(t, small, 2)
	graph := must[Graph](t)(NewGraph(captured, raw.GraphParams{MaxExecutables: 2}))
	did(t, "cuGraphDestroy", own.free(captured))
	noError(t, graph.Prepare(0, must[Resource](t)(large.Resource(SM))))
	own.runsOn(t, large, graph.Launch(large))
	own.runsOn(t, small, graph.Launch(small))
	noError(t, graph.SetPart(1, 1), graph.Launch(small, large))
	if sms := own.sms(t, small); len(sms) != 64 { // it waits for both parts
		t.Errorf("%d SMs", len(sms))
	}
	if info := must[raw.GraphInfo](t)(graph.Info()); info.PartCount != 2 || info.Launches != 3 || info.MaxExecutables != 2 {
		t.Errorf("%+v", info)
	}
	noError(t, graph.Close())
	refused(t, "a closed graph", graph.Launch(small), raw.ErrorInvalidHandle)
	refused(t, "no graph", second(NewGraph(0, raw.GraphParams{})), raw.ErrorInvalidValue)
}

func TestKernelParametersAreCopied(t *testing.T) {
	own := newProgram(t)
	stream := over(t, 0, 24)
	captured := own.captured(t, stream, 2)
	graph := must[Graph](t)(NewGraph(captured, raw.GraphParams{}))
	nodes := must[[]raw.GraphNode](t)(graph.Nodes())
	if len(nodes) != 2 || nodes[1].Kind != raw.GraphNodeKernel || nodes[1].Name.String() != "gcx_probe" ||
		nodes[1].Grid != [3]uint32{maxSMs, 1, 1} || nodes[1].Parent != raw.NoNode {
		t.Fatalf("%+v", nodes)
	}
	// One kernel notes no SM, the other runs as a single block.
	nowhere := arguments{own.noted, 0, nanoseconds}
	params := KernelParams{
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
		Arguments: append([]byte(nil), (*[16]byte)(unsafe.Pointer(&nowhere))[:]...),
	}
	noError(t, graph.SetKernel(0, params))
	params.Arguments = nil
	noError(t, graph.SetKernel(1, params), graph.Launch(stream))
	if sms := own.sms(t, stream); len(sms) != 1 {
		t.Errorf("one block on %v", sms)
	}
	noError(t, graph.Update(captured))
	own.runsOn(t, stream, graph.Launch(stream))
	params.Arguments = make([]byte, 8)
	refused(t, "short arguments", graph.SetKernel(0, params), raw.ErrorInvalidValue)
	params.Arguments = []byte{}
	refused(t, "empty arguments", graph.SetKernel(0, params), raw.ErrorInvalidValue)
	did(t, "cuGraphDestroy", own.free(captured))
	noError(t, graph.Close())

	fit := must[raw.KernelFit](t)(stream.KernelFit(own.kernel, raw.KernelFitParams{BlockThreads: 256}))
	if fit.SMCount != 24 || fit.BlocksPerSM != 8 || fit.MaxBlocks != 192 {
		t.Errorf("%+v", fit)
	}
}
