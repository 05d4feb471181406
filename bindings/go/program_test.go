package gcx

import (
	_ "embed"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// program is other code in the process, which calls the driver: a kernel that notes the SMs it runs on.
type program struct {
	kernel uintptr
	noted  uint64 // on the device, a counter for each SM

	launch func(function uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32,
		stream uintptr, arguments *unsafe.Pointer, extra uintptr) int32
	begin func(stream uintptr, mode int32) int32
	end   func(stream uintptr, graph *uintptr) int32
	free  func(graph uintptr) int32
	read  func(to *uint32, from uint64, bytes uintptr) int32
	clear func(to uint64, value uint32, count uintptr) int32
}

const maxSMs = 1024

// Blocks of 1024 threads: one or two fill an SM, so that a grid of maxSMs leaves none empty if each
// stays until all are taken.
const (
	threads     = 1024
	nanoseconds = 20_000
)

// Each block adds one to the count of the SM that it runs on, and stays there for spin_ns.
//
//go:embed testdata/probe.ptx
var probe string

func did(t *testing.T, what string, result int32) {
	t.Helper()
	if result != 0 {
		t.Fatalf("%s: %d", what, result)
	}
}

// newProgram keeps the goroutine in its thread, with the primary context current as CUDA's runtime has
// it, until the end of the test.
func newProgram(t *testing.T) *program {
	t.Helper()
	open, err := Driver()
	if err != nil {
		t.Fatal(err)
	}
	driver, err := purego.Dlopen(open.Library.String(), purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	var own program
	var load func(*uintptr, string) int32
	var find func(*uintptr, uintptr, string) int32
	var allocate func(*uint64, uintptr) int32
	var release func(uint64) int32
	var retain func(*uintptr, int32) int32
	var push func(uintptr) int32
	var pop func(*uintptr) int32
	for name, function := range map[string]interface{}{
		"cuModuleLoadData": &load, "cuModuleGetFunction": &find, "cuMemAlloc_v2": &allocate,
		"cuMemFree_v2": &release, "cuLaunchKernel": &own.launch, "cuStreamBeginCapture_v2": &own.begin,
		"cuStreamEndCapture": &own.end, "cuGraphDestroy": &own.free, "cuMemcpyDtoH_v2": &own.read,
		"cuMemsetD32_v2": &own.clear, "cuDevicePrimaryCtxRetain": &retain, "cuCtxPushCurrent_v2": &push,
		"cuCtxPopCurrent_v2": &pop,
	} {
		purego.RegisterLibFunc(function, driver, name)
	}
	runtime.LockOSThread()
	var primary, module uintptr // which live as long as the process
	did(t, "cuDevicePrimaryCtxRetain", retain(&primary, 0))
	did(t, "cuCtxPushCurrent", push(primary))
	did(t, "cuModuleLoadData", load(&module, probe))
	did(t, "cuModuleGetFunction", find(&own.kernel, module, "gcx_probe"))
	did(t, "cuMemAlloc", allocate(&own.noted, 4*maxSMs))
	did(t, "cuMemsetD32", own.clear(own.noted, 0, maxSMs))
	t.Cleanup(func() {
		did(t, "cuMemFree", release(own.noted))
		did(t, "cuCtxPopCurrent", pop(&primary))
		runtime.UnlockOSThread()
	})
	return &own
}

// arguments are those of the kernel, as a C struct.
type arguments struct {
	noted       uint64
	maxSMs      uint32
	nanoseconds uint32
}

// submit launches the kernel in a CUstream.
func (own *program) submit(t *testing.T, stream uintptr, blocks uint32) {
	t.Helper()
	values := &arguments{own.noted, maxSMs, nanoseconds}
	each := &[3]unsafe.Pointer{
		unsafe.Pointer(&values.noted), unsafe.Pointer(&values.maxSMs), unsafe.Pointer(&values.nanoseconds),
	}
	did(t, "cuLaunchKernel", own.launch(own.kernel, blocks, 1, 1, threads, 1, 1, 0, stream, &each[0], 0))
}

// captured returns a CUgraph of several kernels, one after the other.
func (own *program) captured(t *testing.T, stream Stream, kernels int) (graph uintptr) {
	t.Helper()
	native, err := stream.Native()
	if err != nil {
		t.Fatal(err)
	}
	did(t, "cuStreamBeginCapture", own.begin(native, 0))
	for i := 0; i < kernels; i++ {
		own.submit(t, native, maxSMs)
	}
	did(t, "cuStreamEndCapture", own.end(native, &graph))
	return graph
}

// sms returns the SMs that the kernel ran on since the last call.
func (own *program) sms(t *testing.T, stream Stream) []uint32 {
	t.Helper()
	if err := stream.Synchronize(); err != nil {
		t.Fatal(err)
	}
	counts := make([]uint32, maxSMs)
	did(t, "cuMemcpyDtoH", own.read(&counts[0], own.noted, 4*maxSMs))
	did(t, "cuMemsetD32", own.clear(own.noted, 0, maxSMs))
	var found []uint32
	for sm, count := range counts {
		if count != 0 {
			found = append(found, uint32(sm))
		}
	}
	return found
}
