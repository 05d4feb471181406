package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Context is a green context.
type Context raw.Context

func contextOf(ask func(*raw.Context) Result) (Context, error) {
	context, err := got(ask)
	return Context(context), err
}

// NewContext creates a context over resources of one device. flags are 0 or raw.ContextPrivate.
func NewContext(flags uint32, resources ...Resource) (Context, error) {
	params := sized(&raw.ContextParams{Flags: flags})
	return contextOf(func(context *raw.Context) Result {
		return Raw.ContextCreate(first(resources).raw(), length(resources), params, context)
	})
}

// Close destroys the handle; streams keep the context.
func (context Context) Close() error {
	return check(func() Result { return Raw.ContextDestroy(raw.Context(context)) })
}

// Info returns information about the context.
func (context Context) Info() (raw.ContextInfo, error) { return filled(context.info) }

func (context Context) info(info *raw.ContextInfo) Result {
	return Raw.ContextGetInfo(raw.Context(context), info)
}

// Resource returns the context's resource of a type.
func (context Context) Resource(of raw.ResourceType) (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result {
		return Raw.ContextGetResource(raw.Context(context), of, to)
	})
}

// Native returns the CUcontext.
func (context Context) Native() (uintptr, error) {
	return native(func() uintptr { return Raw.ContextNative(raw.Context(context)) }, context.usable)
}

// NativeGreen returns the CUgreenCtx.
func (context Context) NativeGreen() (uintptr, error) {
	ask := func() uintptr { return Raw.ContextNativeGreen(raw.Context(context)) }
	return native(ask, context.usable)
}

func (context Context) usable() Result { return context.info(sized(&raw.ContextInfo{})) }

// Push makes the context current in the calling thread, so the goroutine has to stay on it until
// Pop: call runtime.LockOSThread before, and UnlockOSThread after Pop.
func (context Context) Push() error {
	return check(func() Result { return Raw.ContextPush(raw.Context(context)) })
}

// Pop removes what the thread pushed last, and returns it.
func Pop() (Context, error) { return contextOf(Raw.ContextPop) }

// Current returns what the thread pushed last; the zero Context if that isn't current.
func Current() (Context, error) { return contextOf(Raw.ContextGetCurrent) }

// Synchronize waits for the work of all the context's streams.
func (context Context) Synchronize() error {
	return check(func() Result { return Raw.ContextSynchronize(raw.Context(context)) })
}

// Record captures in the event what was submitted so far.
func (context Context) Record(event Event) error {
	return check(func() Result { return Raw.ContextRecord(raw.Context(context), raw.Event(event)) })
}

// Wait makes later work wait for the event's work.
func (context Context) Wait(event Event) error {
	return check(func() Result { return Raw.ContextWait(raw.Context(context), raw.Event(event)) })
}

// Contexts lists the green contexts in use on a device, or on all (-1).
func Contexts(device int32) ([]raw.LiveContext, error) {
	return listed(func(room *raw.LiveContext, capacity uint32, count *uint32) Result {
		return Raw.ContextList(device, room, capacity, count)
	})
}
