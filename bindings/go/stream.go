package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Stream is a stream whose kernels run on its context's or its lease's SMs.
type Stream raw.Stream

// NewStream makes a stream of the context. Lower priorities are more urgent.
func (context Context) NewStream(priority int32) (Stream, error) {
	params := sized(&raw.StreamParams{Priority: priority})
	return created[Stream](func(stream *raw.Stream) Result {
		return Raw.StreamCreate(raw.Context(context), params, stream)
	})
}

// StreamFromNative makes a handle for a CUstream that other code made.
func StreamFromNative(native uintptr) (Stream, error) {
	return created[Stream](func(stream *raw.Stream) Result { return Raw.StreamFromNative(native, stream) })
}

// KernelFit returns how much of a kernel, a CUfunction or a CUkernel, fits the stream's SMs at once.
func (stream Stream) KernelFit(function uintptr, params raw.KernelFitParams) (raw.KernelFit, error) {
	return filled(func(fit *raw.KernelFit) Result {
		return Raw.StreamGetKernelFit(raw.Stream(stream), function, sized(&params), fit)
	})
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
