package gcx

// Stream is a stream whose kernels run on its context's or its lease's SMs. Its zero value is none.
type Stream struct{ handle uintptr }

type streamParams struct {
	structSize uint32
	sync       int32
	priority   int32
}

// StreamInfo is what a stream says of itself.
type StreamInfo struct {
	structSize uint32
	Device     int32
	Priority   int32
	SMCount    uint32
	ContextID  uint64
}

// NewStream makes a stream of the context, to be closed. Lower priorities are more urgent.
func (context Context) NewStream(priority int32) (Stream, error) {
	params := streamParams{priority: priority}
	params.structSize = sizeOf(&params)
	var stream Stream
	err := check(func() Result { return c.StreamCreate(context.handle, &params, &stream.handle) })
	return stream, err
}

// StreamFromNative is a handle, to be closed, for a CUstream that somebody else made.
func StreamFromNative(native uintptr) (Stream, error) {
	var stream Stream
	err := check(func() Result { return c.StreamFromNative(native, &stream.handle) })
	return stream, err
}

// Close gives the stream up; work in it finishes.
func (stream Stream) Close() error {
	return check(func() Result { return c.StreamDestroy(stream.handle) })
}

// Native is the CUstream, a cudaStream_t too, for any CUDA code. It stays gcx's. A lease's stream
// follows the lease, so ask anew for each step.
func (stream Stream) Native() (uintptr, error) {
	return native(stream.handle, c.StreamNative, c.StreamQuery)
}

// Info tells what the stream is.
func (stream Stream) Info() (StreamInfo, error) {
	var info StreamInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.StreamGetInfo(stream.handle, &info) })
	return info, err
}

// Resource is the resource, of a type, of the stream's context.
func (stream Stream) Resource(of ResourceType) (Resource, error) {
	var resource Resource
	err := check(func() Result { return c.StreamGetResource(stream.handle, of, &resource) })
	return resource, err
}

// MaxClusterSize is the most blocks of a thread block cluster.
func (stream Stream) MaxClusterSize() (uint32, error) {
	var blocks uint32
	err := check(func() Result { return c.StreamMaxCluster(stream.handle, &blocks) })
	return blocks, err
}

// KernelFitParams is a kernel's launch, as far as it decides how much of it fits.
type KernelFitParams struct {
	structSize         uint32
	BlockThreads       uint32 // 1 to 1024
	DynamicSharedBytes uint32
	ClusterBlocks      uint32 // 0: launched without clusters
}

// KernelFit is how much of a kernel fits a stream's SMs at once.
type KernelFit struct {
	structSize       uint32
	SMCount          uint32
	BlocksPerSM      uint32 // 0: it can't run
	MaxBlocks        uint32 // the largest cooperative grid
	MaxClusters      uint32
	MaxClusterBlocks uint32
}

// KernelFit tells that of a CUfunction, or of a CUkernel.
func (stream Stream) KernelFit(function uintptr, params KernelFitParams) (KernelFit, error) {
	var fit KernelFit
	params.structSize, fit.structSize = sizeOf(&params), sizeOf(&fit)
	err := check(func() Result {
		return c.StreamKernelFit(stream.handle, function, &params, &fit)
	})
	return fit, err
}

// ProbeSMs runs a kernel that notes on which SMs it runs.
func (stream Stream) ProbeSMs() ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return c.StreamProbeSMs(stream.handle, room, capacity, count)
	})
}

// Synchronize waits for the stream's work.
func (stream Stream) Synchronize() error {
	return check(func() Result { return c.StreamSynchronize(stream.handle) })
}

// Query tells whether all work has finished.
func (stream Stream) Query() (bool, error) {
	return finished(func() Result { return c.StreamQuery(stream.handle) })
}

// finished takes NotReady, for which gcx has no message, as an answer.
func finished(query func() Result) (bool, error) {
	ready := true
	err := check(func() Result {
		result := query()
		if result == NotReady {
			ready = false
			return Success
		}
		return result
	})
	return ready && err == nil, err
}

// Record captures in the event what was submitted so far.
func (stream Stream) Record(event Event) error {
	return check(func() Result { return c.StreamRecord(stream.handle, event.handle) })
}

// Wait holds later work until the event's work has finished.
func (stream Stream) Wait(event Event) error {
	return check(func() Result { return c.StreamWait(stream.handle, event.handle) })
}
