package gcx

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
)

// What a process does that never opens the library.
const beforeOpen = "call everything before Open"

// Every exported function of the package that returns an error, but Open.
var functions = map[string]interface{}{
	"Acquire": Acquire, "Cache": Cache, "ContextFromNative": ContextFromNative, "Contexts": Contexts,
	"Current": Current, "Device": Device, "DeviceCount": DeviceCount, "DeviceResource": DeviceResource,
	"Driver": Driver, "EventFromNative": EventFromNative, "HasCapability": HasCapability, "Holds": Holds,
	"JoinHold": JoinHold, "Leases": Leases, "MPS": MPS, "MapSMs": MapSMs, "NewCancel": NewCancel,
	"NewContext": NewContext, "NewEvent": NewEvent, "NewGraph": NewGraph, "OpenDriver": OpenDriver, "Pop": Pop,
	"Prepare": Prepare, "PrepareContexts": PrepareContexts, "PublishStart": PublishStart,
	"PublishStop": PublishStop, "PublishedLeases": PublishedLeases, "PublishedProcesses": PublishedProcesses,
	"Queues": Queues, "ReportPartitionCounts": ReportPartitionCounts,
	"ReportsPartitionCounts": ReportsPartitionCounts, "RequestConnections": RequestConnections,
	"Resize": Resize, "SetCacheLimit": SetCacheLimit, "SharedSMs": SharedSMs,
	"StreamFromNative": StreamFromNative, "StreamPriorities": StreamPriorities, "TakeHold": TakeHold,
	"TrimCache": TrimCache,
}

// The types that have methods which return errors.
var values = []interface{}{
	Cancel{}, Context{}, Event{}, Graph{}, Hold{}, Lease{}, Resource{}, Stream{},
}

// callEverything calls every function and method with zero values.
func callEverything() error {
	var wrong []string
	call := func(name string, function reflect.Value) {
		if function.Type().NumOut() == 0 {
			return
		}
		var arguments []reflect.Value
		for i := 0; i < function.Type().NumIn(); i++ {
			if !function.Type().IsVariadic() || i < function.Type().NumIn()-1 {
				arguments = append(arguments, reflect.Zero(function.Type().In(i)))
			}
		}
		results := function.Call(arguments)
		err, is := results[len(results)-1].Interface().(error)
		if !is || !errors.Is(err, SharedObjectInitFailed) ||
			!strings.Contains(err.Error(), "GCX_ERROR_SHARED_OBJECT_INIT_FAILED: gcx: the library is not open") {
			wrong = append(wrong, fmt.Sprintf("%s: %v", name, err))
		}
	}
	for name, function := range functions {
		call(name, reflect.ValueOf(function))
	}
	for _, value := range values {
		of := reflect.ValueOf(value)
		for i := 0; i < of.NumMethod(); i++ {
			call(of.Type().Name()+"."+of.Type().Method(i).Name, of.Method(i))
		}
	}
	params := PrepareParams{Progress: func(uint32, uint32) {}}
	call("PrepareContexts with progress", reflect.ValueOf(func() error { return PrepareContexts(params) }))
	if said := InvalidHandle.Error(); said != "gcx result 400" {
		wrong = append(wrong, "InvalidHandle is "+said)
	}
	if _, err := Acquire(0, 8, LeaseParams{Name: "a\x00b"}); !errors.Is(err, InvalidValue) {
		wrong = append(wrong, fmt.Sprintf("a name with a byte 0: %v", err))
	}
	if err := Open("libc.so.6"); err == nil {
		wrong = append(wrong, "libc was taken for libgcx")
	}
	call("Cache after a failed Open", reflect.ValueOf(Cache))
	if len(wrong) != 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

func TestCallBeforeOpenReturnsError(t *testing.T) {
	runs(t, beforeOpen)
	var none *Error
	if none.Error() != "<nil>" || none.Unwrap() != nil {
		t.Errorf("a nil *Error says %q", none.Error())
	}
}

// The lists above name everything that this package exports.
func TestCallBeforeOpenCoversPackage(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]bool{"Error": true, "Result": true} // made by others, and never by a caller
	for _, value := range values {
		of[reflect.TypeOf(value).Name()] = true
	}
	for path, file := range packages["gcx"].Files {
		for _, declared := range file.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || !function.Name.IsExported() || strings.HasSuffix(path, "_test.go") || !fails(function) {
				continue
			}
			name := function.Name.Name
			if function.Recv == nil {
				if _, listed := functions[name]; !listed && name != "Open" {
					t.Errorf("%s is not in the list", name)
				}
			} else if receiver, plain := function.Recv.List[0].Type.(*ast.Ident); plain && !of[receiver.Name] {
				t.Errorf("%s of %s is not in the list", name, receiver.Name)
			}
		}
	}
}

// fails tells whether a function returns an error.
func fails(function *ast.FuncDecl) bool {
	if function.Type.Results == nil {
		return false
	}
	results := function.Type.Results.List
	last, is := results[len(results)-1].Type.(*ast.Ident)
	return is && last.Name == "error"
}
