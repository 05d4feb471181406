package gcx

import (
	"strings"
	"testing"
	"time"
)

func acquired(t *testing.T, device int32, sms uint32, params LeaseParams) Lease {
	t.Helper()
	lease, err := Acquire(device, sms, params)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// has asks for so many SMs of a lease.
func has(t *testing.T, lease Lease, want uint32) {
	t.Helper()
	if info, err := lease.Info(); err != nil || info.SMCount != want {
		t.Errorf("%q has %d SMs, not %d; %v", info.Name(), info.SMCount, want, err)
	}
}

func allClosed(t *testing.T, closing ...interface{ Close() error }) {
	t.Helper()
	for _, each := range closing {
		if err := each.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := Leases(-1); err != nil || len(left) != 0 {
		t.Errorf("%d leases left, %v", len(left), err)
	}
}

// Decode beside prefill: one grows by what the other gives, and its stream follows.
func TestLeasesChangeAndStreamsFollow(t *testing.T) {
	decode := acquired(t, 0, 32, LeaseParams{Name: "decode"})
	prefill := acquired(t, 0, Rest, LeaseParams{Name: "prefill"})
	stream, err := decode.NewStream(-1)
	if err != nil {
		t.Fatal(err)
	}
	before, err := stream.Native()
	if err != nil {
		t.Fatal(err)
	}
	sizes := []LeaseSize{{Lease: decode, SMCount: 64}, {Lease: prefill, SMCount: Rest}}
	for _, err := range []error{Prepare(sizes...), Resize(0, sizes...)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	has(t, decode, 64)
	has(t, prefill, 68)
	after, err := stream.Native()
	if err != nil || after == before {
		t.Errorf("the stream is %x still, %v", after, err)
	}
	sms, err := stream.ProbeSMs()
	if err != nil || len(sms) != 64 {
		t.Errorf("%d SMs, %v", len(sms), err)
	}
	if done, err := decode.Query(); !done || err != nil {
		t.Error(done, err)
	}
	// All or nothing.
	refused(t, "more than there is", Resize(0, LeaseSize{Lease: decode, SMCount: 72},
		LeaseSize{Lease: prefill, SMCount: 68}), InvalidResourceConfiguration)
	has(t, decode, 64)
	if err := prefill.HandOver(decode, ResizeAtOnce); err != nil {
		t.Error(err)
	}
	has(t, decode, 132)
	refused(t, "a lease that was handed over", prefill.Close(), InvalidHandle)
	if err := decode.Synchronize(); err != nil {
		t.Error(err)
	}
	if err := decode.Close(); err != nil {
		t.Error(err)
	}
	_, native := stream.Native()
	refused(t, "a released lease's CUstream", native, ContextIsDestroyed)
	refused(t, "a stream of a released lease", stream.Synchronize(), ContextIsDestroyed)
	allClosed(t, stream)
}

func TestWhoHasWhat(t *testing.T) {
	one := acquired(t, 0, 24, LeaseParams{Name: "one", Flags: LeaseShared})
	two := acquired(t, 0, 40, LeaseParams{Flags: LeaseShared, ExclusiveSMCount: 16})
	there := acquired(t, 1, 8, LeaseParams{Family: Fine})
	live, err := Leases(-1)
	if err != nil || len(live) != 3 {
		t.Fatal(live, err)
	}
	if live[0].Name() != "one" || live[1].ExclusiveSMCount != 16 || live[2].Family != Fine {
		t.Error(live)
	}
	mine, err := one.Resource()
	if err != nil || mine != live[0].Resource {
		t.Error("the list has another resource", err)
	}
	if _, err := Acquire(0, 100, LeaseParams{}); err == nil || !strings.Contains(err.Error(), `"one" has 24`) {
		t.Error(err)
	}
	all, err := DeviceResource(0, SM)
	if err != nil {
		t.Fatal(err)
	}
	clear, _, err := all.Split(Counts(Rest), SplitUnleased)
	if err != nil {
		t.Fatal(err)
	}
	if common, err := clear[0].Overlap(mine); common != 0 || err != nil {
		t.Errorf("%d SMs of a lease in a split that keeps clear, %v", common, err)
	}
	allClosed(t, there, two, one)
}

func TestSharedSMsWithoutAModuleAreNone(t *testing.T) {
	shared, err := SharedSMs(0)
	if err != nil || len(shared) != 0 {
		t.Error(shared, err)
	}
	all, err := DeviceResource(0, SM)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := all.Split(Counts(24), SplitExcludeShared); err == nil {
		t.Error("a split without shared SMs that aren't known")
	}
}

func TestAWaitIsGivenUp(t *testing.T) {
	held := acquired(t, 0, Rest, LeaseParams{})
	cancel, err := NewCancel()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		_, err := Acquire(0, 8, LeaseParams{TimeoutMS: Forever, Cancel: cancel})
		waited <- err
	}()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		live, err := Leases(0)
		if err != nil {
			t.Fatal(err)
		}
		waits = len(live) - 1
	}
	if err := cancel.Signal(); err != nil {
		t.Fatal(err)
	}
	refused(t, "a wait that was given up", <-waited, NotPermitted)
	_, short := Acquire(0, 8, LeaseParams{TimeoutMS: 2})
	refused(t, "a wait that ended", short, AlreadyAcquired)
	allClosed(t, cancel, held)
}

func TestLeasesAreMisused(t *testing.T) {
	lease := acquired(t, 0, 24, LeaseParams{})
	there := acquired(t, 1, 24, LeaseParams{})
	_, name := Acquire(0, 8, LeaseParams{Name: "de\x00code"})
	_, long := Acquire(0, 8, LeaseParams{Name: strings.Repeat("n", 64)})
	_, flags := Acquire(0, 8, LeaseParams{Flags: 0x80})
	_, zero := Acquire(0, 0, LeaseParams{})
	twice := LeaseSize{Lease: lease, SMCount: 8}
	for what, err := range map[string]error{
		"a name with a byte 0": name, "a long name": long, "unknown flags": flags,
		"0 SMs": zero, "a resize to 0 SMs": Resize(0, LeaseSize{Lease: lease}),
		"no sizes": Resize(0), "a lease twice": Prepare(twice, twice),
		"handed over to itself": lease.HandOver(lease, 0),
	} {
		refused(t, what, err, InvalidValue)
	}
	two := Resize(0, LeaseSize{Lease: lease, SMCount: 8}, LeaseSize{Lease: there, SMCount: 8})
	refused(t, "leases of two devices", two, InvalidResourceConfiguration)
	has(t, lease, 24)
	cancel, err := NewCancel()
	if err != nil {
		t.Fatal(err)
	}
	allClosed(t, cancel, there, lease)
	_, info := lease.Info()
	_, stream := lease.NewStream(0)
	_, acquire := Acquire(0, 8, LeaseParams{Cancel: cancel})
	for what, err := range map[string]error{
		"a lease closed twice": lease.Close(), "a closed lease's info": info,
		"a closed lease's stream": stream, "a closed lease's work": lease.Synchronize(),
		"a resize of a closed lease": Resize(0, LeaseSize{Lease: lease, SMCount: 8}),
		"a closed cancel":            cancel.Signal(), "a wait with a closed cancel": acquire,
		"zero lease": Lease{}.Close(), "a stream for a lease": Lease{0xdeadbeef}.Close(),
	} {
		refused(t, what, err, InvalidHandle)
	}
}
