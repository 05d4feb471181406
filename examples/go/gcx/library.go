// Package gcx is libgcx in Go, without cgo: it opens the library by dlopen, through purego, so that
// programs build with CGO_ENABLED=0. The names and rules are gcx.h's.
//
// Every function may be called from any goroutine. Handles (Context, Stream, Event, Lease, Hold,
// Graph, Cancel) are given up once, by Close; what is closed answers InvalidHandle from then on, a
// second Close too. Nothing is closed by the garbage collector.
package gcx

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Result is a gcx_result. As the target of errors.Is it says which error it was:
// errors.Is(err, gcx.InvalidHandle).
type Result int32

// The results that programs ask for most. The others are there by their numbers.
const (
	Success                      Result = 0
	InvalidValue                 Result = 1
	InvalidDevice                Result = 101
	AlreadyAcquired              Result = 210
	SharedObjectInitFailed       Result = 303
	OperatingSystem              Result = 304
	InvalidHandle                Result = 400
	NotFound                     Result = 500
	NotReady                     Result = 600
	ContextIsDestroyed           Result = 709
	NotPermitted                 Result = 800
	NotSupported                 Result = 801
	InvalidResourceType          Result = 914
	InvalidResourceConfiguration Result = 915
)

// Error is the result's name, as in "GCX_ERROR_INVALID_HANDLE".
func (result Result) Error() string { return c.ResultName(result) }

// Error is what gcx answered: its result, and what was wrong in words.
type Error struct {
	Result  Result
	Message string
}

func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	return e.Result.Error() + ": " + e.Message
}

// Unwrap lets errors.Is compare with a Result.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Result
}

