// Answers the steps of vectors through the package gcx, for tests/vectors/ask.py; the README there says
// how.
//
//	GCX_LIBRARY=LIBRARY vectors
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	gcx "example.org/gcx/bindings/go"
	"example.org/gcx/bindings/go/generated/raw"
)

// world has the objects of one vector by their names.
type world struct {
	objects map[string]interface{}
	made    []string // with handles, in order
	pushed  int
	before  raw.CacheStats // zero until a driver is open
}

func newWorld() *world {
	before, _ := gcx.Cache() // fails before the first vector opens a driver
	return &world{objects: map[string]interface{}{"zero": gcx.Resource{}}, before: before}
}

// end closes all objects, the last first, and checks that no context is left.
func (world *world) end() {
	for ; world.pushed > 0; world.pushed-- {
		must(gcx.Pop())
	}
	for i := len(world.made) - 1; i >= 0; i-- {
		err := world.objects[world.made[i]].(closer).Close()
		// The vector may have closed it.
		if !errors.Is(err, raw.ErrorInvalidHandle) {
			check(err)
		}
	}
	if live := must(gcx.Contexts(-1)); len(live) != 0 {
		differs("%d contexts are still in use", len(live))
	}
}

// keep names what a step created, which has no outputs.
func (world *world) keep(name string, object interface{}) []string {
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

// A step ends by a panic: with a *gcx.Error if a call failed, with a difference, or with what is wrong.
type difference string

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// differs ends a step whose answers contradict each other.
func differs(format string, values ...interface{}) {
	panic(difference(fmt.Sprintf(format, values...)))
}

// wrong ends a step whose line is wrong, or names what isn't there.
func wrong(format string, values ...interface{}) {
	panic(fmt.Errorf(format, values...))
}

// answered returns the fields of the answer to a step.
func (world *world) answered(name string, inputs []string) (fields []string) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case *gcx.Error:
			message := strings.ReplaceAll(problem.Message, "\n", " ")
			fields = []string{problem.Result.Error(), message}
		case difference:
			fields = []string{"differs", string(problem)}
		default:
			fields = []string{"wrong", fmt.Sprint(problem)}
		}
	}()
	operation, known := operations[name]
	if !known {
		wrong("no such operation")
	}
	return append([]string{"GCX_SUCCESS"}, operation(world, inputs)...)
}

func main() {
	library := os.Getenv("GCX_LIBRARY")
	if library == "" {
		library = gcx.DefaultLibrary
	}
	if err := gcx.Open(library); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Contexts are pushed in a thread.
	runtime.LockOSThread()
	world := newWorld()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Split(lines.Text(), "\t")
		fmt.Println(strings.Join(world.answered(words[0], words[1:]), "\t"))
		if words[0] == "end" {
			world = newWorld()
		}
	}
}
