package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Event marks a point in the work of streams.
type Event raw.Event

// NewEvent creates an event on a device. flags are raw.EventTiming and raw.EventBlockingSync.
func NewEvent(device int32, flags uint32) (Event, error) {
	return created[Event](func(event *raw.Event) Result { return Raw.EventCreate(device, flags, event) })
}

// EventFromNative returns a handle for a CUevent that other code created.
func EventFromNative(native uintptr) (Event, error) {
	return created[Event](func(event *raw.Event) Result { return Raw.EventFromNative(native, event) })
}

// Elapsed returns the milliseconds from start's work to the event's.
func (event Event) Elapsed(start Event) (float32, error) {
	return got(func(milliseconds *float32) Result {
		return Raw.EventGetElapsed(raw.Event(start), raw.Event(event), milliseconds)
	})
}
