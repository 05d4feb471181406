// Package gcx is libgcx in Go, without cgo: it opens the library by dlopen, through purego, so that
// programs build with CGO_ENABLED=0. Constants and structs are those of package raw.
//
// Every function may be called from any goroutine. Close ends a handle (Context, Stream, Event, Lease,
// Reservation, Graph, Cancel), which then fails with raw.ErrorInvalidHandle. The garbage collector
// closes none. The zero value of each is no object.
package gcx

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"example.org/gcx/bindings/go/generated/raw"
	"github.com/ebitengine/purego"
)

// DefaultLibrary is the name under which the loader finds an installed libgcx.
const DefaultLibrary = "libgcx.so.1"

const (
	SM      = raw.ResourceSM
	Rest    = raw.Rest    // as a count of SMs: all that are available; 0 is refused
	Forever = raw.Forever // as a timeout
)

// Result is a gcx_result. errors.Is compares with it: errors.Is(err, raw.ErrorInvalidHandle).
type Result = raw.Result

// Raw has every function of gcx.h. Open fills it in; until then those that return a Result return
// raw.ErrorSharedObjectInitFailed. LastErrorMessage belongs to the thread: lock it around both calls.
var Raw raw.Functions

// Error is the result of a failed call and its message.
type Error struct {
	Result  Result
	Message string
}

func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	return e.Result.Error() + ": " + e.Message
}

// Unwrap lets errors.Is compare with a Result.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Result
}

func init() {
	functions := reflect.ValueOf(&Raw).Elem()
	for i := 0; i < functions.NumField(); i++ {
		function := functions.Field(i).Type()
		functions.Field(i).Set(reflect.MakeFunc(function, func([]reflect.Value) []reflect.Value {
			if function.Out(0) == reflect.TypeOf(raw.Success) {
				return []reflect.Value{reflect.ValueOf(raw.ErrorSharedObjectInitFailed)}
			}
			return []reflect.Value{reflect.Zero(function.Out(0))}
		}))
	}
	Raw.LastErrorMessage = func() string { return "gcx: the library is not open; call gcx.Open first" }
}

// Open loads libgcx from a path, or by a name that the loader looks up. Call it once, before any
// other function. The CUDA driver is opened by the first call that needs it.
func Open(library string) error {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("gcx: %w", err)
	}
	functions := reflect.ValueOf(&Raw).Elem()
	addresses := make([]uintptr, functions.NumField()) // all of them, or the library isn't used
	for i := range addresses {
		addresses[i], err = purego.Dlsym(handle, functions.Type().Field(i).Tag.Get("c"))
		if err != nil {
			return fmt.Errorf("gcx: %s is no libgcx that this package can use: %w", library, err)
		}
	}
	for i, address := range addresses {
		purego.RegisterFunc(functions.Field(i).Addr().Interface(), address)
	}
	return nil
}

// check turns a result into an error. gcx stores the message by thread, and a goroutine may move to
// another thread between two calls, so it makes both calls in one thread.
func check(call func() Result) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if result := call(); result != raw.Success {
		return &Error{result, Raw.LastErrorMessage()}
	}
	return nil
}

// got returns the value that a function writes.
func got[T any](ask func(*T) Result) (T, error) {
	var value T
	err := check(func() Result { return ask(&value) })
	return value, err
}

// created returns the handle that a function writes.
func created[Handle, Of ~uintptr](create func(*Of) Result) (Handle, error) {
	handle, err := got(create)
	return Handle(handle), err
}

// sized fills in struct_size, a struct's first field.
func sized[T any](value *T) *T {
	*(*uint32)(unsafe.Pointer(value)) = uint32(unsafe.Sizeof(*value))
	return value
}

// filled returns the struct that a function fills in.
func filled[T any](ask func(*T) Result) (T, error) {
	return got(func(value *T) Result { return ask(sized(value)) })
}

// finished turns raw.ErrorNotReady, which has no message, into false.
func finished(query func() Result) (bool, error) {
	err := check(query)
	if errors.Is(err, raw.ErrorNotReady) {
		return false, nil
	}
	return err == nil, err
}

// native calls a function that returns NULL instead of a result, and another one for the result.
func native(ask func() uintptr, why func() Result) (uintptr, error) {
	return got(func(found *uintptr) Result {
		if *found = ask(); *found != 0 {
			return raw.Success
		}
		if result := why(); result != raw.Success && result != raw.ErrorNotReady {
			return result
		}
		return raw.ErrorInvalidHandle
	})
}

// first returns the address of a slice's first element, or nil if it is empty.
func first[T any](slice []T) *T {
	if len(slice) == 0 {
		return nil
	}
	return &slice[0]
}

func length[T any](slice []T) uint32 { return uint32(len(slice)) }

// cText returns a text that ends with a byte 0. C would cut one with a byte 0 in it.
func cText(what, text string) (*byte, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, &Error{raw.ErrorInvalidValue, what + " has a byte 0 in it"}
	}
	return &append([]byte(text), 0)[0], nil
}

// optionalText returns nil for "".
func optionalText(what, text string) (*byte, error) {
	if text == "" {
		return nil, nil
	}
	return cText(what, text)
}

// ids returns the SM numbers that a function writes.
func ids(ask func(room *uint32, capacity uint32, count *uint32) Result) ([]uint32, error) {
	room := make([]uint32, raw.MaxSMs)
	count, err := got(func(count *uint32) Result { return ask(&room[0], raw.MaxSMs, count) })
	if err != nil {
		return nil, err
	}
	return room[:count:count], nil
}

// listed returns all that a function lists, however long the list is.
func listed[T any](ask func(room *T, capacity uint32, count *uint32) Result) ([]T, error) {
	var live []T
	for {
		var count uint32
		err := check(func() Result { return ask(first(live), length(live), &count) })
		if err == nil {
			return live[:count], nil
		}
		if int(count) <= len(live) {
			return nil, err
		}
		live = make([]T, count)
	}
}
