package gcx

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const tokenVariable = "GCX_TEST_HOLD"

func taken(t *testing.T, device int32, sms uint32, params HoldParams) Hold {
	t.Helper()
	hold, err := TakeHold(device, sms, params)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// held asks for so many holds, and gives them.
func held(t *testing.T, want int) []LiveHold {
	t.Helper()
	live, err := Holds("")
	if err != nil || len(live) != want {
		t.Fatalf("%d holds, not %d: %+v, %v", len(live), want, live, err)
	}
	return live
}

func TestNobodyElseHasWhatIsHeld(t *testing.T) {
	one := taken(t, 0, 24, HoldParams{Name: "one"})
	_, zero := TakeHold(0, 0, HoldParams{})
	refused(t, "a hold of 0 SMs", zero, InvalidValue)
	two := taken(t, 0, Rest, HoldParams{MinSMCount: 64})
	there := taken(t, 1, 2, HoldParams{Family: Fine, Flags: HoldInherit})
	info, err := two.Info()
	if err != nil || info.SMCount != 108 || info.DeviceSMCount != 132 || info.Simulated != 1 ||
		info.Joined != 0 || info.MPS != MPSOff || info.Lost != 0 || info.Name() != "" {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := there.Info(); err != nil || info.Family != Fine || info.Flags != HoldInherit || info.SMCount != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	found := 0
	for _, live := range held(t, 3) {
		if live.Name() == "one" && live.SMCount == 24 && live.PID == int32(os.Getpid()) &&
			strings.Contains(live.DeviceName(), "H100") && live.ProcessName() != "" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d holds are the one", found)
	}
	_, more := TakeHold(0, 8, HoldParams{})
	refused(t, "what others hold", more, AlreadyAcquired)
	if more == nil || !strings.Contains(more.Error(), `"one"`) {
		t.Error(more)
	}
	token, err := one.Token()
	if err != nil {
		t.Fatal(err)
	}
	runs(t, "take what another holds")
	lease, err := one.Acquire(Rest, LeaseParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	has(t, lease, 24)
	mine, err := one.Resource()
	if its, other := lease.Resource(); err != nil || other != nil || its != mine {
		t.Error("the lease has other SMs than its hold", err, other)
	}
	_, nothing := one.Acquire(8, LeaseParams{})
	refused(t, "what a lease of the hold has", nothing, AlreadyAcquired)
	_, family := one.Acquire(8, LeaseParams{Family: Fine})
	refused(t, "a lease of another family", family, InvalidValue)
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	held(t, 3) // the lease keeps it
	again, err := JoinHold(token)
	if err != nil {
		t.Fatal(err)
	}
	allClosed(t, lease)
	held(t, 3)
	allClosed(t, again, two, there)
	held(t, 0)
	_, ended := JoinHold(token)
	refused(t, "a hold that has ended", ended, NotFound)
}

// Another process of the same folder.
func takeWhatAnotherHolds() error {
	if err := OpenDriver(machine); err != nil {
		return err
	}
	if _, err := TakeHold(0, 8, HoldParams{}); !errors.Is(err, AlreadyAcquired) || !strings.Contains(err.Error(), `"one"`) {
		return fmt.Errorf("taken: %v", err)
	}
	hold, err := TakeHold(1, 16, HoldParams{Family: Fine})
	if err != nil {
		return err
	}
	_, err = hold.Resource()
	return err // and the hold ends with the process
}

// A process that was given a token. It says that it has joined, and waits for the end of its input.
func joinAHold() error {
	hold, err := JoinHold(os.Getenv(tokenVariable))
	if err != nil {
		return err
	}
	fmt.Println("joined")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
		return errors.New("there was input")
	}
	if err := OpenDriver(machine); err != nil {
		return err
	}
	lease, err := hold.Acquire(Rest, LeaseParams{})
	if err != nil {
		return err
	}
	if info, err := lease.Info(); err != nil || info.SMCount != 24 {
		return fmt.Errorf("%+v, %w", info, err)
	}
	return nil
}

func TestAHoldLastsUntilAllHaveClosedIt(t *testing.T) {
	hold := taken(t, 0, 24, HoldParams{Name: "engine"})
	token, err := hold.Token()
	if err != nil {
		t.Fatal(err)
	}
	other := process("join a hold", tokenVariable+"="+token)
	other.Stderr = os.Stderr
	goOn, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(says).ReadString('\n'); said != "joined\n" {
		t.Error(said, err)
	}
	if err := hold.Close(); err != nil {
		t.Error(err)
	}
	if live := held(t, 1); live[0].Name() != "engine" || live[0].SMCount != 24 {
		t.Errorf("%+v", live)
	}
	goOn.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	held(t, 0)
}

func TestAWaitForAHoldIsGivenUp(t *testing.T) {
	all := taken(t, 0, Rest, HoldParams{})
	cancel, err := NewCancel()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		_, err := TakeHold(0, 8, HoldParams{Name: "waits", TimeoutMS: Forever, Cancel: cancel})
		waited <- err
	}()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		live, err := Holds("")
		if err != nil {
			t.Fatal(err)
		}
		waits = len(live) - 1
	}
	if live := held(t, 2); live[1].Waits != 1 || live[1].SMCount != 8 || live[1].Name() != "waits" {
		t.Errorf("%+v", live)
	}
	_, short := TakeHold(0, 8, HoldParams{TimeoutMS: 2})
	refused(t, "a wait that ended", short, AlreadyAcquired)
	if err := cancel.Signal(); err != nil {
		t.Fatal(err)
	}
	refused(t, "a wait that was given up", <-waited, NotPermitted)
	allClosed(t, cancel, all)
}

