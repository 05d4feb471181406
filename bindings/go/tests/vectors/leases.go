package main

import (
	"fmt"
	"strings"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

var ofLeases = map[string]operation{
	"lease": ofDevice(func(world *world, device int32, in []string) ([]string, error) {
		values := make([]uint32, 5)
		for i, words := range []map[string]uint32{smCounts, leaseFlags, families, nil, nil} {
			values[i] = number(in[i], words)
		}
		lease, err := gcx.Acquire(device, values[0], gcx.LeaseParams{
			Name: in[5], Flags: values[1], Family: raw.SMFamily(values[2]), MinSMCount: values[3],
			ExclusiveSMCount: values[4],
		})
		if err := world.keep(in[5], lease, err); err != nil {
			return nil, err
		}
		info, err := lease.Info()
		return answer(err, info.SMCount)
	}),
	"resize": func(world *world, in []string) ([]string, error) {
		sizes := leaseSizes(world, in[0])
		if err := gcx.Resize(number(in[1], resizeFlags), sizes...); err != nil {
			return nil, err
		}
		var now []uint32
		for _, size := range sizes {
			info, err := size.Lease.Info()
			if err != nil {
				return nil, err
			}
			now = append(now, info.SMCount)
		}
		return answer(nil, counts(now))
	},
	"prepare": func(world *world, in []string) ([]string, error) {
		return nil, gcx.Prepare(leaseSizes(world, in[0])...)
	},
	"held": on(func(world *world, lease gcx.Lease, in []string) ([]string, error) {
		resource, err := lease.Resource()
		return keepResource(world, in[0], resource, err)
	}),
	"alone": on(func(_ *world, lease gcx.Lease, _ []string) ([]string, error) {
		info, err := lease.Info()
		return answer(err, info.ExclusiveSMCount)
	}),
	"leases": ofDevice(func(_ *world, device int32, _ []string) ([]string, error) {
		leases, err := gcx.Leases(device)
		var items []string
		for _, live := range leases {
			items = append(items, fmt.Sprintf("%d/%d/%d", live.SMCount, live.StreamCount, live.Flags))
		}
		return answer(err, listed(items))
	}),
}

// leaseSizes reads a list of NAME/COUNT.
func leaseSizes(world *world, text string) []gcx.LeaseSize {
	var sizes []gcx.LeaseSize
	for _, item := range list(text) {
		fields := strings.Split(item, "/")
		if len(fields) != 2 {
			wrong("%s is no size of a lease", item)
		}
		size := gcx.LeaseSize{Lease: find[gcx.Lease](world, fields[0]), Parked: fields[1] == "parked"}
		if !size.Parked {
			size.SMCount = number(fields[1], smCounts)
		}
		sizes = append(sizes, size)
	}
	return sizes
}
