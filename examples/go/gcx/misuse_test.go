package gcx

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// What a process of its own does, instead of running the tests.
const ownProcess = "GCX_TEST_OWN_PROCESS"

var ownProcesses = map[string]func() error{
	// Leaves everything open at its end.
	"leave open": func() error {
		if err := OpenDriver(machine); err != nil {
			return err
		}
		_, _, err := newStream(0, 24)
		return err
	},
	"ask for queues in time":  askForQueues,
	"ask for counts in time":  askForCounts,
	"join a hold":             joinAHold,
	"take what another holds": takeWhatAnotherHolds,
}

// GCX_TEST_DRIVER names the driver that the tests run on: a simulated one with two devices, if it isn't
// set; libcuda.so.1 is a GPU's. Not all of them are true of a GPU: tests/gpu/run-languages.sh names those
// that are, on one of 132 SMs.
var machine = testDriver()

func testDriver() string {
	if driver := os.Getenv("GCX_TEST_DRIVER"); driver != "" {
		return driver
	}
	return "sim:2xh100@13.0"
}

// GCX_LIBRARY names the library to test. C's environment is that of the process's start, so what
// the tests need there is given to a second process, which runs them.
func TestMain(m *testing.M) {
	does, known := ownProcesses[os.Getenv(ownProcess)]
	if !known && os.Getenv(ownProcess) != "tests" && os.Getenv(ownProcess) != beforeOpen {
		os.Exit(inOwnEnvironment())
	}
	if os.Getenv(ownProcess) == beforeOpen {
		if err := callEverything(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	library := os.Getenv("GCX_LIBRARY")
	if library == "" {
		library = DefaultLibrary
	}
	err := Open(library)
	if err == nil && known {
		err = does()
	} else if err == nil {
		err = OpenDriver(machine)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !known {
		os.Exit(m.Run())
	}
}

// inOwnEnvironment runs the tests with a folder of their own in the place of the user's.
func inOwnEnvironment() int {
	folder, err := os.MkdirTemp("", "gcx-go-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	tests := exec.Command(os.Args[0], os.Args[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUDA_DEVICE_MAX_CONNECTIONS=") {
			tests.Env = append(tests.Env, variable)
		}
	}
	tests.Env = append(tests.Env, ownProcess+"=tests", "GCX_HOLD_FOLDER="+folder)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	if err := tests.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runs does what has a process of its own there.
func runs(t *testing.T, what string, environment ...string) {
	t.Helper()
	own := process(what, environment...)
	if said, err := own.CombinedOutput(); err != nil || len(said) != 0 {
		t.Errorf("%s: %v: %s", what, err, said)
	}
}

func process(what string, environment ...string) *exec.Cmd {
	own := exec.Command(os.Args[0])
	own.Env = append(append(os.Environ(), ownProcess+"="+what), environment...)
	return own
}

// newStream is a context over some SMs of a device, and a stream of it.
func newStream(device int32, sms uint32) (Context, Stream, error) {
	all, err := DeviceResource(device, SM)
	if err != nil {
		return Context{}, Stream{}, err
	}
	groups, _, err := all.Split(Counts(sms), 0)
	if err != nil {
		return Context{}, Stream{}, err
	}
	context, err := NewContext(0, groups[0])
	if err != nil {
		return Context{}, Stream{}, err
	}
	stream, err := context.NewStream(0)
	return context, stream, err
}

func opened(t *testing.T, device int32) (Context, Stream) {
	t.Helper()
	context, stream, err := newStream(device, 24)
	if err != nil {
		t.Fatal(err)
	}
	return context, stream
}

// refused asks for an error of this result, with a message.
func refused(t *testing.T, what string, err error, want Result) {
	t.Helper()
	var answer *Error
	if !errors.Is(err, want) || !errors.As(err, &answer) || answer.Message == "" {
		t.Errorf("%s: %v, not %v and why", what, err, want)
	}
}

func TestWhatIsClosedIsRefused(t *testing.T) {
	context, stream := opened(t, 0)
	event, err := NewEvent(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, closed := range []error{context.Close(), stream.Close(), event.Close()} {
		if closed != nil {
			t.Fatal(closed)
		}
	}
	_, newStream := context.NewStream(0)
	_, info := context.Info()
	_, native := stream.Native()
	_, probe := stream.ProbeSMs()
	_, query := event.Query()
	for what, err := range map[string]error{
		"context closed twice": context.Close(), "stream closed twice": stream.Close(),
		"event closed twice": event.Close(), "stream of a closed context": newStream,
		"a closed context's info": info, "a closed stream's native": native,
		"a probe of a closed stream": probe, "a closed event's query": query,
		"push of a closed context": context.Push(), "zero context": Context{}.Close(),
		"zero stream": Stream{}.Synchronize(), "zero event": Event{}.Synchronize(),
		"a stream for a context": Context{stream.handle}.Close(),
		"a forged handle":        Stream{0xdeadbeef}.Close(),
	} {
		refused(t, what, err, InvalidHandle)
	}
}

func TestAStreamOutlivesItsContext(t *testing.T) {
	context, stream := opened(t, 0)
	if err := context.Close(); err != nil {
		t.Fatal(err)
	}
	sms, err := stream.ProbeSMs()
	if err != nil || len(sms) != 24 {
		t.Errorf("%d SMs, %v", len(sms), err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

func TestWrongValues(t *testing.T) {
	all, err := DeviceResource(0, SM)
	if err != nil {
		t.Fatal(err)
	}
	other, err := DeviceResource(1, SM)
	if err != nil {
		t.Fatal(err)
	}
	_, _, none := all.Split(nil, 0)
	refused(t, "no request", none, InvalidValue)
	_, _, flags := all.Split(Counts(24), 0x8000)
	refused(t, "unknown flags", flags, InvalidValue)
	_, _, most := all.Split(Counts(0xfffffffe), 0)
	refused(t, "more than any device has", most, InvalidResourceConfiguration)
	for _, counts := range [][]Request{Counts(0), Counts(8, 0), {{}}} {
		_, _, zero := all.Split(counts, 0)
		refused(t, "a split into 0 SMs", zero, InvalidValue)
		_, _, zero = all.Plan(counts, 0)
		refused(t, "a plan of 0 SMs", zero, InvalidValue)
	}
	_, device := DeviceResource(2, SM)
	refused(t, "device 2 of two", device, InvalidDevice)
	_, kind := DeviceResource(0, ResourceType(7))
	refused(t, "no such type", kind, InvalidResourceType)
	_, union := all.Union(other)
	refused(t, "SMs of two devices", union, InvalidResourceConfiguration)
	_, zero := Resource{}.Info()
	refused(t, "no resource", zero, InvalidResourceType)
	changed := all
	changed.opaque[3] ^= 1
	_, forged := changed.Info()
	refused(t, "a changed resource", forged, InvalidResourceConfiguration)
	_, nothing := NewContext(0)
	refused(t, "a context of nothing", nothing, InvalidValue)
}

func TestAnEventOfAnotherDevice(t *testing.T) {
	context, stream := opened(t, 0)
	event, err := NewEvent(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "recording it", stream.Record(event), InvalidHandle)
	if err := stream.Wait(event); err != nil {
		t.Error("waiting works across devices: ", err)
	}
	for _, err := range []error{event.Close(), stream.Close(), context.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// Goroutines wander between threads, and gcx keeps messages by thread: each has to get its own.
func TestEachGoroutineGetsItsOwnMessage(t *testing.T) {
	all, err := DeviceResource(0, SM)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := uint32(0); i < 32; i++ {
		group.Add(1)
		go func(asked uint32) {
			defer group.Done()
			for round := 0; round < 200; round++ {
				_, _, err := all.Split(Counts(asked), 0)
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("asked for %d SMs", asked)) {
					t.Errorf("%d SMs: %v", asked, err)
					return
				}
			}
		}(1000 + i)
	}
	group.Wait()
}

// One handle, closed by many at once: one of them closes it.
func TestManyCloseTheSame(t *testing.T) {
	for round := 0; round < 50; round++ {
		context, stream := opened(t, 0)
		results := make(chan error, 16)
		for i := 0; i < cap(results); i++ {
			go func() { results <- stream.Close() }()
		}
		closed := 0
		for i := 0; i < cap(results); i++ {
			if err := <-results; err == nil {
				closed++
			} else {
				refused(t, "closed by another", err, InvalidHandle)
			}
		}
		if closed != 1 {
			t.Fatalf("closed %d times", closed)
		}
		if err := context.Close(); err != nil {
			t.Fatal(err)
		}
	}
	live, err := Contexts(-1)
	if err != nil || len(live) != 0 {
		t.Errorf("%d contexts left, %v", len(live), err)
	}
}

func TestTheProcessEndsWithLiveObjects(t *testing.T) { runs(t, "leave open") }

func TestASecondDriverIsRefused(t *testing.T) {
	err := OpenDriver("sim:a100@13.0")
	var answer *Error
	if !errors.As(err, &answer) || answer.Result.Error() != "GCX_ERROR_ALREADY_ACQUIRED" {
		t.Error(err)
	}
	if err := OpenDriver(machine); err != nil {
		t.Error(err)
	}
}
