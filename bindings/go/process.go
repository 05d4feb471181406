package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Queues returns how many of the hardware's queues the partitions of the process share. It opens no
// driver.
func Queues() (raw.QueueInfo, error) { return filled(Raw.QueueGetInfo) }

// RequestConnections asks for as many before CUDA starts: at the beginning of main. It sets C's
// environment, which os.Getenv doesn't show, and os.Setenv doesn't change.
func RequestConnections(connections uint32) error {
	return check(func() Result { return Raw.QueueRequestConnections(connections) })
}

// ReportPartitionCounts reports to libraries that ask in a thread where a partition is current (see
// Context.Push) that partition's SMs, not the device's. Call it before anything loads libcuda.so.1.
func ReportPartitionCounts() error { return check(Raw.DriverReportPartitionCounts) }

// ReportsPartitionCounts returns whether that was done. It opens no driver.
func ReportsPartitionCounts() (bool, error) {
	reporting, err := got(Raw.DriverReportsPartitionCounts)
	return reporting != 0, err
}

// PublishStart publishes this process's leases for the user's other processes. "" is the program's
// name.
func PublishStart(name string) error {
	text, err := optionalText("gcx.PublishStart: the name", name)
	if err != nil {
		return err
	}
	return check(func() Result { return Raw.PublishStart(text) })
}

// PublishStop ends that. It succeeds also if nothing is published.
func PublishStop() error { return check(Raw.PublishStop) }

// PublishedProcesses lists the user's processes that publish, this one too if it does.
func PublishedProcesses() ([]raw.PublishedProcess, error) { return listed(Raw.PublishedProcessList) }

// PublishedLeases lists their leases: of each process those that have SMs, then those that wait.
func PublishedLeases() ([]raw.PublishedLease, error) { return listed(Raw.PublishedLeaseList) }
