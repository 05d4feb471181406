package gcx

// Where the number of connections comes from.
const (
	QueueSourceDefault     int32 = 0 // CUDA's own number
	QueueSourceEnvironment int32 = 1 // CUDA_DEVICE_MAX_CONNECTIONS
)

// MaxConnections is the most that CUDA takes.
const MaxConnections uint32 = 32

// QueueInfo is how many of the hardware's queues the partitions of the process share.
type QueueInfo struct {
	structSize  uint32
	Connections uint32 // 0: unknown
	Source      int32
	Started     int32 // 1: CUDA has started, and the number stays
	Certain     int32 // 0: the variable was changed, and CUDA may have read another number
	TooFew      int32 // 1: partitions wait for each other
}

// Queues tells how many there are. It opens no driver.
func Queues() (QueueInfo, error) {
	var info QueueInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.QueueGetInfo(&info) })
	return info, err
}

// RequestConnections asks for as many before CUDA starts: at the beginning of main. It sets C's
// environment, which os.Getenv doesn't show, and os.Setenv doesn't change.
func RequestConnections(connections uint32) error {
	return check(func() Result { return c.QueueRequestConnections(connections) })
}

// ReportPartitionCounts tells libraries that ask in a thread where a partition is current (see
// Context.Push) that partition's SMs, not the device's. It comes before anything loads libcuda.so.1.
func ReportPartitionCounts() error {
	return check(func() Result { return c.ReportPartitionCounts() })
}

// ReportsPartitionCounts tells whether that was done. It opens no driver.
func ReportsPartitionCounts() (bool, error) {
	var reporting int32
	err := check(func() Result { return c.ReportsPartitionCounts(&reporting) })
	return reporting != 0, err
}

// PublishStart publishes this process's leases for the user's other processes. "" is the program's
// name.
func PublishStart(name string) error {
	raw, err := optionalText("gcx.PublishStart: the name", name)
	if err != nil {
		return err
	}
	return check(func() Result { return c.PublishStart(raw) })
}

// PublishStop ends that. It succeeds also where nothing is published.
func PublishStop() error { return check(func() Result { return c.PublishStop() }) }

// PublishedProcess is a process that publishes.
type PublishedProcess struct {
	Process       uint64 // a random number, which tells it from all others
	SinceMS       uint64 // milliseconds since 1970
	PID           int32
	Simulated     int32
	DriverVersion int32
	DeviceCount   uint32
	LeaseCount    uint32
	UnlistedCount uint32 // leases that aren't listed
	_             [8]uint32
	name          [64]byte
}

// Name is any bytes: escape them where they are shown.
func (process PublishedProcess) Name() string { return text(process.name[:]) }

// PublishedLease is a lease of such a process.
type PublishedLease struct {
	Process          uint64
	ID               uint64
	Changes          uint64
	PID              int32
	Simulated        int32
	Device           int32 // in that process; DeviceUUID tells the same one in others
	Family           Family
	Flags            uint32
	Waits            uint32 // 1: it has nothing yet
	SMCount          uint32 // of one that waits: those it asked for, or Rest
	ExclusiveSMCount uint32
	StreamCount      uint32
	DeviceSMCount    uint32
	AtomCount        uint32
	AtomSMCount      uint32 // of each atom but the last
	LastAtomSMCount  uint32
	_                [11]uint32
	ExclusiveAtoms   [8]uint64 // atom n is bit n % 64 of word n / 64
	SharedAtoms      [8]uint64
	DeviceUUID       [16]byte
	name             [64]byte
	processName      [64]byte
	deviceName       [128]byte
}

// Name, ProcessName and DeviceName are any bytes: escape them where they are shown.
func (lease PublishedLease) Name() string        { return text(lease.name[:]) }
func (lease PublishedLease) ProcessName() string { return text(lease.processName[:]) }
func (lease PublishedLease) DeviceName() string  { return text(lease.deviceName[:]) }

// PublishedProcesses lists the user's processes that publish, this one too if it does.
func PublishedProcesses() ([]PublishedProcess, error) {
	return listed(c.PublishedProcessList)
}

// PublishedLeases lists their leases: of each process those that hold SMs, then those that wait.
func PublishedLeases() ([]PublishedLease, error) {
	return listed(c.PublishedLeaseList)
}
