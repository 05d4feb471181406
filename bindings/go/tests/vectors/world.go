package main

import (
	"errors"
	"fmt"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

// object has a handle.
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

// world has the objects of one vector by their names.
type world struct {
	objects map[string]interface{}
	made    []string // with handles, in order
	pushed  int
	before  *raw.CacheStats // nil until a driver is open
}

func newWorld() *world {
	world := &world{objects: map[string]interface{}{"zero": gcx.Resource{}}}
	world.countFromHere()
	return world
}

// countFromHere fails before the first vector opens a driver.
func (world *world) countFromHere() {
	if stats, err := gcx.Cache(); err == nil {
		world.before = &stats
	}
}

// end closes all objects, the last first, and checks that no context is left.
func end(world *world, _ []string) ([]string, error) {
	for ; world.pushed > 0; world.pushed-- {
		if _, err := gcx.Pop(); err != nil {
			return nil, err
		}
	}
	for i := len(world.made) - 1; i >= 0; i-- {
		err := world.objects[world.made[i]].(closer).Close()
		// The vector may have closed it.
		if err != nil && !errors.Is(err, raw.ErrorInvalidHandle) {
			return nil, err
		}
	}
	live, err := gcx.Contexts(-1)
	if err == nil && len(live) != 0 {
		err = fmt.Errorf("%d contexts are still in use", len(live))
	}
	return nil, err
}

// keep names what a step created. It is called with what the step returned, also if that failed.
func (world *world) keep(name string, object interface{}, err error) error {
	if err != nil {
		return err
	}
	world.objects[name] = object
	if _, ok := object.(closer); ok {
		world.made = append(world.made, name)
	}
	return nil
}

// find returns the object with a name, if it has the type.
func find[T any](world *world, name string) T {
	object, ok := world.objects[name].(T)
	if !ok {
		wrong("%s is no object that can be used so", name)
	}
	return object
}

func (world *world) nameOf(context gcx.Context) string {
	for _, name := range world.made {
		if world.objects[name] == interface{}(context) {
			return name
		}
	}
	return "-"
}
