package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Lease is the exclusive use of some SMs within this process, unless it is shared.
type Lease raw.Lease

// Cancel cancels waits.
type Cancel raw.Cancel

// LeaseParams are the options of a lease. The zero value doesn't wait, and accepts no smaller count.
type LeaseParams struct {
	Name             string
	Flags            uint32       // raw.Lease...
	Family           raw.SMFamily // 0: coscheduled
	MinSMCount       uint32       // the smallest acceptable count; 0: the requested one
	ExclusiveSMCount uint32       // of a shared lease: the SMs that it has exclusively
	TimeoutMS        uint32
	Cancel           Cancel
	Reservation      Reservation // acquire within its SMs, on device -1; 0: within the device
}

// LeaseSize is the SM count that a lease is to have.
type LeaseSize struct {
	Lease   Lease
	SMCount uint32 // or Rest; 0 if Parked
	Parked  bool   // no SMs: the streams fail with raw.ErrorLeaseParked until the next resize
}

// Acquire acquires SMs of a device, or Rest of them, until Close. While it waits, other goroutines
// run.
func Acquire(device int32, smCount uint32, params LeaseParams) (Lease, error) {
	name, err := optionalText("gcx.Acquire: a lease's name", params.Name)
	if err != nil {
		return 0, err
	}
	c := sized(&raw.LeaseParams{
		Flags: params.Flags, Family: params.Family, MinSMCount: params.MinSMCount,
		ExclusiveSMCount: params.ExclusiveSMCount, TimeoutMS: params.TimeoutMS,
		Cancel: raw.Cancel(params.Cancel), Name: name, Reservation: raw.Reservation(params.Reservation),
	})
	return created[Lease](func(lease *raw.Lease) Result {
		return Raw.LeaseAcquire(device, smCount, c, lease)
	})
}

func rawSizes(sizes []LeaseSize) []raw.LeaseSize {
	of := make([]raw.LeaseSize, len(sizes))
	for i, size := range sizes {
		of[i].Lease, of[i].SMCount = raw.Lease(size.Lease), size.SMCount
		if size.Parked {
			of[i].Flags = raw.SizeParked
		}
	}
	return of
}

// Resize changes the SM counts of leases, all in one operation or none. Streams follow: Stream.Native
// returns a CUstream of the present SMs, so call it for each step. flags are raw.Resize...
func Resize(flags uint32, sizes ...LeaseSize) error {
	return check(func() Result {
		return Raw.LeaseResize(first(rawSizes(sizes)), length(sizes), flags)
	})
}

// Prepare creates the contexts that Resize needs, so that it takes microseconds later.
func Prepare(sizes ...LeaseSize) error {
	return check(func() Result { return Raw.LeasePrepare(first(rawSizes(sizes)), length(sizes)) })
}

// NewStream creates a stream that follows the lease. Lower priorities are more urgent.
func (lease Lease) NewStream(priority int32) (Stream, error) {
	params := sized(&raw.StreamParams{Priority: priority})
	return created[Stream](func(stream *raw.Stream) Result {
		return Raw.LeaseStreamCreate(raw.Lease(lease), params, stream)
	})
}

// Leases lists the leases of a device, or of all (-1), then the requests that wait.
func Leases(device int32) ([]raw.LiveLease, error) {
	return listed(func(room *raw.LiveLease, capacity uint32, count *uint32) Result {
		return Raw.LeaseList(device, room, capacity, count)
	})
}

// NewCancel creates a Cancel that isn't signalled.
func NewCancel() (Cancel, error) { return created[Cancel](Raw.CancelCreate) }
