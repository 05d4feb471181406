package gcx

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"example.org/gcx/bindings/go/generated/raw"
)

// What a private process of a test does; ownProcess in its environment selects one.
const ownProcess = "GCX_TEST_OWN_PROCESS"

var ownProcesses = map[string]func() error{
	"call before Open": callBeforeOpen,
	"leave open": func() error {
		return opened(func() error {
			_, _, err := newStream(0, 24)
			return err
		})
	},
}

// GCX_TEST_DRIVER names the driver of the tests, by default a simulated one with two devices.
// tests/gpu/run-languages.sh names the tests that run on one GPU of 132 SMs.
func machine() string {
	if driver := os.Getenv("GCX_TEST_DRIVER"); driver != "" {
		return driver
	}
	return "sim:2xh100@13.0"
}

// opened calls a function with the library of GCX_LIBRARY open.
func opened(does func() error) error {
	library := os.Getenv("GCX_LIBRARY")
	if library == "" {
		library = DefaultLibrary
	}
	if err := Open(library); err != nil {
		return err
	}
	if err := OpenDriver(machine()); err != nil {
		return err
	}
	return does()
}

// C reads the environment of the process's start, so the tests run in a second process, which has a
// private folder for reservations and published leases.
func TestMain(m *testing.M) {
	does := ownProcesses[os.Getenv(ownProcess)]
	code := 0
	var err error
	switch {
	case does != nil:
		err = does()
	case os.Getenv(ownProcess) == "tests":
		err = opened(func() error { code = m.Run(); return nil })
	default:
		code, err = inOwnFolder()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inOwnFolder() (int, error) {
	folder, err := os.MkdirTemp("", "gcx-go-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	tests := process("tests", "GCX_RESERVATION_DIR="+folder)
	tests.Args = os.Args
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	err = tests.Run()
	return tests.ProcessState.ExitCode(), err
}

func process(what string, environment ...string) *exec.Cmd {
	own := exec.Command(os.Args[0])
	own.Env = append(append(os.Environ(), ownProcess+"="+what), environment...)
	return own
}

// runs starts a private process, which must succeed without output.
func runs(t *testing.T, what string, environment ...string) {
	t.Helper()
	if said, err := process(what, environment...).CombinedOutput(); err != nil || len(said) != 0 {
		t.Errorf("%s: %v: %s", what, err, said)
	}
}

// must ends the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func noError(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// refused checks for an error with this result and a message.
func refused(t *testing.T, what string, err error, want Result) {
	t.Helper()
	var answer *Error
	if !errors.Is(err, want) || !errors.As(err, &answer) || answer.Message == "" {
		t.Errorf("%s: %v, not %v and why", what, err, want)
	}
}

// part returns the first SMs of a device.
func part(device int32, sms uint32) (Resource, error) {
	all, err := DeviceResource(device, SM)
	if err != nil {
		return Resource{}, err
	}
	groups, _, err := all.Split(Counts(sms), raw.SplitDefault)
	if err != nil {
		return Resource{}, err
	}
	return groups[0], nil
}

// newStream creates a context over some SMs of a device, and a stream of it.
func newStream(device int32, sms uint32) (Context, Stream, error) {
	resource, err := part(device, sms)
	if err != nil {
		return 0, 0, err
	}
	context, err := NewContext(0, resource)
	if err != nil {
		return 0, 0, err
	}
	stream, err := context.NewStream(0)
	return context, stream, err
}

// over returns a stream over some SMs, which is closed at the end of the test.
func over(t *testing.T, device int32, sms uint32) Stream {
	t.Helper()
	context, stream, err := newStream(device, sms)
	noError(t, err)
	t.Cleanup(func() { noError(t, stream.Close(), context.Close()) })
	return stream
}
