package gcx

import "example.org/gcx/bindings/go/generated/raw"

// OpenDriver opens a driver before any other call needs one: a path, a name, or a simulated one such
// as "sim:h100@13.0". By default gcx opens GCX_DRIVER of the environment, or libcuda.so.1.
func OpenDriver(driver string) error {
	name, err := cText("gcx.OpenDriver: the driver", driver)
	if err != nil {
		return err
	}
	return check(func() Result { return Raw.DriverOpen(name) })
}

// Driver returns information about the open driver: Capabilities[raw.CapabilityWorkqueues] is 1 if it
// has workqueues.
func Driver() (raw.DriverInfo, error) { return filled(Raw.DriverGetInfo) }

// DeviceCount returns the number of GPUs; their ordinals are 0 to count - 1.
func DeviceCount() (int32, error) { return got(Raw.DeviceGetCount) }

// Device returns information about a GPU.
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
// parallelism is loaded. It returns none until then.
func SharedSMs(device int32) ([]uint32, error) {
	return ids(func(room *uint32, capacity uint32, count *uint32) Result {
		return Raw.DeviceFindSharedSMs(device, room, capacity, count)
	})
}
