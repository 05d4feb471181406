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
)

// answered returns the fields of the answer to a step.
func (world *world) answered(name string, inputs []string) (fields []string) {
	defer func() {
		if problem := recover(); problem != nil { // of wrong
			fields = []string{"wrong", fmt.Sprint(problem)}
		}
	}()
	operation, known := operations[name]
	if !known {
		return []string{"wrong", "no such operation"}
	}
	outputs, err := operation(world, inputs)
	var refused *gcx.Error
	switch {
	case errors.As(err, &refused):
		return []string{refused.Result.Error(), strings.ReplaceAll(refused.Message, "\n", " ")}
	case err != nil:
		return []string{"differs", err.Error()}
	}
	return append([]string{"GCX_SUCCESS"}, outputs...)
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
