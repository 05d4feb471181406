package gcx

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/gcx/bindings/go/generated/raw"
)

func TestClosedObjectIsRefused(t *testing.T) {
	context, stream, err := newStream(0, 24)
	noError(t, err)
	event := must[Event](t)(NewEvent(0, raw.EventTiming))
	lease := must[Lease](t)(Acquire(0, 8, LeaseParams{}))
	cancel := must[Cancel](t)(NewCancel())
	noError(t, context.Close())
	if sms := must[[]uint32](t)(stream.ProbeSMs()); len(sms) != 24 { // the stream keeps its context
		t.Errorf("%d SMs", len(sms))
	}
	for _, object := range []interface{ Close() error }{stream, event, lease, cancel} {
		noError(t, object.Close())
		refused(t, "closed twice", object.Close(), raw.ErrorInvalidHandle)
	}
	_, native := stream.Native()
	_, query := event.Query()
	_, info := lease.Info()
	_, acquire := Acquire(0, 8, LeaseParams{Cancel: cancel})
	for what, err := range map[string]error{
		"a closed context": context.Close(), "a closed stream's CUstream": native,
		"a closed event's query": query, "a closed lease's info": info,
		"a closed cancel": acquire, "zero": Stream(0).Close(),
		"a stream for a graph": Graph(stream).Close(), "a forged handle": Reservation(0xdeadbeef).Close(),
	} {
		refused(t, what, err, raw.ErrorInvalidHandle)
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	driver := must[raw.DriverInfo](t)(Driver())
	device := must[raw.DeviceInfo](t)(Device(1))
	if driver.Version != 13000 || driver.Simulated != 1 ||
		driver.Capabilities[raw.CapabilityContextID] != 1 ||
		driver.Capabilities[raw.CapabilityWorkqueues] != 0 ||
		!strings.HasSuffix(driver.Library.String(), "libgcx-sim.so") ||
		device.SMCount != 132 || !strings.Contains(device.Name.String(), "H100") {
		t.Errorf("%+v %+v", driver, device)
	}
	all := must[Resource](t)(DeviceResource(0, SM))
	groups, rest, err := all.Split(Counts(108), raw.SplitExact)
	noError(t, err)
	counts, left, err := all.Plan(Counts(108), 0)
	noError(t, err)
	if counts[0] != 108 || left != 24 || must[Resource](t)(groups[0].Union(rest)) != all ||
		must[uint32](t)(groups[0].Overlap(rest)) != 0 {
		t.Error(counts, left)
	}
	_, _, none := all.Split(nil, 0)
	refused(t, "no request", none, raw.ErrorInvalidValue)
	_, nothing := NewContext(0)
	refused(t, "a context of nothing", nothing, raw.ErrorInvalidValue)
	changed := all
	changed.Opaque[3] ^= 1
	_, forged := changed.Info()
	refused(t, "a changed resource", forged, raw.ErrorInvalidResourceConfiguration)
	for _, err := range []error{
		OpenDriver("sim\x00:h100"), PublishStart("en\x00gine"),
		second(Acquire(0, 8, LeaseParams{Name: "de\x00code"})),
		second(AcquireReservation(0, 8, ReservationParams{Folder: "/tmp\x00"})), second(JoinReservation("a\x00b")),
	} {
		refused(t, "a text with a byte 0", err, raw.ErrorInvalidValue)
	}
}

func second[T any](_ T, err error) error { return err }

func TestStreamFollowsItsLease(t *testing.T) {
	lease := must[Lease](t)(Acquire(0, 32, LeaseParams{Name: "decode"}))
	stream := must[Stream](t)(lease.NewStream(-1))
	live := must[[]raw.LiveLease](t)(Leases(-1))
	if len(live) != 1 || live[0].Name.String() != "decode" || live[0].SMCount != 32 ||
		Resource(live[0].Resource) != must[Resource](t)(lease.Resource()) {
		t.Errorf("%+v", live)
	}
	size := LeaseSize{Lease: lease, SMCount: 64}
	noError(t, Prepare(size), Resize(raw.ResizeDefault, size))
	if sms := must[[]uint32](t)(stream.ProbeSMs()); len(sms) != 64 {
		t.Errorf("%d SMs", len(sms))
	}
	noError(t, Resize(raw.ResizeDeferred, LeaseSize{Lease: lease, Parked: true}))
	refused(t, "a parked lease's CUstream", second(stream.Native()), raw.ErrorLeaseParked)
	noError(t, lease.Close())
	refused(t, "a released lease's CUstream", second(stream.Native()), raw.ErrorContextIsDestroyed)
	noError(t, stream.Close())
}

func TestVerifyFindsAnOverlap(t *testing.T) {
	context, one, err := newStream(0, 24)
	noError(t, err)
	other := must[Stream](t)(context.NewStream(0))
	found := must[Verified](t)(Verify(one))
	if found.Ok != 1 || found.Streams[0].SMCount != 24 || found.Problems.String() != "" {
		t.Errorf("%+v", found)
	}
	found = must[Verified](t)(Verify(one, other))
	if found.Ok != 0 || found.OverlapCount != 24 || found.Overlap != found.Streams[1].Seen ||
		!strings.Contains(found.Problems.String(), "partitions A and B share 24 SMs") {
		t.Errorf("%+v", found)
	}
	_, err = Verify()
	refused(t, "no stream", err, raw.ErrorInvalidValue)
	noError(t, one.Close(), other.Close(), context.Close())
}

func TestWaitIsCancelled(t *testing.T) {
	all := must[Lease](t)(Acquire(0, Rest, LeaseParams{}))
	cancel := must[Cancel](t)(NewCancel())
	waited := make(chan error)
	go func() {
		_, err := Acquire(0, 8, LeaseParams{TimeoutMS: Forever, Cancel: cancel})
		waited <- err
	}()
	for len(must[[]raw.LiveLease](t)(Leases(0))) < 2 {
		time.Sleep(time.Millisecond)
	}
	noError(t, cancel.Signal())
	refused(t, "a cancelled wait", <-waited, raw.ErrorCancelled)
	noError(t, cancel.Close(), all.Close())
}

// Goroutines move between threads, and gcx stores messages by thread.
func TestEachGoroutineGetsItsOwnMessage(t *testing.T) {
	all := must[Resource](t)(DeviceResource(0, SM))
	var group sync.WaitGroup
	for i := uint32(0); i < 32; i++ {
		group.Add(1)
		go func(asked uint32) {
			defer group.Done()
			for round := 0; round < 200; round++ {
				_, _, err := all.Split(Counts(asked), 0)
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("requested %d SMs", asked)) {
					t.Errorf("%d SMs: %v", asked, err)
					return
				}
			}
		}(1000 + i)
	}
	group.Wait()
}

func TestContextIsCurrentInItsThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	context, stream, err := newStream(0, 24)
	noError(t, err, context.Push())
	if must[Context](t)(Current()) != context || must[Context](t)(Pop()) != context {
		t.Error("another context is current")
	}
	noError(t, stream.Close(), context.Close())
}

func TestProcessEndsWithLiveObjects(t *testing.T) { runs(t, "leave open") }

func TestReservationIsJoinedByItsToken(t *testing.T) {
	reservation := must[Reservation](t)(AcquireReservation(0, 24, ReservationParams{Name: "engine"}))
	joined := must[Reservation](t)(JoinReservation(must[string](t)(reservation.Token())))
	info := must[raw.ReservationInfo](t)(joined.Info())
	if info.SMCount != 24 || info.DeviceSMCount != 132 || info.Name.String() != "engine" {
		t.Errorf("%+v", info)
	}
	noError(t, reservation.Close())
	lease := must[Lease](t)(joined.Acquire(Rest, LeaseParams{}))
	if must[Resource](t)(lease.Resource()) != must[Resource](t)(joined.Resource()) {
		t.Error("the lease has other SMs")
	}
	live := must[[]raw.LiveReservation](t)(Reservations(""))
	if len(live) != 1 || live[0].Name.String() != "engine" || live[0].SMCount != 24 {
		t.Errorf("%+v", live)
	}
	noError(t, lease.Close(), joined.Close())
}

func TestProcessFunctions(t *testing.T) {
	if info := must[raw.QueueInfo](t)(Queues()); info.Started != 1 || info.Connections == 0 {
		t.Errorf("%+v", info)
	}
	refused(t, "too many connections", RequestConnections(raw.MaxConnections+1), raw.ErrorInvalidValue)
	refused(t, "too late", ReportPartitionCounts(), raw.ErrorTooLate)
	lease := must[Lease](t)(Acquire(0, 32, LeaseParams{Name: "decode"}))
	noError(t, PublishStart("engine"))
	processes := must[[]raw.PublishedProcess](t)(PublishedProcesses())
	leases := must[[]raw.PublishedLease](t)(PublishedLeases())
	if len(processes) != 1 || processes[0].Name.String() != "engine" || len(leases) != 1 ||
		leases[0].Name.String() != "decode" || leases[0].ExclusiveAtoms[0] != 0xf {
		t.Errorf("%+v %+v", processes, leases)
	}
	noError(t, PublishStop(), lease.Close())
	if mps := must[raw.DeviceInfo](t)(Device(0)).MPS; mps != raw.MPSOff {
		t.Errorf("%+v", mps)
	}
}
