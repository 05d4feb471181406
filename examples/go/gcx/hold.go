package gcx

// Hold is SMs that no other process has, as long as all take theirs in the same folder. Its zero
// value is none.
type Hold struct{ handle uintptr }

// HoldInherit lets programs that this one starts keep the hold too, until they end.
const HoldInherit uint32 = 0x1

// HoldParams is how to take a hold. Its zero value doesn't wait, and takes no less than asked.
type HoldParams struct {
	Name       string
	Folder     string // an absolute path; "": GCX_HOLD_FOLDER, as the process was started with, or the user's own
	Flags      uint32
	Family     Family // None: coscheduled
	MinSMCount uint32 // so many will do
	TimeoutMS  uint32 // milliseconds to wait for the SMs
	Cancel     Cancel // gives the wait up
}

type holdParams struct {
	structSize uint32
	flags      uint32
	family     Family
	minSMCount uint32
	timeoutMS  uint32
	reserved   uint32
	cancel     uintptr
	name       *byte
	folder     *byte
}

// MPSState tells whether contexts are shared by way of MPS.
type MPSState int32

const (
	MPSUnknown MPSState = 0 // the driver doesn't tell
	MPSOff     MPSState = 1
	MPSOn      MPSState = 2
)

// HoldInfo is what a hold says of itself.
type HoldInfo struct {
	structSize          uint32
	Family              Family
	Flags               uint32
	SMCount             uint32
	DeviceSMCount       uint32
	Joined              int32 // 1: by JoinHold
	Simulated           int32
	Lost                int32    // 1: somebody removed its file, and others may be given its SMs
	MPS                 MPSState // as the process saw it that took the hold
	MPSThreadPercentage float32
	ID                  uint64 // a random number, which tells it from all others
	SinceMS             uint64 // milliseconds since 1970
	Atoms               [8]uint64
	DeviceUUID          [16]byte
	name                [64]byte
}

// Name is what the hold was called: any bytes.
func (info HoldInfo) Name() string { return text(info.name[:]) }

// LiveHold is a hold of any process, or one that waits for it.
type LiveHold struct {
	ID                  uint64
	SinceMS             uint64
	UntilMS             uint64 // of one that waits: when it gives up; 0: never
	PID                 int32
	User                uint32
	Simulated           int32
	Waits               uint32 // 1: it has nothing yet
	Family              Family
	SMCount             uint32 // of one that waits: those it asked for, or Rest
	DeviceSMCount       uint32
	AtomCount           uint32
	AtomSMCount         uint32 // of each atom but the last
	LastAtomSMCount     uint32
	MPS                 MPSState
	MPSThreadPercentage float32
	Parent              uint64 // the ID of the reservation that it is a part of; 0: none
	_                   [6]uint32
	Atoms               [8]uint64 // atom n is bit n % 64 of word n / 64
	DeviceUUID          [16]byte
	name                [64]byte
	processName         [64]byte
	deviceName          [128]byte
}

// Name, ProcessName and DeviceName are any bytes: escape them where they are shown.
func (hold LiveHold) Name() string        { return text(hold.name[:]) }
func (hold LiveHold) ProcessName() string { return text(hold.processName[:]) }
func (hold LiveHold) DeviceName() string  { return text(hold.deviceName[:]) }

// TakeHold takes SMs of a device, or Rest of them, from all processes, to be given up by Close.
// While it waits other goroutines run.
func TakeHold(device int32, smCount uint32, params HoldParams) (Hold, error) {
	name, err := optionalText("gcx.TakeHold: the name", params.Name)
	if err != nil {
		return Hold{}, err
	}
	folder, err := optionalText("gcx.TakeHold: the folder", params.Folder)
	if err != nil {
		return Hold{}, err
	}
	raw := holdParams{
		flags: params.Flags, family: params.Family, minSMCount: params.MinSMCount,
		timeoutMS: params.TimeoutMS, cancel: params.Cancel.handle, name: name, folder: folder,
	}
	raw.structSize = sizeOf(&raw)
	var hold Hold
	err = check(func() Result { return c.HoldCreate(device, smCount, &raw, &hold.handle) })
	return hold, err
}

// JoinHold joins the hold of another process, by its token: it lasts until all who joined have
// closed it or ended. It opens no driver.
func JoinHold(token string) (Hold, error) {
	raw, err := cText("gcx.JoinHold: the token", token)
	if err != nil {
		return Hold{}, err
	}
	var hold Hold
	err = check(func() Result { return c.HoldJoin(raw, &hold.handle) })
	return hold, err
}

// Close gives the hold up. Leases that were acquired in it keep it.
func (hold Hold) Close() error {
	return check(func() Result { return c.HoldDestroy(hold.handle) })
}

// Token is what another process joins the hold by: to be put into its environment.
func (hold Hold) Token() (string, error) {
	token := make([]byte, 4096) // GCX_MAX_HOLD_TOKEN, which suffices always
	err := check(func() Result { return c.HoldGetToken(hold.handle, &token[0], uint32(len(token))) })
	return text(token), err
}

// Info tells what the hold has. It opens no driver.
func (hold Hold) Info() (HoldInfo, error) {
	var info HoldInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.HoldGetInfo(hold.handle, &info) })
	return info, err
}

// Resource is the hold's SMs in this process, to be split and to make contexts of, which don't
// keep the hold.
func (hold Hold) Resource() (Resource, error) {
	var resource Resource
	err := check(func() Result { return c.HoldGetResource(hold.handle, &resource) })
	return resource, err
}

// Acquire takes a lease out of the hold's SMs alone. The lease keeps the hold.
func (hold Hold) Acquire(smCount uint32, params LeaseParams) (Lease, error) {
	return acquire(params, func(raw *leaseParams, lease *uintptr) Result {
		return c.HoldAcquireLease(hold.handle, smCount, raw, lease)
	})
}

// Holds lists the holds of a folder, those that have SMs and then those that wait; "" as in
// HoldParams. It opens no driver.
func Holds(folder string) ([]LiveHold, error) {
	raw, err := optionalText("gcx.Holds: the folder", folder)
	if err != nil {
		return nil, err
	}
	return listed(func(room *LiveHold, capacity uint32, count *uint32) Result {
		return c.HoldList(raw, room, capacity, count)
	})
}

// MPSInfo is whether a device is shared by way of MPS. Without it processes take turns, and holds
// isolate nothing.
type MPSInfo struct {
	structSize       uint32
	State            MPSState // of this process
	ThreadPercentage float32  // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of C's environment; 0: not set
	reserved         uint32
}

// MPS tells whether contexts of this process on the device are shared by way of MPS.
func MPS(device int32) (MPSInfo, error) {
	var info MPSInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.MPSGetInfo(device, &info) })
	return info, err
}