func TestHoldsAreMisused(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	_, open := TakeHold(0, 8, HoldParams{Folder: folder})
	refused(t, "a folder for everybody", open, NotPermitted)
	_, missing := Holds(folder + "/missing")
	refused(t, "a folder that isn't there", missing, OperatingSystem)
	_, device := TakeHold(2, 8, HoldParams{})
	refused(t, "device 2 of two", device, InvalidDevice)
	_, most := TakeHold(0, 140, HoldParams{})
	refused(t, "more than there is", most, InvalidResourceConfiguration)
	_, name := TakeHold(0, 8, HoldParams{Name: "de\x00code"})
	_, long := TakeHold(0, 8, HoldParams{Name: strings.Repeat("n", 64)})
	_, flags := TakeHold(0, 8, HoldParams{Flags: 0x80})
	_, family := TakeHold(0, 8, HoldParams{Family: Structured})
	_, relative := TakeHold(0, 8, HoldParams{Folder: "tmp"})
	_, cut := Holds("/tmp\x00/x")
	_, none := JoinHold("")
	_, token := JoinHold("/tmp/x\x00")
	for what, err := range map[string]error{
		"a name with a byte 0": name, "a long name": long, "unknown flags": flags,
		"the structured family": family, "a relative folder": relative,
		"a folder with a byte 0": cut, "no token": none, "a token with a byte 0": token,
	} {
		refused(t, what, err, InvalidValue)
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	hold := taken(t, 0, 8, HoldParams{Folder: folder})
	if live, err := Holds(folder); err != nil || len(live) != 1 {
		t.Error(live, err)
	}
	held(t, 0)
	path, err := hold.Token()
	if err != nil || !strings.HasPrefix(path, folder+"/") {
		t.Error(path, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if info, err := hold.Info(); err != nil || info.Lost != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	allClosed(t, hold)
	_, info := hold.Info()
	_, again := hold.Token()
	_, resource := hold.Resource()
	_, lease := hold.Acquire(8, LeaseParams{})
	for what, err := range map[string]error{
		"a hold closed twice": hold.Close(), "a closed hold's info": info,
		"a closed hold's token": again, "a closed hold's SMs": resource,
		"a lease of a closed hold": lease, "zero hold": Hold{}.Close(),
		"a forged hold": Hold{0xdeadbeef}.Close(),
	} {
		refused(t, what, err, InvalidHandle)
	}
}

func TestMPS(t *testing.T) {
	if info, err := MPS(0); err != nil || info.State != MPSOff || info.ThreadPercentage != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	_, err := MPS(2)
	refused(t, "device 2 of two", err, InvalidDevice)
}
