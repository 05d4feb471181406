package main

import (
	"errors"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

var ofObjects = map[string]operation{
	"context": func(world *world, in []string) ([]string, error) {
		context, err := gcx.NewContext(number(in[1], contextFlags), resourcesOf(world, in[0])...)
		return nil, world.keep(in[2], context, err)
	},
	"get": on(func(world *world, from holder, in []string) ([]string, error) {
		resource, err := from.Resource(raw.ResourceType(number(in[0], types)))
		return nil, world.keep(in[1], resource, err)
	}),
	"stream": on(func(world *world, of streamed, in []string) ([]string, error) {
		stream, err := of.NewStream(int32(parse(in[0])))
		if err := world.keep(in[1], stream, err); err != nil {
			return nil, err
		}
		info, err := stream.Info()
		return answer(err, info.Device, info.Priority, info.SMCount)
	}),
	"event": ofDevice(func(world *world, device int32, in []string) ([]string, error) {
		event, err := gcx.NewEvent(device, number(in[0], eventFlags))
		return nil, world.keep(in[1], event, err)
	}),
	"adopt": adopt,
	"probe": on(func(_ *world, stream gcx.Stream, _ []string) ([]string, error) {
		sms, err := stream.ProbeSMs()
		return answer(err, counts(sms))
	}),
	"push": on(func(world *world, context gcx.Context, _ []string) ([]string, error) {
		err := context.Push()
		if err == nil {
			world.pushed++
		}
		return nil, err
	}),
	"pop": func(world *world, _ []string) ([]string, error) {
		context, err := gcx.Pop()
		if err == nil {
			world.pushed--
		}
		return answer(err, world.nameOf(context))
	},
	"current": func(world *world, _ []string) ([]string, error) {
		context, err := gcx.Current()
		return answer(err, world.nameOf(context))
	},
	"record": onTwo(func(_ *world, by orderer, event gcx.Event, _ []string) ([]string, error) {
		return nil, by.Record(event)
	}),
	"wait": onTwo(func(_ *world, by orderer, event gcx.Event, _ []string) ([]string, error) {
		return nil, by.Wait(event)
	}),
	"synchronize": on(func(_ *world, what synchronizer, _ []string) ([]string, error) {
		return nil, what.Synchronize()
	}),
	"query": on(func(_ *world, what querier, _ []string) ([]string, error) {
		ready, err := what.Query()
		if err == nil && !ready {
			err = &gcx.Error{Result: raw.ErrorNotReady}
		}
		return nil, err
	}),
	"elapsed": onTwo(func(_ *world, start, end gcx.Event, _ []string) ([]string, error) {
		_, err := end.Elapsed(start)
		return nil, err
	}),
	"close": on(func(_ *world, what closer, _ []string) ([]string, error) {
		return nil, what.Close()
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

// adopt returns a further handle for the native one of an object.
func adopt(world *world, in []string) ([]string, error) {
	var adopted interface{}
	var native uintptr
	var err error
	switch object := world.objects[in[0]].(type) {
	case gcx.Stream:
		if native, err = object.Native(); err == nil {
			adopted, err = gcx.StreamFromNative(native)
		}
	case gcx.Event:
		if native, err = object.Native(); err == nil {
			adopted, err = gcx.EventFromNative(native)
		}
	default:
		err = errors.New(in[0] + " has no native handle")
	}
	return nil, world.keep(in[1], adopted, err)
}
