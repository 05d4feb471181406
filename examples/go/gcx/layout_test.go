package gcx

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// The C API as data.
type description struct {
	Structs []struct {
		Name   string
		Size   uintptr
		Fields []struct{ Offset, Size uintptr }
	}
	Functions []struct {
		Name       string
		Parameters []struct{ Kind string }
	}
}

func described(t *testing.T) description {
	t.Helper()
	text, err := os.ReadFile("../../../docs/gcx-api.json")
	if err != nil {
		t.Fatal(err)
	}
	var api description
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	return api
}

func TestStructsAreLaidOutAsInC(t *testing.T) {
	mirrors := map[string]interface{}{
		"gcx_device_info": deviceInfo{}, "gcx_resource": Resource{},
		"gcx_resource_info": resourceInfo{}, "gcx_sm_request": Request{},
		"gcx_context_params": contextParams{}, "gcx_context_info": ContextInfo{},
		"gcx_live_context": LiveContext{}, "gcx_stream_params": streamParams{},
		"gcx_stream_info": StreamInfo{}, "gcx_cache_stats": CacheStats{},
		"gcx_driver_info": driverInfo{}, "gcx_capability_info": capabilityInfo{},
		"gcx_lease_params": leaseParams{}, "gcx_lease_size": LeaseSize{},
		"gcx_lease_info": LeaseInfo{}, "gcx_live_lease": LiveLease{},
		"gcx_prepare_params": prepareParams{}, "gcx_cache_trimmed": CacheTrimmed{},
		"gcx_kernel_fit_params": KernelFitParams{}, "gcx_kernel_fit": KernelFit{},
		"gcx_queue_info": QueueInfo{}, "gcx_published_process": PublishedProcess{},
		"gcx_published_lease": PublishedLease{}, "gcx_hold_params": holdParams{},
		"gcx_hold_info": HoldInfo{}, "gcx_live_hold": LiveHold{}, "gcx_mps_info": MPSInfo{},
		"gcx_graph_params": GraphParams{}, "gcx_graph_info": GraphInfo{},
		"gcx_graph_node": GraphNode{}, "gcx_kernel_params": kernelParams{},
	}
	for _, struct_ := range described(t).Structs {
		mirror, known := mirrors[struct_.Name]
		if !known {
			t.Errorf("%s has no mirror", struct_.Name)
			continue
		}
		is := reflect.TypeOf(mirror)
		if is.Size() != struct_.Size {
			t.Errorf("%s: %d bytes, not %d", struct_.Name, is.Size(), struct_.Size)
		}
		// Go's own field for C's padding isn't one of C's.
		var fields []reflect.StructField
		for i := 0; i < is.NumField(); i++ {
			if field := is.Field(i); field.Name != "_" || field.Type.Kind() == reflect.Array {
				fields = append(fields, field)
			}
		}
		if len(fields) != len(struct_.Fields) {
			t.Errorf("%s: %d fields, not %d", struct_.Name, len(fields), len(struct_.Fields))
			continue
		}
		for i, want := range struct_.Fields {
			if fields[i].Offset != want.Offset || fields[i].Type.Size() != want.Size {
				t.Errorf("%s.%s: %d bytes at %d, not %d at %d", struct_.Name, fields[i].Name,
					fields[i].Type.Size(), fields[i].Offset, want.Size, want.Offset)
			}
		}
	}
}

// What Go has no use for here: Go's errors come with their name, and the log goes by GCX_LOG.
var leftOut = map[string]bool{
	"gcx_version": true, "gcx_result_string": true, "gcx_simulator_path": true,
	"gcx_log_set_callback": true,
}

func TestFunctionsTakeWhatCTakes(t *testing.T) {
	declared := map[string]reflect.Type{}
	for i, all := 0, reflect.TypeOf(c); i < all.NumField(); i++ {
		declared[all.Field(i).Tag.Get("c")] = all.Field(i).Type
	}
	for _, function := range described(t).Functions {
		is, known := declared[function.Name]
		if known == leftOut[function.Name] {
			t.Errorf("%s: bound %v, left out %v", function.Name, known, leftOut[function.Name])
		}
		if known && is.NumIn() != len(function.Parameters) {
			t.Errorf("%s: %d parameters, not %d", function.Name, is.NumIn(), len(function.Parameters))
		}
		delete(declared, function.Name)
	}
	for name := range declared {
		t.Errorf("%s isn't in gcx.h", name)
	}
}
