package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Context is a green context.
type Context raw.Context

// NewContext creates a context over resources of one device. flags are 0 or raw.ContextPrivate.
func NewContext(flags uint32, resources ...Resource) (Context, error) {
	params := sized(&raw.ContextParams{Flags: flags})
	return created[Context](func(context *raw.Context) Result {
		return Raw.ContextCreate(first(resources).raw(), length(resources), params, context)
	})
}

// Push makes the context current in the calling thread, so the goroutine has to stay on it until
// Pop: call runtime.LockOSThread before, and UnlockOSThread after Pop.
func (context Context) Push() error {
	return check(func() Result { return Raw.ContextPush(raw.Context(context)) })
}

// Pop removes what the thread pushed last, and returns it.
func Pop() (Context, error) { return created[Context](Raw.ContextPop) }

// Current returns what the thread pushed last; the zero Context if that isn't current.
func Current() (Context, error) { return created[Context](Raw.ContextGetCurrent) }

// Contexts lists the green contexts in use on a device, or on all (-1).
func Contexts(device int32) ([]raw.LiveContext, error) {
	return listed(func(room *raw.LiveContext, capacity uint32, count *uint32) Result {
		return Raw.ContextList(device, room, capacity, count)
	})
}
