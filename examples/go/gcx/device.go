package gcx

// DriverInfo is the open driver.
type DriverInfo struct {
	Version   int  // 13000 is CUDA 13.0
	Simulated bool // no GPU is involved
	Library   string
}

type driverInfo struct {
	structSize    uint32
	version       int32
	headerVersion int32
	simulated     int32
	library       [256]byte
}

// OpenDriver chooses the driver before anything else needed it: a path, a name, or as in
// "sim:h100@13.0" the simulated one. Without it the environment's GCX_DRIVER is opened, or
// libcuda.so.1.
func OpenDriver(driver string) error {
	return check(func() Result { return c.DriverOpen(driver) })
}

// Driver tells which driver is open.
func Driver() (DriverInfo, error) {
	var info driverInfo
	info.structSize = sizeOf(&info)
	if err := check(func() Result { return c.DriverGetInfo(&info) }); err != nil {
		return DriverInfo{}, err
	}
	return DriverInfo{int(info.version), info.simulated != 0, text(info.library[:])}, nil
}

type capabilityInfo struct {
	structSize      uint32
	available       int32
	requiredVersion int32
	_               int32
	name            uintptr
}

// HasCapability tells whether the driver can do what gcx_capability has at this number.
func HasCapability(number int32) (bool, error) {
	var info capabilityInfo
	info.structSize = sizeOf(&info)
	err := check(func() Result { return c.CapabilityInfo(number, &info) })
	return info.available != 0, err
}

// DeviceInfo is what a GPU is.
type DeviceInfo struct {
	Name                   string
	ComputeCapabilityMajor int32
	ComputeCapabilityMinor int32
	SMCount                uint32
}

type deviceInfo struct {
	structSize             uint32
	computeCapabilityMajor int32
	computeCapabilityMinor int32
	smCount                uint32
	minPartitionSize       uint32
	coscheduledAlignment   uint32
	localityDomainCount    uint32
	name                   [128]byte
	uuid                   [16]byte
}

// DeviceCount is how many GPUs there are; they are named by 0 to count - 1.
func DeviceCount() (int32, error) {
	var count int32
	err := check(func() Result { return c.DeviceGetCount(&count) })
	return count, err
}

// Device tells what a GPU is.
func Device(device int32) (DeviceInfo, error) {
	var info deviceInfo
	info.structSize = sizeOf(&info)
	if err := check(func() Result { return c.DeviceGetInfo(device, &info) }); err != nil {
		return DeviceInfo{}, err
	}
	return DeviceInfo{
		Name:                   text(info.name[:]),
		ComputeCapabilityMajor: info.computeCapabilityMajor,
		ComputeCapabilityMinor: info.computeCapabilityMinor,
		SMCount:                info.smCount,
	}, nil
}

// StreamPriorities is the range of priorities; lower numbers are more urgent.
func StreamPriorities(device int32) (least, greatest int32, err error) {
	err = check(func() Result { return c.DevicePriorities(device, &least, &greatest) })
	return least, greatest, err
}

// MapSMs reads which SMs each atom of a family holds, for Resource.SMIDs.
func MapSMs(device int32, family Family) error {
	return check(func() Result { return c.DeviceMapSMs(device, family) })
}

// SharedSMs finds the SMs that all partitions of this process share, because a module with dynamic
// parallelism is loaded; none are found before.
func SharedSMs(device int32) ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return c.DeviceGetSharedSMs(device, room, capacity, count)
	})
}
