package gcx

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"example.org/gcx/bindings/go/generated/raw"
)

type description struct {
	Structs []struct {
		Name   string
		Size   uintptr
		Fields []struct{ Offset, Size uintptr }
	}
	Functions []struct{ Name string }
	Enums     []struct {
		Values []struct {
			Name  string
			Value int32
		}
	}
}

func described(t *testing.T) (api description) {
	t.Helper()
	noError(t, json.Unmarshal(must[[]byte](t)(os.ReadFile("../../docs/gcx-api.json")), &api))
	return api
}

// structs are those that functions take, by their lower-case names.
func structs() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	functions := reflect.TypeOf(Raw)
	for i := 0; i < functions.NumField(); i++ {
		function := functions.Field(i).Type
		for j := 0; j < function.NumIn(); j++ {
			if in := function.In(j); in.Kind() == reflect.Ptr && in.Elem().Kind() == reflect.Struct {
				found[strings.ToLower(in.Elem().Name())] = in.Elem()
			}
		}
	}
	return found
}

func TestRawStructsMatchC(t *testing.T) {
	known := structs()
	for _, want := range described(t).Structs {
		is := known[strings.ReplaceAll(strings.TrimPrefix(want.Name, "gcx_"), "_", "")]
		if is == nil || is.Size() != want.Size || is.NumField() != len(want.Fields) {
			t.Errorf("%s is %v", want.Name, is)
			continue
		}
		for i, field := range want.Fields {
			if is.Field(i).Offset != field.Offset || is.Field(i).Type.Size() != field.Size {
				t.Errorf("%s.%s: %d bytes at %d, not %d at %d", want.Name, is.Field(i).Name,
					is.Field(i).Type.Size(), is.Field(i).Offset, field.Size, field.Offset)
			}
		}
	}
}

func TestResultNamesMatchC(t *testing.T) {
	for _, value := range described(t).Enums[0].Values {
		result := Result(value.Value)
		if result.Error() != value.Name || Raw.ResultName(result) != value.Name {
			t.Errorf("%s is %s, in C %s", value.Name, result.Error(), Raw.ResultName(result))
		}
	}
	if said := Result(12345).Error(); said != "gcx result 12345" {
		t.Error(said)
	}
}

// Functions without an idiomatic one: errors have their names, and the log goes by GCX_LOG.
var rawOnly = map[string]bool{
	"gcx_version": true, "gcx_result_name": true, "gcx_result_string": true,
	"gcx_simulator_path": true, "gcx_log_set_callback": true,
}

func TestIdiomaticLayerCallsEveryFunction(t *testing.T) {
	called := map[string]bool{}
	for _, path := range must[[]string](t)(filepath.Glob("*.go")) {
		if !strings.HasSuffix(path, "_test.go") {
			source := must[[]byte](t)(os.ReadFile(path))
			for _, match := range regexp.MustCompile(`\bRaw\.(\w+)`).FindAllSubmatch(source, -1) {
				called[string(match[1])] = true
			}
		}
	}
	table := reflect.TypeOf(Raw)
	names := map[string]bool{}
	for i := 0; i < table.NumField(); i++ {
		name := table.Field(i).Tag.Get("c")
		names[name] = true
		if called[table.Field(i).Name] == rawOnly[name] {
			t.Errorf("%s: called %v, listed as raw only %v", name, called[table.Field(i).Name], rawOnly[name])
		}
	}
	for _, function := range described(t).Functions {
		if !names[function.Name] {
			t.Errorf("%s isn't in the table", function.Name)
		}
	}
}

func callBeforeOpen() error {
	table := reflect.ValueOf(Raw)
	for i := 0; i < table.NumField(); i++ {
		var arguments []reflect.Value
		for j := 0; j < table.Field(i).Type().NumIn(); j++ {
			arguments = append(arguments, reflect.Zero(table.Field(i).Type().In(j)))
		}
		answer := table.Field(i).Call(arguments)[0].Interface()
		if result, is := answer.(Result); is && result != raw.ErrorSharedObjectInitFailed {
			return fmt.Errorf("%s: %w", table.Type().Field(i).Name, result)
		}
	}
	if err := Open("libc.so.6"); err == nil || !strings.Contains(err.Error(), "libc.so.6") {
		return fmt.Errorf("libc was taken for libgcx: %w", err)
	}
	_, err := Cache()
	if !errors.Is(err, raw.ErrorSharedObjectInitFailed) || !strings.Contains(err.Error(), "call gcx.Open first") {
		return fmt.Errorf("a call before Open: %w", err)
	}
	return nil
}

func TestCallBeforeOpenReturnsError(t *testing.T) {
	runs(t, "call before Open")
	var none *Error
	if none.Error() != "<nil>" || none.Unwrap() != nil {
		t.Errorf("a nil *Error says %q", none.Error())
	}
}
