package gcx

// Lease is SMs that no other lease of the process has, unless both share. Its zero value is none.
type Lease struct{ handle uintptr }

// Cancel gives up the waits that were given it. Its zero value is none.
type Cancel struct{ handle uintptr }

// What leases are asked for and changed with.
const (
	Rest           uint32 = 0xffffffff // as a count: all that can be had; a count of 0 is refused
	Forever        uint32 = 0xffffffff // as a time-out
	LeaseShared    uint32 = 0x1        // others that are shared may have its SMs too
	LeaseOwnQueues uint32 = 0x2        // [13.1+] refuse a driver that has no queues of its own for it
	ResizeAtOnce   uint32 = 0x1        // starts on what is free, and waits for nobody
)

// LeaseParams is how to acquire a lease. Its zero value doesn't wait, and takes no less than asked.
type LeaseParams struct {
	Name             string
	Flags            uint32
	Family           Family // None: coscheduled
	MinSMCount       uint32 // so many will do
	ExclusiveSMCount uint32 // of a shared lease: so many are its alone
	TimeoutMS        uint32 // milliseconds to wait for the SMs
	Cancel           Cancel // gives the wait up
}

type leaseParams struct {
	structSize       uint32
	flags            uint32
	family           Family
	minSMCount       uint32
	exclusiveSMCount uint32
	timeoutMS        uint32
	cancel           uintptr
	name             *byte
}

// LeaseInfo is what a lease says of itself.
type LeaseInfo struct {
	structSize       uint32
	Device           int32
	Family           Family
	Flags            uint32
	SMCount          uint32
	ExclusiveSMCount uint32
	StreamCount      uint32
	reserved         uint32
	ID               uint64
	Changes          uint64 // how often its SMs have changed
	name             [64]byte
}

// Name is what the lease was called.
func (info LeaseInfo) Name() string { return text(info.name[:]) }

// LiveLease is a lease of the process, or a request that waits.
type LiveLease struct {
	ID               uint64
	Device           int32
	Family           Family
	Flags            uint32
	SMCount          uint32 // of one that waits: those it asked for, or Rest
	ExclusiveSMCount uint32
	StreamCount      uint32
	Waits            uint32 // 1: it has nothing yet
	_                [7]uint32
	name             [64]byte
	Resource         Resource
}

// Name is what the lease was called.
func (live LiveLease) Name() string { return text(live.name[:]) }

// LeaseSize is what a lease is to have.
type LeaseSize struct {
	Lease    Lease
	SMCount  uint32 // or Rest
	reserved uint32
}

// Acquire takes SMs of a device, or Rest of them, to be given up by Close. While it waits other
// goroutines run.
func Acquire(device int32, smCount uint32, params LeaseParams) (Lease, error) {
	return acquire(params, func(raw *leaseParams, lease *uintptr) Result {
		return c.LeaseAcquire(device, smCount, raw, lease)
	})
}

// acquire asks for a lease by what waits for it.
func acquire(params LeaseParams, ask func(*leaseParams, *uintptr) Result) (Lease, error) {
	name, err := optionalText("gcx.Acquire: a lease's name", params.Name)
	if err != nil {
		return Lease{}, err
	}
	raw := leaseParams{
		flags: params.Flags, family: params.Family, minSMCount: params.MinSMCount,
		exclusiveSMCount: params.ExclusiveSMCount, timeoutMS: params.TimeoutMS,
		cancel: params.Cancel.handle, name: name,
	}
	raw.structSize = sizeOf(&raw)
	var lease Lease
	err = check(func() Result { return ask(&raw, &lease.handle) })
	return lease, err
}

// Close gives the lease up: its SMs are free at once, its work finishes, its streams end.
func (lease Lease) Close() error {
	return check(func() Result { return c.LeaseRelease(lease.handle) })
}

// Resize gives leases other sizes, all in one operation or none. Streams follow: Stream.Native is
// of the SMs that the lease has at that call, so take it anew for each step.
func Resize(flags uint32, sizes ...LeaseSize) error {
	return check(func() Result {
		return c.LeaseResize(first(sizes), uint32(len(sizes)), flags)
	})
}

// Prepare makes the contexts that Resize would need, and changes nothing.
func Prepare(sizes ...LeaseSize) error {
	return check(func() Result { return c.LeasePrepare(first(sizes), uint32(len(sizes))) })
}

// HandOver closes the lease and gives all its SMs to another.
func (lease Lease) HandOver(to Lease, flags uint32) error {
	return check(func() Result { return c.LeaseHandOver(lease.handle, to.handle, flags) })
}

// Info tells what the lease has.
func (lease Lease) Info() (LeaseInfo, error) {
	var info LeaseInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.LeaseGetInfo(lease.handle, &info) })
	return info, err
}

// Resource is the SMs that the lease has now.
func (lease Lease) Resource() (Resource, error) {
	var resource Resource
	err := check(func() Result { return c.LeaseGetResource(lease.handle, &resource) })
	return resource, err
}

// NewStream makes a stream that follows the lease, to be closed. Lower priorities are more urgent.
func (lease Lease) NewStream(priority int32) (Stream, error) {
	params := streamParams{priority: priority}
	params.structSize = sizeOf(&params)
	var stream Stream
	err := check(func() Result {
		return c.LeaseStreamCreate(lease.handle, &params, &stream.handle)
	})
	return stream, err
}

// Synchronize waits for the work of the lease's streams.
func (lease Lease) Synchronize() error {
	return check(func() Result { return c.LeaseSynchronize(lease.handle) })
}

// Query tells whether that work has finished.
func (lease Lease) Query() (bool, error) {
	return finished(func() Result { return c.LeaseQuery(lease.handle) })
}

// Leases lists the leases of a device, or of all (-1), then who waits for one.
func Leases(device int32) ([]LiveLease, error) {
	return listed(func(room *LiveLease, capacity uint32, count *uint32) Result {
		return c.LeaseList(device, room, capacity, count)
	})
}

// NewCancel makes what waits are given up with, to be closed.
func NewCancel() (Cancel, error) {
	var cancel Cancel
	err := check(func() Result { return c.CancelCreate(&cancel.handle) })
	return cancel, err
}

// Signal gives up all waits with it, for good. From another goroutine than the one that waits.
func (cancel Cancel) Signal() error {
	return check(func() Result { return c.CancelSignal(cancel.handle) })
}

// Close gives the handle up, and no wait.
func (cancel Cancel) Close() error {
	return check(func() Result { return c.CancelDestroy(cancel.handle) })
}
