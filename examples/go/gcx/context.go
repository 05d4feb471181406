package gcx

// Context is a green context. Its zero value is none.
type Context struct{ handle uintptr }

// ContextPrivate asks for a green context that nobody else is given.
const ContextPrivate uint32 = 0x1

type contextParams struct{ structSize, flags uint32 }

// ContextInfo is what a context says of itself.
type ContextInfo struct {
	structSize  uint32
	Device      int32
	SMCount     uint32
	StreamCount uint32
	ID          uint64 // the same for two contexts exactly if they share a green context
}

// LiveContext is a green context that is in use.
type LiveContext struct {
	ID          uint64
	Device      int32
	SMCount     uint32
	HandleCount uint32
	StreamCount uint32
	Flags       uint32
	_           [3]uint32
	Resource    Resource
}

// NewContext makes a context over resources of one device, to be closed.
func NewContext(flags uint32, resources ...Resource) (Context, error) {
	params := contextParams{flags: flags}
	params.structSize = sizeOf(&params)
	var context Context
	err := check(func() Result {
		return c.ContextCreate(first(resources), uint32(len(resources)), &params, &context.handle)
	})
	return context, err
}

// ContextFromNative is a further handle, to be closed, for the context behind a CUcontext.
func ContextFromNative(native uintptr) (Context, error) {
	var context Context
	err := check(func() Result { return c.ContextFromNative(native, &context.handle) })
	return context, err
}

// Close gives the context up; its streams keep it.
func (context Context) Close() error {
	return check(func() Result { return c.ContextDestroy(context.handle) })
}

// Info tells what the context is.
func (context Context) Info() (ContextInfo, error) {
	var info ContextInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.ContextGetInfo(context.handle, &info) })
	return info, err
}

// Resource is the context's resource of a type.
func (context Context) Resource(of ResourceType) (Resource, error) {
	var resource Resource
	err := check(func() Result { return c.ContextGetResource(context.handle, of, &resource) })
	return resource, err
}

// Native is the CUcontext.
func (context Context) Native() (uintptr, error) {
	return native(context.handle, c.ContextNative, context.usable)
}

// NativeGreen is the CUgreenCtx.
func (context Context) NativeGreen() (uintptr, error) {
	return native(context.handle, c.ContextNativeGreen, context.usable)
}

func (context Context) usable(uintptr) Result {
	var info ContextInfo
	info.structSize = sizeOf(&info)
	return c.ContextGetInfo(context.handle, &info)
}

// native is for the functions that answer NULL instead of a result; another one has that.
func native(handle uintptr, ask func(uintptr) uintptr, why func(uintptr) Result) (uintptr, error) {
	var found uintptr
	err := check(func() Result {
		if found = ask(handle); found != 0 {
			return Success
		}
		if result := why(handle); result != Success && result != NotReady {
			return result
		}
		return InvalidHandle
	})
	return found, err
}

// Push makes the context current in the calling thread, so the goroutine has to stay on it until
// Pop: call runtime.LockOSThread before, and UnlockOSThread after Pop.
func (context Context) Push() error {
	return check(func() Result { return c.ContextPush(context.handle) })
}

// Pop takes off what the thread pushed last.
func Pop() (Context, error) {
	var context Context
	err := check(func() Result { return c.ContextPop(&context.handle) })
	return context, err
}

// Current is what the thread pushed last; the zero Context if that isn't current.
func Current() (Context, error) {
	var context Context
	err := check(func() Result { return c.ContextGetCurrent(&context.handle) })
	return context, err
}

// Synchronize waits for the work of all the context's streams.
func (context Context) Synchronize() error {
	return check(func() Result { return c.ContextSynchronize(context.handle) })
}

// Record captures in the event what was submitted so far.
func (context Context) Record(event Event) error {
	return check(func() Result { return c.ContextRecord(context.handle, event.handle) })
}

// Wait holds later work until the event's work has finished.
func (context Context) Wait(event Event) error {
	return check(func() Result { return c.ContextWait(context.handle, event.handle) })
}

// Contexts lists the green contexts in use on a device, or on all (-1).
func Contexts(device int32) ([]LiveContext, error) {
	return listed(func(room *LiveContext, capacity uint32, count *uint32) Result {
		return c.ContextList(device, room, capacity, count)
	})
}

// listed asks again while there is more than the room holds.
func listed[T any](ask func(room *T, capacity uint32, count *uint32) Result) ([]T, error) {
	var live []T
	for {
		var count uint32
		err := check(func() Result { return ask(first(live), uint32(len(live)), &count) })
		if err == nil {
			return live[:count], nil
		}
		if int(count) <= len(live) {
			return nil, err
		}
		live = make([]T, count)
	}
}
