package main

import (
	"fmt"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

// An operation turns inputs into outputs as the files write them.
type operation func(world *world, in []string) ([]string, error)

// answer formats values as outputs.
func answer(err error, values ...interface{}) ([]string, error) {
	if err != nil {
		return nil, err
	}
	outputs := make([]string, len(values))
	for i, value := range values {
		outputs[i] = fmt.Sprint(value)
	}
	return outputs, nil
}

// ofDevice is an operation whose first input is a device or another number.
func ofDevice(run func(*world, int32, []string) ([]string, error)) operation {
	return func(world *world, in []string) ([]string, error) {
		return run(world, int32(parse(in[0])), in[1:])
	}
}

// on is an operation whose first input is an object of a type.
func on[T any](run func(*world, T, []string) ([]string, error)) operation {
	return func(world *world, in []string) ([]string, error) {
		return run(world, find[T](world, in[0]), in[1:])
	}
}

// onTwo is an operation whose second input is an object too.
func onTwo[T, U any](run func(*world, T, U, []string) ([]string, error)) operation {
	return on(func(world *world, first T, in []string) ([]string, error) {
		return run(world, first, find[U](world, in[0]), in[1:])
	})
}

// joined is a set operation.
func joined(operation func(a, b gcx.Resource) (gcx.Resource, error)) operation {
	return onTwo(func(world *world, a, b gcx.Resource, in []string) ([]string, error) {
		result, err := operation(a, b)
		return keepResource(world, in[0], result, err)
	})
}

// keepResource names a resource and returns its SMs.
func keepResource(world *world, name string, resource gcx.Resource, err error) ([]string, error) {
	if err := world.keep(name, resource, err); err != nil {
		return nil, err
	}
	info, err := resource.Info()
	return answer(err, info.SMCount)
}

var operations map[string]operation

func init() {
	operations = map[string]operation{
		"open": func(_ *world, in []string) ([]string, error) {
			return nil, gcx.OpenDriver(in[0])
		},
		"driver": func(*world, []string) ([]string, error) {
			info, err := gcx.Driver()
			return answer(err, info.Version, info.Simulated)
		},
		"capability": ofDevice(func(_ *world, number int32, _ []string) ([]string, error) {
			info, err := gcx.Driver()
			return answer(err, info.Capabilities[number])
		}),
		"devices": func(*world, []string) ([]string, error) {
			count, err := gcx.DeviceCount()
			return answer(err, count)
		},
		"device": ofDevice(func(_ *world, device int32, _ []string) ([]string, error) {
			info, err := gcx.Device(device)
			return answer(err, info.ComputeCapabilityMajor, info.ComputeCapabilityMinor, info.SMCount,
				info.Name)
		}),
		"priorities": ofDevice(func(_ *world, device int32, _ []string) ([]string, error) {
			least, greatest, err := gcx.StreamPriorities(device)
			return answer(err, least, greatest)
		}),
		"resource": ofDevice(func(world *world, device int32, in []string) ([]string, error) {
			resource, err := gcx.DeviceResource(device, raw.ResourceType(number(in[0], types)))
			return nil, world.keep(in[1], resource, err)
		}),
		"map": ofDevice(func(_ *world, device int32, in []string) ([]string, error) {
			return nil, gcx.MapSMs(device, raw.SMFamily(number(in[0], families)))
		}),
		"limit": ofDevice(func(_ *world, limit int32, _ []string) ([]string, error) {
			return nil, gcx.SetCacheLimit(uint32(limit))
		}),
		"trim": ofDevice(func(_ *world, contexts int32, _ []string) ([]string, error) {
			trimmed, err := gcx.TrimCache(uint32(contexts))
			return answer(err, trimmed.Contexts)
		}),
		"ahead": func(world *world, in []string) ([]string, error) {
			return nil, gcx.PrepareContexts(gcx.PrepareParams{}, resourcesOf(world, in[0])...)
		},
		"cache": func(world *world, _ []string) ([]string, error) {
			stats, err := gcx.Cache()
			before := raw.CacheStats{}
			if world.before != nil {
				before = *world.before
			}
			return answer(err, stats.InUse, stats.Cached, stats.Hits-before.Hits,
				stats.Misses-before.Misses, stats.Evicted-before.Evicted)
		},
		"live": ofDevice(func(_ *world, device int32, _ []string) ([]string, error) {
			contexts, err := gcx.Contexts(device)
			var items []string
			for _, live := range contexts {
				items = append(items, fmt.Sprintf("%d/%d/%d/%d", live.SMCount, live.HandleCount,
					live.StreamCount, live.Flags))
			}
			return answer(err, listed(items))
		}),
		"same": same,
		"end":  end,
	}
	for _, more := range []map[string]operation{ofResources, ofObjects, ofLeases} {
		for name, operation := range more {
			operations[name] = operation
		}
	}
}

// same compares two resources, or two contexts.
func same(world *world, in []string) ([]string, error) {
	yes := map[bool]string{true: "yes", false: "no"}
	if a, is := world.objects[in[0]].(gcx.Resource); is {
		return answer(nil, yes[a == find[gcx.Resource](world, in[1])])
	}
	a, err := find[gcx.Context](world, in[0]).Info()
	if err != nil {
		return nil, err
	}
	b, err := find[gcx.Context](world, in[1]).Info()
	return answer(err, yes[a.ID == b.ID])
}
