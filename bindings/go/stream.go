package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Stream is a stream whose kernels run on its context's or its lease's SMs.
type Stream raw.Stream

func streamOf(ask func(*raw.Stream) Result) (Stream, error) {
	stream, err := got(ask)
	return Stream(stream), err
}

// NewStream makes a stream of the context. Lower priorities are more urgent.
func (context Context) NewStream(priority int32) (Stream, error) {
	params := sized(&raw.StreamParams{Priority: priority})
	return streamOf(func(stream *raw.Stream) Result {
		return Raw.StreamCreate(raw.Context(context), params, stream)
	})
}

// StreamFromNative makes a handle for a CUstream that other code made.
func StreamFromNative(native uintptr) (Stream, error) {
	return streamOf(func(stream *raw.Stream) Result { return Raw.StreamFromNative(native, stream) })
}

// Close gives the stream back; work in it finishes.
func (stream Stream) Close() error {
	return check(func() Result { return Raw.StreamDestroy(raw.Stream(stream)) })
}

// Native returns the CUstream, a cudaStream_t too, for any CUDA code. It stays gcx's. A lease's
// stream follows the lease, so ask again for each step.
func (stream Stream) Native() (uintptr, error) {
	return native(func() uintptr { return Raw.StreamNative(raw.Stream(stream)) }, func() Result {
		return Raw.StreamGetInfo(raw.Stream(stream), sized(&raw.StreamInfo{}))
	})
}

// Info returns what the stream is.
func (stream Stream) Info() (raw.StreamInfo, error) {
	return filled(func(info *raw.StreamInfo) Result {
		return Raw.StreamGetInfo(raw.Stream(stream), info)
	})
}

// Resource returns the resource, of a type, of the stream's context.
func (stream Stream) Resource(of raw.ResourceType) (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result {
		return Raw.StreamGetResource(raw.Stream(stream), of, to)
	})
}

// MaxClusterSize returns the most blocks of a thread block cluster.
func (stream Stream) MaxClusterSize() (uint32, error) {
	return got(func(blocks *uint32) Result {
		return Raw.StreamGetMaxClusterSize(raw.Stream(stream), blocks)
	})
}

// KernelFit returns how much of a kernel, a CUfunction or a CUkernel, fits the stream's SMs at once.
func (stream Stream) KernelFit(function uintptr, params raw.KernelFitParams) (raw.KernelFit, error) {
	return filled(func(fit *raw.KernelFit) Result {
		return Raw.StreamGetKernelFit(raw.Stream(stream), function, sized(&params), fit)
	})
}

// ProbeSMs returns the SMs that a kernel in the stream runs on.
func (stream Stream) ProbeSMs() ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return Raw.StreamProbeSMs(raw.Stream(stream), room, capacity, count)
	})
}

// Synchronize waits for the stream's work.
func (stream Stream) Synchronize() error {
	return check(func() Result { return Raw.StreamSynchronize(raw.Stream(stream)) })
}

// Query returns whether all work has finished.
func (stream Stream) Query() (bool, error) {
	return finished(func() Result { return Raw.StreamQuery(raw.Stream(stream)) })
}

// Record captures in the event what was submitted so far.
func (stream Stream) Record(event Event) error {
	return check(func() Result { return Raw.StreamRecord(raw.Stream(stream), raw.Event(event)) })
}

// Wait makes later work wait for the event's work.
func (stream Stream) Wait(event Event) error {
	return check(func() Result { return Raw.StreamWait(raw.Stream(stream), raw.Event(event)) })
}

// Verified is what Verify found.
type Verified struct {
	raw.Verification
	Streams []raw.VerifiedStream // in the order given
}

// Verify probes which SMs the streams of one device run on, and whether these are the expected ones. A
// problem is no error: Ok is 0, and Problems has a line for each.
func Verify(streams ...Stream) (Verified, error) {
	seen := make([]raw.VerifiedStream, len(streams))
	found, err := filled(func(found *raw.Verification) Result {
		return Raw.Verify((*raw.Stream)(first(streams)), length(streams), first(seen), found)
	})
	return Verified{found, seen}, err
}
