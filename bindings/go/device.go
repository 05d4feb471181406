package gcx

import "example.org/gcx/bindings/go/generated/raw"

// OpenDriver chooses the driver before anything else needed it: a path, a name, or as in
// "sim:h100@13.0" the simulated one. Without it the environment's GCX_DRIVER is opened, or
// libcuda.so.1.
func OpenDriver(driver string) error {
	name, err := cText("gcx.OpenDriver: the driver", driver)
	if err != nil {
		return err
	}
	return check(func() Result { return Raw.DriverOpen(name) })
}

// Driver returns which driver is open.
func Driver() (raw.DriverInfo, error) { return filled(Raw.DriverGetInfo) }

// Capability returns whether the driver can do something, and since which version.
func Capability(of raw.Capability) (raw.CapabilityInfo, error) {
	return filled(func(info *raw.CapabilityInfo) Result { return Raw.CapabilityGetInfo(of, info) })
}

// DeviceCount returns how many GPUs there are; they are named by 0 to count - 1.
func DeviceCount() (int32, error) { return got(Raw.DeviceGetCount) }

// Device returns what a GPU is.
func Device(device int32) (raw.DeviceInfo, error) {
	return filled(func(info *raw.DeviceInfo) Result { return Raw.DeviceGetInfo(device, info) })
}

// StreamPriorities returns the range of priorities; lower numbers are more urgent.
func StreamPriorities(device int32) (least, greatest int32, err error) {
	err = check(func() Result { return Raw.DeviceGetStreamPriorityRange(device, &least, &greatest) })
	return least, greatest, err
}

// MapSMs reads which SMs each atom of a family has, for Resource.SMIDs.
func MapSMs(device int32, family raw.SMFamily) error {
	return check(func() Result { return Raw.DeviceMapSMs(device, family) })
}

// SharedSMs returns the SMs that all partitions of this process share because a module with dynamic
// parallelism is loaded. It returns none before.
func SharedSMs(device int32) ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return Raw.DeviceGetSharedSMs(device, room, capacity, count)
	})
}

// MPS returns whether contexts of this process on the device are shared by way of MPS. Without MPS
// processes take turns, and reservations isolate nothing.
func MPS(device int32) (raw.MPSInfo, error) {
	return filled(func(info *raw.MPSInfo) Result { return Raw.MPSGetInfo(device, info) })
}
