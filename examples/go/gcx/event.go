package gcx

// Event marks a point in the work of streams. Its zero value is none.
type Event struct{ handle uintptr }

// The flags of an event: it takes times; threads that wait for it sleep.
const (
	EventTiming   uint32 = 0x1
	EventBlocking uint32 = 0x2
)

// NewEvent makes an event on a device, to be closed.
func NewEvent(device int32, flags uint32) (Event, error) {
	var event Event
	err := check(func() Result { return c.EventCreate(device, flags, &event.handle) })
	return event, err
}

// EventFromNative is a handle, to be closed, for a CUevent that somebody else made.
func EventFromNative(native uintptr) (Event, error) {
	var event Event
	err := check(func() Result { return c.EventFromNative(native, &event.handle) })
	return event, err
}

// Close gives the event up.
func (event Event) Close() error {
	return check(func() Result { return c.EventDestroy(event.handle) })
}

// Native is the CUevent.
func (event Event) Native() (uintptr, error) {
	return native(event.handle, c.EventNative, c.EventQuery)
}

// Synchronize waits for the event's work.
func (event Event) Synchronize() error {
	return check(func() Result { return c.EventSynchronize(event.handle) })
}

// Query tells whether the event's work has finished.
func (event Event) Query() (bool, error) {
	return finished(func() Result { return c.EventQuery(event.handle) })
}

// Elapsed is the milliseconds from start's work to the event's.
func (event Event) Elapsed(start Event) (float32, error) {
	var milliseconds float32
	err := check(func() Result {
		return c.EventGetElapsed(start.handle, event.handle, &milliseconds)
	})
	return milliseconds, err
}