// c has the functions of gcx.h, which Open finds by the tags' names. Before Open they return errors.
var c struct {
	ResultName       func(Result) string                 `c:"gcx_result_name"`
	LastErrorMessage func() string                       `c:"gcx_last_error_message"`
	DriverOpen       func(string) Result                 `c:"gcx_driver_open"`
	DriverGetInfo    func(*driverInfo) Result            `c:"gcx_driver_get_info"`
	CapabilityInfo   func(int32, *capabilityInfo) Result `c:"gcx_capability_get_info"`

	DeviceGetCount     func(*int32) Result                          `c:"gcx_device_get_count"`
	DeviceGetInfo      func(int32, *deviceInfo) Result              `c:"gcx_device_get_info"`
	DevicePriorities   func(int32, *int32, *int32) Result           `c:"gcx_device_get_stream_priority_range"`
	DeviceGetResource  func(int32, ResourceType, *Resource) Result  `c:"gcx_device_get_resource"`
	DeviceMapSMs       func(int32, Family) Result                   `c:"gcx_device_map_sms"`
	DeviceGetSharedSMs func(int32, *uint32, uint32, *uint32) Result `c:"gcx_device_get_shared_sms"`

	ResourceGetInfo     func(*Resource, *resourceInfo) Result                                      `c:"gcx_resource_get_info"`
	WorkqueueConfigure  func(*Resource, WorkqueueScope, uint32, *Resource) Result                  `c:"gcx_workqueue_configure"`
	SMSplit             func(*Resource, *Request, uint32, SplitFlags, *Resource, *Resource) Result `c:"gcx_sm_split"`
	SMPlan              func(*Resource, *Request, uint32, SplitFlags, *uint32, *uint32) Result     `c:"gcx_sm_plan"`
	ResourceUnion       func(*Resource, *Resource, *Resource) Result                               `c:"gcx_resource_union"`
	ResourceSubtract    func(*Resource, *Resource, *Resource) Result                               `c:"gcx_resource_subtract"`
	ResourceIntersect   func(*Resource, *Resource, *Resource) Result                               `c:"gcx_resource_intersect"`
	ResourceOverlap     func(*Resource, *Resource, *uint32) Result                                 `c:"gcx_resource_get_overlap"`
	ResourceLiveOverlap func(*Resource, *uint32) Result                                            `c:"gcx_resource_get_live_overlap"`
	ResourceMaxCluster  func(*Resource, *uint32) Result                                            `c:"gcx_resource_get_max_cluster_size"`
	ResourceGetSMIDs    func(*Resource, *uint32, uint32, *uint32) Result                           `c:"gcx_resource_get_sm_ids"`
	ResourceGetAtom     func(*Resource, uint32, *Resource) Result                                  `c:"gcx_resource_get_atom"`

	ContextCreate      func(*Resource, uint32, *contextParams, *uintptr) Result `c:"gcx_context_create"`
	ContextDestroy     func(uintptr) Result                                     `c:"gcx_context_destroy"`
	ContextGetInfo     func(uintptr, *ContextInfo) Result                       `c:"gcx_context_get_info"`
	ContextList        func(int32, *LiveContext, uint32, *uint32) Result        `c:"gcx_context_list"`
	ContextGetResource func(uintptr, ResourceType, *Resource) Result            `c:"gcx_context_get_resource"`
	ContextNative      func(uintptr) uintptr                                    `c:"gcx_context_native"`
	ContextNativeGreen func(uintptr) uintptr                                    `c:"gcx_context_native_green"`
	ContextFromNative  func(uintptr, *uintptr) Result                           `c:"gcx_context_from_native"`
	ContextPush        func(uintptr) Result                                     `c:"gcx_context_push"`
	ContextPop         func(*uintptr) Result                                    `c:"gcx_context_pop"`
	ContextGetCurrent  func(*uintptr) Result                                    `c:"gcx_context_get_current"`
	ContextSynchronize func(uintptr) Result                                     `c:"gcx_context_synchronize"`
	ContextRecord      func(uintptr, uintptr) Result                            `c:"gcx_context_record"`
	ContextWait        func(uintptr, uintptr) Result                            `c:"gcx_context_wait"`

	StreamCreate      func(uintptr, *streamParams, *uintptr) Result               `c:"gcx_stream_create"`
	StreamFromNative  func(uintptr, *uintptr) Result                              `c:"gcx_stream_from_native"`
	StreamDestroy     func(uintptr) Result                                        `c:"gcx_stream_destroy"`
	StreamNative      func(uintptr) uintptr                                       `c:"gcx_stream_native"`
	StreamGetInfo     func(uintptr, *StreamInfo) Result                           `c:"gcx_stream_get_info"`
	StreamGetResource func(uintptr, ResourceType, *Resource) Result               `c:"gcx_stream_get_resource"`
	StreamMaxCluster  func(uintptr, *uint32) Result                               `c:"gcx_stream_get_max_cluster_size"`
	StreamKernelFit   func(uintptr, uintptr, *KernelFitParams, *KernelFit) Result `c:"gcx_stream_get_kernel_fit"`
	StreamSynchronize func(uintptr) Result                                        `c:"gcx_stream_synchronize"`
	StreamQuery       func(uintptr) Result                                        `c:"gcx_stream_query"`
	StreamRecord      func(uintptr, uintptr) Result                               `c:"gcx_stream_record"`
	StreamWait        func(uintptr, uintptr) Result                               `c:"gcx_stream_wait"`
	StreamProbeSMs    func(uintptr, *uint32, uint32, *uint32) Result              `c:"gcx_stream_probe_sms"`

	EventCreate      func(int32, uint32, *uintptr) Result    `c:"gcx_event_create"`
	EventFromNative  func(uintptr, *uintptr) Result          `c:"gcx_event_from_native"`
	EventDestroy     func(uintptr) Result                    `c:"gcx_event_destroy"`
	EventNative      func(uintptr) uintptr                   `c:"gcx_event_native"`
	EventSynchronize func(uintptr) Result                    `c:"gcx_event_synchronize"`
	EventQuery       func(uintptr) Result                    `c:"gcx_event_query"`
	EventGetElapsed  func(uintptr, uintptr, *float32) Result `c:"gcx_event_get_elapsed"`

	CacheSetLimit func(uint32) Result                            `c:"gcx_cache_set_limit"`
	CachePrepare  func(*Resource, uint32, *prepareParams) Result `c:"gcx_cache_prepare"`
	CacheTrim     func(uint32, *CacheTrimmed) Result             `c:"gcx_cache_trim"`
	CacheGetStats func(*CacheStats) Result                       `c:"gcx_cache_get_stats"`

	LeaseAcquire      func(int32, uint32, *leaseParams, *uintptr) Result `c:"gcx_lease_acquire"`
	LeaseRelease      func(uintptr) Result                               `c:"gcx_lease_release"`
	LeaseResize       func(*LeaseSize, uint32, uint32) Result            `c:"gcx_lease_resize"`
	LeasePrepare      func(*LeaseSize, uint32) Result                    `c:"gcx_lease_prepare"`
	LeaseHandOver     func(uintptr, uintptr, uint32) Result              `c:"gcx_lease_hand_over"`
	LeaseGetInfo      func(uintptr, *LeaseInfo) Result                   `c:"gcx_lease_get_info"`
	LeaseGetResource  func(uintptr, *Resource) Result                    `c:"gcx_lease_get_resource"`
	LeaseList         func(int32, *LiveLease, uint32, *uint32) Result    `c:"gcx_lease_list"`
	LeaseStreamCreate func(uintptr, *streamParams, *uintptr) Result      `c:"gcx_lease_stream_create"`
	LeaseSynchronize  func(uintptr) Result                               `c:"gcx_lease_synchronize"`
	LeaseQuery        func(uintptr) Result                               `c:"gcx_lease_query"`
	CancelCreate      func(*uintptr) Result                              `c:"gcx_cancel_create"`
	CancelSignal      func(uintptr) Result                               `c:"gcx_cancel_signal"`
	CancelDestroy     func(uintptr) Result                               `c:"gcx_cancel_destroy"`

	GraphCreate      func(uintptr, *GraphParams, *uintptr) Result      `c:"gcx_graph_create"`
	GraphDestroy     func(uintptr) Result                              `c:"gcx_graph_destroy"`
	GraphLaunch      func(uintptr, uintptr) Result                     `c:"gcx_graph_launch"`
	GraphLaunchParts func(uintptr, *Stream, uint32) Result             `c:"gcx_graph_launch_parts"`
	GraphPrepare     func(uintptr, *Resource, uint32, uint32) Result   `c:"gcx_graph_prepare"`
	GraphSetPart     func(uintptr, *uint32, uint32, uint32) Result     `c:"gcx_graph_set_part"`
	GraphSetKernel   func(uintptr, uint32, *kernelParams) Result       `c:"gcx_graph_set_kernel"`
	GraphUpdate      func(uintptr, uintptr) Result                     `c:"gcx_graph_update"`
	GraphGetInfo     func(uintptr, *GraphInfo) Result                  `c:"gcx_graph_get_info"`
	GraphGetNodes    func(uintptr, *GraphNode, uint32, *uint32) Result `c:"gcx_graph_get_nodes"`

	QueueGetInfo            func(*QueueInfo) Result `c:"gcx_queue_get_info"`
	QueueRequestConnections func(uint32) Result     `c:"gcx_queue_request_connections"`

	HoldCreate       func(int32, uint32, *holdParams, *uintptr) Result    `c:"gcx_hold_create"`
	HoldDestroy      func(uintptr) Result                                 `c:"gcx_hold_destroy"`
	HoldGetToken     func(uintptr, *byte, uint32) Result                  `c:"gcx_hold_get_token"`
	HoldJoin         func(*byte, *uintptr) Result                         `c:"gcx_hold_join"`
	HoldGetInfo      func(uintptr, *HoldInfo) Result                      `c:"gcx_hold_get_info"`
	HoldGetResource  func(uintptr, *Resource) Result                      `c:"gcx_hold_get_resource"`
	HoldAcquireLease func(uintptr, uint32, *leaseParams, *uintptr) Result `c:"gcx_hold_acquire_lease"`
	HoldList         func(*byte, *LiveHold, uint32, *uint32) Result       `c:"gcx_hold_list"`
	MPSGetInfo       func(int32, *MPSInfo) Result                         `c:"gcx_mps_get_info"`

	ReportPartitionCounts  func() Result       `c:"gcx_report_partition_counts"`
	ReportsPartitionCounts func(*int32) Result `c:"gcx_reports_partition_counts"`

	PublishStart         func(*byte) Result                              `c:"gcx_publish_start"`
	PublishStop          func() Result                                   `c:"gcx_publish_stop"`
	PublishedProcessList func(*PublishedProcess, uint32, *uint32) Result `c:"gcx_published_process_list"`
	PublishedLeaseList   func(*PublishedLease, uint32, *uint32) Result   `c:"gcx_published_lease_list"`
}

