// Measures what calls through purego cost, and prints nanoseconds. tests/ffi/overhead.py compares them.
//
//	GCX_DRIVER=sim:h100@13.0 overhead LIBRARY
package main

import (
	"fmt"
	"os"
	"time"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"

	"github.com/ebitengine/purego"
)

// nanoseconds returns what one call takes in the fastest of many turns.
func nanoseconds(calls int, call func()) float64 {
	best := time.Hour
	for turn := 0; turn < 50; turn++ {
		begin := time.Now()
		for i := 0; i < calls; i++ {
			call()
		}
		if took := time.Since(begin); took < best {
			best = took
		}
	}
	return float64(best.Nanoseconds()) / float64(calls)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// round splits, creates cached contexts and streams of the groups, and destroys them.
func round(device gcx.Resource, requests []raw.SMRequest) {
	groups, _, err := device.Split(requests, 0)
	must(err)
	var contexts [2]gcx.Context
	var streams [2]gcx.Stream
	for i, group := range groups {
		contexts[i], err = gcx.NewContext(0, group)
		must(err)
		streams[i], err = contexts[i].NewStream(0)
		must(err)
	}
	for i := range groups {
		must(streams[i].Close())
		must(contexts[i].Close())
	}
}

// bridged calls a function that does nothing with the types of a round: the cost of purego itself. C
// ignores arguments that a function doesn't read.
func bridged(libc uintptr, device *gcx.Resource, requests []raw.SMRequest) func() {
	var split func(*gcx.Resource, *raw.SMRequest, uint32, uint32, *gcx.Resource, *gcx.Resource) int32
	var newContext func(*gcx.Resource, uint32, *[2]uint32, *uintptr) int32
	var newStream func(uintptr, *[3]uint32, *uintptr) int32
	var destroy func(uintptr) int32
	for _, function := range []interface{}{&split, &newContext, &newStream, &destroy} {
		purego.RegisterLibFunc(function, libc, "abs")
	}
	return func() {
		groups := make([]gcx.Resource, len(requests))
		var rest gcx.Resource
		split(device, &requests[0], uint32(len(requests)), 0, &groups[0], &rest)
		for i := range groups {
			var context, stream uintptr
			newContext(&groups[i], 1, &[2]uint32{}, &context)
			newStream(context, &[3]uint32{}, &stream)
			destroy(stream)
			destroy(context)
		}
	}
}

func main() {
	library := os.Args[1]
	must(gcx.Open(library))
	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	must(err)
	var abs func(int32) int32
	purego.RegisterLibFunc(&abs, libc, "abs")

	device, err := gcx.DeviceResource(0, gcx.SM)
	must(err)
	requests := gcx.Counts(108, 24)
	round(device, requests)
	fmt.Printf("abs %.2f\n", nanoseconds(20000, func() { abs(-3) }))
	fmt.Printf("version %.2f\n", nanoseconds(20000, func() { gcx.Raw.Version() }))
	fmt.Printf("bridge %.2f\n", nanoseconds(500, bridged(libc, &device, requests)))
	fmt.Printf("round %.2f\n", nanoseconds(500, func() { round(device, requests) }))
}
