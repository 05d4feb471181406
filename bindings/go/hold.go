package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Hold is SMs that no other process has, as long as all take theirs in the same folder.
type Hold raw.Hold

// HoldParams says how to take a hold. Its zero value doesn't wait, and takes no less than asked.
type HoldParams struct {
	Name       string
	Folder     string       // absolute; "": GCX_HOLD_FOLDER, as the process was started with, or the user's own
	Flags      uint32       // 0 or raw.HoldInherit
	Family     raw.SMFamily // 0: coscheduled
	MinSMCount uint32       // the smallest acceptable count; 0: the requested one
	TimeoutMS  uint32
	Cancel     Cancel
}

// TakeHold takes SMs of a device, or Rest of them, from all processes, to be given back by Close.
// While it waits other goroutines run.
func TakeHold(device int32, smCount uint32, params HoldParams) (Hold, error) {
	name, err := optionalText("gcx.TakeHold: the name", params.Name)
	if err != nil {
		return 0, err
	}
	folder, err := optionalText("gcx.TakeHold: the folder", params.Folder)
	if err != nil {
		return 0, err
	}
	c := sized(&raw.HoldParams{
		Flags: params.Flags, Family: params.Family, MinSMCount: params.MinSMCount,
		TimeoutMS: params.TimeoutMS, Cancel: raw.Cancel(params.Cancel), Name: name, Folder: folder,
	})
	hold, err := got(func(hold *raw.Hold) Result { return Raw.HoldCreate(device, smCount, c, hold) })
	return Hold(hold), err
}

// JoinHold joins the hold of another process, by its token: it lasts until all that joined have
// closed it or ended. It opens no driver.
func JoinHold(token string) (Hold, error) {
	text, err := cText("gcx.JoinHold: the token", token)
	if err != nil {
		return 0, err
	}
	hold, err := got(func(hold *raw.Hold) Result { return Raw.HoldJoin(text, hold) })
	return Hold(hold), err
}

// Close gives the hold back. Leases that were acquired in it keep it.
func (hold Hold) Close() error {
	return check(func() Result { return Raw.HoldDestroy(raw.Hold(hold)) })
}

// Token returns what another process joins the hold by: put it into its environment.
func (hold Hold) Token() (string, error) {
	token, err := got(func(room *[raw.MaxHoldToken]byte) Result {
		return Raw.HoldGetToken(raw.Hold(hold), &room[0], raw.MaxHoldToken)
	})
	return raw.String(token[:]), err
}

// Info returns what the hold has. It opens no driver.
func (hold Hold) Info() (raw.HoldInfo, error) {
	return filled(func(info *raw.HoldInfo) Result { return Raw.HoldGetInfo(raw.Hold(hold), info) })
}

// Resource returns the hold's SMs in this process, to be split and to make contexts of, which don't
// keep the hold.
func (hold Hold) Resource() (Resource, error) {
	return resourceOf(func(to *raw.Resource) Result {
		return Raw.HoldGetResource(raw.Hold(hold), to)
	})
}

// Acquire takes a lease out of the hold's SMs only. The lease keeps the hold.
func (hold Hold) Acquire(smCount uint32, params LeaseParams) (Lease, error) {
	return acquire(params, func(params *raw.LeaseParams, lease *raw.Lease) Result {
		return Raw.HoldAcquireLease(raw.Hold(hold), smCount, params, lease)
	})
}

// Holds lists the holds of a folder, those that have SMs and then those that wait; "" as in
// HoldParams. It opens no driver.
func Holds(folder string) ([]raw.LiveHold, error) {
	text, err := optionalText("gcx.Holds: the folder", folder)
	if err != nil {
		return nil, err
	}
	return listed(func(room *raw.LiveHold, capacity uint32, count *uint32) Result {
		return Raw.HoldList(text, room, capacity, count)
	})
}