// DefaultLibrary is the name under which the loader finds an installed libgcx.
const DefaultLibrary = "libgcx.so.1"

func init() {
	functions := reflect.ValueOf(&c).Elem()
	for i := 0; i < functions.NumField(); i++ {
		function := functions.Field(i).Type()
		functions.Field(i).Set(reflect.MakeFunc(function, func([]reflect.Value) []reflect.Value {
			if function.Out(0) == reflect.TypeOf(Success) {
				return []reflect.Value{reflect.ValueOf(SharedObjectInitFailed)}
			}
			return []reflect.Value{reflect.Zero(function.Out(0))}
		}))
	}
	c.LastErrorMessage = func() string { return "gcx: the library is not open; call gcx.Open first" }
	c.ResultName = func(result Result) string {
		if result == SharedObjectInitFailed {
			return "GCX_ERROR_SHARED_OBJECT_INIT_FAILED"
		}
		return fmt.Sprintf("gcx result %d", int32(result)) // its name is in the library
	}
}

// Open loads libgcx from a path, or by a name that the loader looks up. It comes before every other
// function, once: until then all answer SharedObjectInitFailed. The CUDA driver is opened by the
// first call that needs it.
func Open(library string) error {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("gcx: %w", err)
	}
	functions := reflect.ValueOf(&c).Elem()
	addresses := make([]uintptr, functions.NumField()) // all of them, or the library isn't used
	for i := range addresses {
		addresses[i], err = purego.Dlsym(handle, functions.Type().Field(i).Tag.Get("c"))
		if err != nil {
			return fmt.Errorf("gcx: %s is no libgcx that this package can use: %w", library, err)
		}
	}
	for i, address := range addresses {
		purego.RegisterFunc(functions.Field(i).Addr().Interface(), address)
	}
	return nil
}

