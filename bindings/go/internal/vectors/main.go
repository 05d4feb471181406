// Runs a file of tests/vectors, which tests/vectors/README.md describes, through the package gcx, and
// prints what differs.
//
//	GCX_LIBRARY=LIBRARY vectors FILE
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	gcx "example.org/gcx/bindings/go"
)

// A vector is a name and steps.
type vector struct {
	name  string
	steps []step
}

type step struct {
	line   int
	fields []string // operation, result, inputs, outputs
}

func read(file string) ([]vector, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var vectors []vector
	for i, line := range strings.Split(string(content), "\n") {
		fields := strings.Split(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case fields[0] == "vector" && len(fields) > 1:
			vectors = append(vectors, vector{name: fields[1]})
		case len(vectors) == 0 || len(fields) < 2:
			return nil, fmt.Errorf("%s:%d: no step of a vector: %s", file, i+1, line)
		default:
			last := &vectors[len(vectors)-1]
			last.steps = append(last.steps, step{i + 1, fields})
		}
	}
	return vectors, nil
}

// run returns how the answer of a step differs from the expected one, or "".
func (world *world) run(step step) (difference string) {
	defer func() {
		if problem := recover(); problem != nil { // of wrong
			difference = fmt.Sprint(problem)
		}
	}()
	name, want, rest := step.fields[0], step.fields[1], step.fields[2:]
	operation, known := operations[name]
	if !known {
		return "no such operation"
	}
	if len(rest) < operation.inputs {
		return fmt.Sprintf("has %d inputs, not %d", len(rest), operation.inputs)
	}
	inputs, outputs := rest[:operation.inputs], rest[operation.inputs:]
	got, err := operation.run(world, inputs)

	var answer *gcx.Error
	switch {
	case err != nil && !errors.As(err, &answer):
		return err.Error() // of the file or the runner
	case err == nil && want != "GCX_SUCCESS":
		return fmt.Sprintf("expected %s, got %s", want, strings.Join(got, " "))
	case err == nil:
		if strings.Join(got, "\t") != strings.Join(outputs, "\t") {
			return fmt.Sprintf("expected %s, got %s", strings.Join(outputs, " "), strings.Join(got, " "))
		}
	case answer.Result.Error() != want:
		return fmt.Sprintf("expected %s, got %v", want, err)
	case len(outputs) > 0:
		for _, piece := range strings.Split(outputs[0], "|") {
			if !strings.Contains(answer.Message, piece) {
				return fmt.Sprintf("expected a message with \"%s\", got %v", piece, err)
			}
		}
	}
	return ""
}

// runFile runs one file in this process, which can open one driver.
func runFile(file string) (agree, differ int, err error) {
	vectors, err := read(file)
	if err != nil {
		return 0, 0, err
	}
	// Contexts are pushed in a thread.
	runtime.LockOSThread()
	for _, vector := range vectors {
		world := newWorld()
		differs := false
		for _, step := range vector.steps {
			if what := world.run(step); what != "" {
				fmt.Printf("%s:%d: %s: %s: %s\n", file, step.line, vector.name, step.fields[0], what)
				differs = true
				break
			}
		}
		if err := world.close(); err != nil {
			fmt.Printf("%s: %s: at its end: %v\n", file, vector.name, err)
			differs = true
		}
		if differs {
			differ++
		} else {
			agree++
		}
	}
	fmt.Printf("%s: %d vectors agree, %d differ, 0 left out\n", file, agree, differ)
	return agree, differ, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors FILE, one, since a process opens one driver")
		os.Exit(2)
	}
	library := os.Getenv("GCX_LIBRARY")
	if library == "" {
		library = gcx.DefaultLibrary
	}
	err := gcx.Open(library)
	var agree, differ int
	if err == nil {
		agree, differ, err = runFile(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || differ != 0 || agree == 0 {
		os.Exit(1)
	}
}
