package gcx

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
)

func askForQueues() error {
	if err := RequestConnections(MaxConnections); err != nil {
		return err
	}
	if err := OpenDriver(machine); err != nil {
		return err
	}
	info, err := Queues()
	if err == nil && (info.Connections != MaxConnections || info.Source != QueueSourceEnvironment || info.Started != 1) {
		err = fmt.Errorf("%+v", info)
	}
	return err
}

// CUDA has started here, with its own number.
func TestQueues(t *testing.T) {
	info, err := Queues()
	if err != nil || info.Connections != 8 || info.Started != 1 || info.TooFew != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	runs(t, "ask for queues in time")
	refused(t, "more than CUDA takes", RequestConnections(MaxConnections+1), InvalidValue)
	refused(t, "too late", RequestConnections(MaxConnections), NotPermitted)
	if err := RequestConnections(8); err != nil {
		t.Error(err)
	}
	// Driver 13.0 has none.
	_, own := Acquire(0, 8, LeaseParams{Flags: LeaseOwnQueues})
	refused(t, "queues of its own", own, NotSupported)
}

// A library that knows nothing of gcx counts the SMs of the partition that is current.
func askForCounts() error {
	if reporting, err := ReportsPartitionCounts(); reporting || err != nil {
		return fmt.Errorf("reporting %v before, %w", reporting, err)
	}
	for i := 0; i < 2; i++ {
		if err := ReportPartitionCounts(); err != nil {
			return err
		}
	}
	if reporting, err := ReportsPartitionCounts(); !reporting || err != nil {
		return fmt.Errorf("reporting %v, %w", reporting, err)
	}
	libcuda, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW)
	if err != nil {
		return err
	}
	var attribute func(sms *int32, attribute, device int32) int32
	purego.RegisterLibFunc(&attribute, libcuda, "cuDeviceGetAttribute")
	counted := func(want int32) error {
		var sms int32
		if result := attribute(&sms, 16, 0); result != 0 || sms != want {
			return fmt.Errorf("counted %d SMs, not %d; %d", sms, want, result)
		}
		return nil
	}
	context, _, err := newStream(0, 24)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := counted(132); err != nil {
		return err
	}
	if err := context.Push(); err != nil {
		return err
	}
	return counted(24)
}

func TestLibrariesCountPartitions(t *testing.T) {
	runs(t, "ask for counts in time", "GCX_DRIVER="+machine)
	if reporting, err := ReportsPartitionCounts(); reporting || err != nil {
		t.Error(reporting, err)
	}
}

func TestLeasesArePublished(t *testing.T) {
	if found, err := PublishedLeases(); err != nil || len(found) != 0 {
		t.Fatal(found, err)
	}
	lease := acquired(t, 0, 32, LeaseParams{Name: "decode"})
	if err := PublishStart("engine"); err != nil {
		t.Fatal(err)
	}
	found, err := PublishedProcesses()
	if err != nil || len(found) != 1 || found[0].Name() != "engine" || found[0].LeaseCount != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	leases, err := PublishedLeases()
	if err != nil || len(leases) != 1 || leases[0].Name() != "decode" || leases[0].SMCount != 32 ||
		leases[0].ExclusiveAtoms[0] != 0xf || leases[0].ProcessName() != "engine" ||
		!strings.Contains(leases[0].DeviceName(), "H100") {
		t.Errorf("%+v, %v", leases, err)
	}
	refused(t, "a name with a byte 0", PublishStart("en\x00gine"), InvalidValue)
	refused(t, "a long name", PublishStart(strings.Repeat("n", 64)), InvalidValue)
	if err := PublishStart(""); err != nil {
		t.Error(err)
	}
	if found, err = PublishedProcesses(); err != nil || found[0].Name() == "engine" || found[0].Name() == "" {
		t.Errorf("%+v, %v", found, err)
	}
	for i := 0; i < 2; i++ {
		if err := PublishStop(); err != nil {
			t.Error(err)
		}
	}
	if found, err = PublishedProcesses(); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	allClosed(t, lease)
}
