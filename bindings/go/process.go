package gcx

import "example.org/gcx/bindings/go/generated/raw"

// Queues returns how many of the hardware's queues the partitions of the process share. It opens no
// driver.
func Queues() (raw.QueueInfo, error) { return filled(Raw.QueueGetInfo) }

// RequestConnections requests connections before CUDA starts: call it first in main. It sets C's
// environment, which os.Getenv doesn't read and os.Setenv doesn't change.
func RequestConnections(connections uint32) error {
	return check(func() Result { return Raw.QueueRequestConnections(connections) })
}

// ReportPartitionCounts makes libraries that ask CUDA for the SM count in a thread where a partition is
// current (see Context.Push) see the partition's. Call it before any code loads libcuda.so.1.
func ReportPartitionCounts() error { return check(Raw.DriverReportPartitionCounts) }

// PublishStart publishes this process's leases for the user's other processes. "" is the program's
// name.
func PublishStart(name string) error {
	text, err := optionalText("gcx.PublishStart: the name", name)
	if err != nil {
		return err
	}
	return check(func() Result { return Raw.PublishStart(text) })
}

// PublishStop stops publishing. It succeeds also if nothing is published.
func PublishStop() error { return check(Raw.PublishStop) }

// PublishedProcesses lists the user's processes that publish, also this one.
func PublishedProcesses() ([]raw.PublishedProcess, error) { return listed(Raw.PublishedProcessList) }

// PublishedLeases lists their leases: of each process the acquired ones, then the waiting requests.
func PublishedLeases() ([]raw.PublishedLease, error) { return listed(Raw.PublishedLeaseList) }