// check makes an error of a result. gcx keeps the message by thread, and a goroutine may be moved to
// another thread between two calls: so both are made in one.
func check(call func() Result) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if result := call(); result != Success {
		return &Error{result, c.LastErrorMessage()}
	}
	return nil
}

// text is a C string that ends at its first 0.
func text(bytes []byte) string {
	for i, b := range bytes {
		if b == 0 {
			return string(bytes[:i])
		}
	}
	return string(bytes)
}

// cText is a text as C reads it. One with a byte 0 in it C would take for another.
func cText(what, text string) (*byte, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, &Error{InvalidValue, what + " has a byte 0 in it"}
	}
	return &append([]byte(text), 0)[0], nil
}

// optionalText is NULL for "".
func optionalText(what, text string) (*byte, error) {
	if text == "" {
		return nil, nil
	}
	return cText(what, text)
}

// sizeOf is what struct_size has to be.
func sizeOf[T any](value *T) uint32 { return uint32(unsafe.Sizeof(*value)) }

// ids gives a function of SM numbers room enough.
func ids(ask func(room *uint32, capacity uint32, count *uint32) Result) ([]uint32, error) {
	const maxSMs = 1024 // GCX_MAX_SMS, which suffices always
	room := make([]uint32, maxSMs)
	var count uint32
	err := check(func() Result { return ask(&room[0], maxSMs, &count) })
	if err != nil {
		return nil, err
	}
	return room[:count:count], nil
}
