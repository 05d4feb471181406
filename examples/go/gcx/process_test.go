package gcx

import (
	"fmt"
	"strings"
	"testing"
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
