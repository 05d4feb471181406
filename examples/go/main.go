// Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run. It opens
// libgcx.so by dlopen, without cgo.
//
//	CGO_ENABLED=0 go build -o scenario . && ./scenario [LIBRARY]
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	gcx "example.org/gcx/bindings/go"
)

// Part is a context and a stream of it.
type Part struct {
	context gcx.Context
	stream  gcx.Stream
}

// Close destroys both; work in the stream finishes.
func (part Part) Close() {
	_ = part.stream.Close()
	_ = part.context.Close()
}

func scenario() error {
	device, err := gcx.DeviceResource(0, gcx.SM)
	if err != nil {
		return err
	}
	groups, _, err := device.Split(gcx.Counts(108, 24), 0)
	if err != nil {
		return err
	}
	owner := map[uint32]int{}
	for i, group := range groups {
		part, err := newPart(group)
		if err != nil {
			return err
		}
		defer part.Close()

		sms, err := part.stream.ProbeSMs() // a kernel notes where it runs
		if err != nil {
			return err
		}
		fmt.Printf("partition %d runs on %d SMs: %s\n", i, len(sms), words(sms))
		for _, sm := range sms {
			if other, taken := owner[sm]; taken {
				return fmt.Errorf("SM %d is in partitions %d and %d", sm, other, i)
			}
			owner[sm] = i
		}
	}
	fmt.Println("no SM is in both")

	if _, _, err = device.Split(gcx.Counts(140), 0); err == nil {
		return errors.New("140 SMs were given")
	}
	fmt.Printf("140 SMs: %v\n", err)
	return nil // the parts are given back here
}

func newPart(group gcx.Resource) (Part, error) {
	context, err := gcx.NewContext(0, group)
	if err != nil {
		return Part{}, err
	}
	stream, err := context.NewStream(0) // stream.Native() is the cudaStream_t
	if err != nil {
		_ = context.Close()
		return Part{}, err
	}
	return Part{context, stream}, nil
}

// words lists numbers.
func words(numbers []uint32) string {
	return strings.Trim(fmt.Sprint(numbers), "[]")
}

func run(library string) error {
	if err := gcx.Open(library); err != nil {
		return err
	}
	info, err := gcx.Device(0)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d SMs\n", info.Name, info.SMCount)
	if err := scenario(); err != nil {
		return err
	}
	stats, err := gcx.Cache()
	fmt.Printf("given back: %d contexts in use\n", stats.InUse)
	return err
}

func main() {
	library := gcx.DefaultLibrary
	if len(os.Args) > 1 {
		library = os.Args[1]
	}
	if err := run(library); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
