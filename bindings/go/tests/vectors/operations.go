package main

import (
	"errors"
	"fmt"
	"strings"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

// What has a handle.
type closer interface{ Close() error }

// Contexts and streams order work; more can be waited for.
type orderer interface {
	Record(gcx.Event) error
	Wait(gcx.Event) error
}
type synchronizer interface{ Synchronize() error }
type querier interface{ Query() (bool, error) }
type holder interface {
	Resource(raw.ResourceType) (gcx.Resource, error)
}
type streamed interface {
	NewStream(priority int32) (gcx.Stream, error)
}

// An operation turns inputs into outputs as the files write them.
type operation func(world *world, in []string) []string

// answer formats values as outputs.
func answer(values ...interface{}) []string {
	outputs := make([]string, len(values))
	for i, value := range values {
		outputs[i] = fmt.Sprint(value)
	}
	return outputs
}

// done ends an operation without outputs.
func done(err error) []string {
	check(err)
	return nil
}

// ofDevice is an operation whose first input is a device or another number.
func ofDevice(run func(*world, int32, []string) []string) operation {
	return func(world *world, in []string) []string {
		return run(world, int32(parse(in[0])), in[1:])
	}
}

// on is an operation whose first input is an object of a type.
func on[T any](run func(*world, T, []string) []string) operation {
	return func(world *world, in []string) []string {
		return run(world, find[T](world, in[0]), in[1:])
	}
}

// onTwo is an operation whose second input is an object too.
func onTwo[T, U any](run func(*world, T, U, []string) []string) operation {
	return on(func(world *world, first T, in []string) []string {
		return run(world, first, find[U](world, in[0]), in[1:])
	})
}

// silent is an operation on an object that only succeeds or fails.
func silent[T any](run func(T) error) operation {
	return on(func(_ *world, object T, _ []string) []string {
		return done(run(object))
	})
}

// joined is a set operation.
func joined(operation func(a, b gcx.Resource) (gcx.Resource, error)) operation {
	return onTwo(func(world *world, a, b gcx.Resource, in []string) []string {
		return keepSMs(world, in[0], must(operation(a, b)))
	})
}

// keepSMs names a resource and returns its SMs.
func keepSMs(world *world, name string, resource gcx.Resource) []string {
	world.keep(name, resource)
	return answer(must(resource.Info()).SMCount)
}

var operations = map[string]operation{
	"open": func(_ *world, in []string) []string {
		return done(gcx.OpenDriver(in[0]))
	},
	"driver": func(*world, []string) []string {
		info := must(gcx.Driver())
		return answer(info.Version, info.Simulated)
	},
	"capability": ofDevice(func(_ *world, number int32, _ []string) []string {
		return answer(must(gcx.Driver()).Capabilities[number])
	}),
	"devices": func(*world, []string) []string { return answer(must(gcx.DeviceCount())) },
	"device": ofDevice(func(_ *world, device int32, _ []string) []string {
		info := must(gcx.Device(device))
		return answer(info.ComputeCapabilityMajor, info.ComputeCapabilityMinor, info.SMCount, info.Name)
	}),
	"priorities": ofDevice(func(_ *world, device int32, _ []string) []string {
		least, greatest, err := gcx.StreamPriorities(device)
		check(err)
		return answer(least, greatest)
	}),
	"resource": ofDevice(func(world *world, device int32, in []string) []string {
		return world.keep(in[1], must(gcx.DeviceResource(device, raw.ResourceType(number(in[0], types)))))
	}),
	"map": ofDevice(func(_ *world, device int32, in []string) []string {
		return done(gcx.MapSMs(device, raw.SMFamily(number(in[0], families))))
	}),
	"end": func(world *world, _ []string) []string {
		world.end()
		return nil
	},

	"limit": ofDevice(func(_ *world, limit int32, _ []string) []string {
		return done(gcx.SetCacheLimit(uint32(limit)))
	}),
	"trim": ofDevice(func(_ *world, contexts int32, _ []string) []string {
		return answer(must(gcx.TrimCache(uint32(contexts))).Contexts)
	}),
	"ahead": func(world *world, in []string) []string {
		return done(gcx.PrepareContexts(gcx.PrepareParams{}, resourcesOf(world, in[0])...))
	},
	"cache": func(world *world, _ []string) []string {
		now, before := must(gcx.Cache()), world.before
		return answer(now.InUse, now.Cached, now.Hits-before.Hits, now.Misses-before.Misses,
			now.Evicted-before.Evicted)
	},
	"live": ofDevice(func(_ *world, device int32, _ []string) []string {
		var items []string
		for _, live := range must(gcx.Contexts(device)) {
			items = append(items, fmt.Sprintf("%d/%d/%d/%d", live.SMCount, live.HandleCount,
				live.StreamCount, live.Flags))
		}
		return answer(listed(items))
	}),

	"info": on(func(_ *world, resource gcx.Resource, _ []string) []string {
		info := must(resource.Info())
		domain := "-"
		if info.Flags&raw.SMRequestLocalityDomainID != 0 {
			domain = fmt.Sprint(info.LocalityDomainID)
		}
		return answer(info.Device, word(uint32(info.Family), families), info.SMCount, info.AtomCount,
			info.MinPartitionSize, info.CoscheduledAlignment, info.Flags, domain)
	}),
	"queue": on(func(_ *world, resource gcx.Resource, _ []string) []string {
		info := must(resource.Info())
		return answer(info.Device, word(uint32(info.WorkqueueScope), scopes),
			info.WorkqueueConcurrencyLimit)
	}),
	"split":    on(split),
	"union":    joined(gcx.Resource.Union),
	"subtract": joined(gcx.Resource.Subtract),
	"overlap": onTwo(func(_ *world, a, b gcx.Resource, _ []string) []string {
		return answer(must(a.Overlap(b)))
	}),
	"atom": on(func(world *world, resource gcx.Resource, in []string) []string {
		return keepSMs(world, in[1], must(resource.Atom(uint32(parse(in[0])))))
	}),
	"sms": on(func(_ *world, resource gcx.Resource, _ []string) []string {
		return answer(counts(must(resource.SMIDs())))
	}),
	"cluster": on(func(_ *world, resource gcx.Resource, _ []string) []string {
		return answer(must(resource.MaxClusterSize()))
	}),
	"configure": on(func(world *world, config gcx.Resource, in []string) []string {
		scope := raw.WorkqueueScope(number(in[0], scopes))
		return world.keep(in[2], must(config.Configured(scope, uint32(parse(in[1])))))
	}),
	"same": same,

	"context": func(world *world, in []string) []string {
		resources := resourcesOf(world, in[0])
		return world.keep(in[2], must(gcx.NewContext(number(in[1], contextFlags), resources...)))
	},
	"get": on(func(world *world, from holder, in []string) []string {
		return world.keep(in[1], must(from.Resource(raw.ResourceType(number(in[0], types)))))
	}),
	"stream": on(func(world *world, of streamed, in []string) []string {
		stream := must(of.NewStream(int32(parse(in[0]))))
		world.keep(in[1], stream)
		info := must(stream.Info())
		return answer(info.Device, info.Priority, info.SMCount)
	}),
	"event": ofDevice(func(world *world, device int32, in []string) []string {
		return world.keep(in[1], must(gcx.NewEvent(device, number(in[0], eventFlags))))
	}),
	"adopt": adopt,
	"probe": on(func(_ *world, stream gcx.Stream, _ []string) []string {
		return answer(counts(must(stream.ProbeSMs())))
	}),
	"push": on(func(world *world, context gcx.Context, _ []string) []string {
		check(context.Push())
		world.pushed++
		return nil
	}),
	"pop": func(world *world, _ []string) []string {
		context := must(gcx.Pop())
		world.pushed--
		return answer(world.nameOf(context))
	},
	"current": func(world *world, _ []string) []string {
		return answer(world.nameOf(must(gcx.Current())))
	},
	"record": onTwo(func(_ *world, by orderer, event gcx.Event, _ []string) []string {
		return done(by.Record(event))
	}),
	"wait": onTwo(func(_ *world, by orderer, event gcx.Event, _ []string) []string {
		return done(by.Wait(event))
	}),
	"synchronize": silent(synchronizer.Synchronize),
	"query": silent(func(what querier) error {
		if !must(what.Query()) {
			return &gcx.Error{Result: raw.ErrorNotReady}
		}
		return nil
	}),
	"elapsed": onTwo(func(_ *world, start, end gcx.Event, _ []string) []string {
		must(end.Elapsed(start))
		return nil
	}),
	"close": silent(closer.Close),

	"lease": ofDevice(func(world *world, device int32, in []string) []string {
		values := make([]uint32, 5)
		for i, words := range []map[string]uint32{smCounts, leaseFlags, families, nil, nil} {
			values[i] = number(in[i], words)
		}
		lease := must(gcx.Acquire(device, values[0], gcx.LeaseParams{
			Name: in[5], Flags: values[1], Family: raw.SMFamily(values[2]), MinSMCount: values[3],
			ExclusiveSMCount: values[4],
		}))
		world.keep(in[5], lease)
		return answer(must(lease.Info()).SMCount)
	}),
	"resize": func(world *world, in []string) []string {
		sizes := leaseSizes(world, in[0])
		check(gcx.Resize(number(in[1], resizeFlags), sizes...))
		var now []uint32
		for _, size := range sizes {
			now = append(now, must(size.Lease.Info()).SMCount)
		}
		return answer(counts(now))
	},
	"prepare": func(world *world, in []string) []string {
		return done(gcx.Prepare(leaseSizes(world, in[0])...))
	},
	"held": on(func(world *world, lease gcx.Lease, in []string) []string {
		return keepSMs(world, in[0], must(lease.Resource()))
	}),
	"alone": on(func(_ *world, lease gcx.Lease, _ []string) []string {
		return answer(must(lease.Info()).ExclusiveSMCount)
	}),
	"leases": ofDevice(func(_ *world, device int32, _ []string) []string {
		var items []string
		for _, live := range must(gcx.Leases(device)) {
			items = append(items, fmt.Sprintf("%d/%d/%d", live.SMCount, live.StreamCount, live.Flags))
		}
		return answer(listed(items))
	}),
}

// resourcesOf finds the resources of a list of names.
func resourcesOf(world *world, names string) []gcx.Resource {
	var resources []gcx.Resource
	for _, name := range list(names) {
		resources = append(resources, find[gcx.Resource](world, name))
	}
	return resources
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

// split also plans: both must give the same result.
func split(world *world, resource gcx.Resource, in []string) []string {
	flags, wanted := number(in[0], splitFlags), requests(in[1])
	planned, left, planError := resource.Plan(wanted, flags)
	groups, rest, splitError := resource.Split(wanted, flags)
	if planError != nil || splitError != nil {
		// Their messages begin with different functions.
		var plan, split *gcx.Error
		both := errors.As(planError, &plan) && errors.As(splitError, &split)
		if !both || plan.Result != split.Result {
			differs("the plan answers %v, the split %v", planError, splitError)
		}
		check(splitError)
	}
	var sms []uint32
	for i, group := range groups {
		sms = append(sms, must(group.Info()).SMCount)
		world.keep(fmt.Sprintf("%s.%d", in[2], i), group)
	}
	over := must(rest.Info()).SMCount
	world.keep(in[2]+".rest", rest)
	if counts(planned) != counts(sms) || left != over {
		differs("the plan is %v and %d, the split %v and %d", planned, left, sms, over)
	}
	return answer(counts(sms), over)
}

// same compares two resources, or two contexts.
func same(world *world, in []string) []string {
	yes := map[bool]string{true: "yes", false: "no"}
	if a, is := world.objects[in[0]].(gcx.Resource); is {
		return answer(yes[a == find[gcx.Resource](world, in[1])])
	}
	a := must(find[gcx.Context](world, in[0]).Info())
	b := must(find[gcx.Context](world, in[1]).Info())
	return answer(yes[a.ID == b.ID])
}

// adopt keeps a further handle for the native one of an object.
func adopt(world *world, in []string) []string {
	switch object := world.objects[in[0]].(type) {
	case gcx.Stream:
		world.keep(in[1], must(gcx.StreamFromNative(must(object.Native()))))
	case gcx.Event:
		world.keep(in[1], must(gcx.EventFromNative(must(object.Native()))))
	default:
		wrong("%s has no native handle", in[0])
	}
	return nil
}
