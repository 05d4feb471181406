package gcx

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
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
	noError(t, json.Unmarshal(must[[]byte](t)(os.ReadFile("../../docs/generated/gcx-api.json")), &api))
	return api
}

// structs returns the structs that functions take, by their lower-case names.
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

func TestTableHasEveryFunction(t *testing.T) {
	table := reflect.TypeOf(Raw)
	names := map[string]bool{}
	for i := 0; i < table.NumField(); i++ {
		names[table.Field(i).Tag.Get("c")] = true
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
