// Made from include/gcx.h by bindgen: cargo test -p gcx-sys --features bindgen compares them, and
// says how to replace this file. Don't edit it.

pub const GCX_VERSION_MAJOR: u32 = 0;
pub const GCX_VERSION_MINOR: u32 = 2;
pub const GCX_VERSION_PATCH: u32 = 0;
pub const GCX_VERSION: u32 = 200;
pub const GCX_REST: u32 = 4294967295;
pub const GCX_SM_REQUEST_BACKFILL: u32 = 1;
pub const GCX_SM_REQUEST_LOCALITY_DOMAIN_ID: u32 = 2;
pub const GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS: u32 = 4;
pub const GCX_LOCALITY_DOMAIN_ID_ANY: u32 = 4294967295;
pub const GCX_SPLIT_DEFAULT: u32 = 0;
pub const GCX_SPLIT_IGNORE_SM_COSCHEDULING: u32 = 1;
pub const GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE: u32 = 2;
pub const GCX_SPLIT_EXACT: u32 = 256;
pub const GCX_SPLIT_EXCLUDE_LEASED: u32 = 512;
pub const GCX_SPLIT_EXCLUDE_SHARED: u32 = 1024;
pub const GCX_CONTEXT_PRIVATE: u32 = 1;
pub const GCX_EVENT_TIMING: u32 = 1;
pub const GCX_EVENT_BLOCKING_SYNC: u32 = 2;
pub const GCX_PREPARE_FOR_LEASES: u32 = 1;
pub const GCX_FOREVER: u32 = 4294967295;
pub const GCX_MAX_LEASE_NAME: u32 = 64;
pub const GCX_LEASE_SHARED: u32 = 1;
pub const GCX_LEASE_REQUIRE_WORKQUEUES: u32 = 2;
pub const GCX_SIZE_PARKED: u32 = 1;
pub const GCX_RESIZE_DEFAULT: u32 = 0;
pub const GCX_RESIZE_DEFERRED: u32 = 1;
pub const GCX_MAX_CONNECTIONS: u32 = 32;
pub const GCX_MAX_SMS: u32 = 1024;
pub const GCX_MAX_PROCESS_NAME: u32 = 64;
pub const GCX_MAX_GRAPH_PARTS: u32 = 16;
pub const GCX_MAX_KERNEL_NAME: u32 = 256;
pub const GCX_NO_NODE: u32 = 4294967295;
pub const GCX_GRAPH_NODE_PRIORITIES: u32 = 1;
pub const GCX_MAX_RESERVATION_TOKEN: u32 = 4096;
pub const GCX_RESERVATION_INHERIT: u32 = 1;
/** CUDA's own types, so that this header needs no cuda.h: CUcontext, CUgreenCtx, CUstream, CUevent
 and CUfunction are pointers to these. cudaStream_t and cudaEvent_t are the same pointers.
 CUdevResource is a struct of 144 bytes.*/
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUctx_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUgreenCtx_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUevent_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUfunc_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUdevResource_st {
    _unused: [u8; 0],
}
pub const GCX_SUCCESS: gcx_result = gcx_result(0);
pub const GCX_ERROR_INVALID_VALUE: gcx_result = gcx_result(1);
pub const GCX_ERROR_OUT_OF_MEMORY: gcx_result = gcx_result(2);
pub const GCX_ERROR_NOT_INITIALIZED: gcx_result = gcx_result(3);
pub const GCX_ERROR_DEINITIALIZED: gcx_result = gcx_result(4);
pub const GCX_ERROR_PROFILER_DISABLED: gcx_result = gcx_result(5);
pub const GCX_ERROR_PROFILER_NOT_INITIALIZED: gcx_result = gcx_result(6);
pub const GCX_ERROR_PROFILER_ALREADY_STARTED: gcx_result = gcx_result(7);
pub const GCX_ERROR_PROFILER_ALREADY_STOPPED: gcx_result = gcx_result(8);
pub const GCX_ERROR_STUB_LIBRARY: gcx_result = gcx_result(34);
pub const GCX_ERROR_CALL_REQUIRES_NEWER_DRIVER: gcx_result = gcx_result(36);
pub const GCX_ERROR_DEVICE_UNAVAILABLE: gcx_result = gcx_result(46);
pub const GCX_ERROR_MULTICAST_RESOURCE_FULL: gcx_result = gcx_result(47);
pub const GCX_ERROR_NO_DEVICE: gcx_result = gcx_result(100);
pub const GCX_ERROR_INVALID_DEVICE: gcx_result = gcx_result(101);
pub const GCX_ERROR_DEVICE_NOT_LICENSED: gcx_result = gcx_result(102);
pub const GCX_ERROR_INVALID_IMAGE: gcx_result = gcx_result(200);
pub const GCX_ERROR_INVALID_CONTEXT: gcx_result = gcx_result(201);
pub const GCX_ERROR_CONTEXT_ALREADY_CURRENT: gcx_result = gcx_result(202);
pub const GCX_ERROR_MAP_FAILED: gcx_result = gcx_result(205);
pub const GCX_ERROR_UNMAP_FAILED: gcx_result = gcx_result(206);
pub const GCX_ERROR_ARRAY_IS_MAPPED: gcx_result = gcx_result(207);
pub const GCX_ERROR_ALREADY_MAPPED: gcx_result = gcx_result(208);
pub const GCX_ERROR_NO_BINARY_FOR_GPU: gcx_result = gcx_result(209);
pub const GCX_ERROR_ALREADY_ACQUIRED: gcx_result = gcx_result(210);
pub const GCX_ERROR_NOT_MAPPED: gcx_result = gcx_result(211);
pub const GCX_ERROR_NOT_MAPPED_AS_ARRAY: gcx_result = gcx_result(212);
pub const GCX_ERROR_NOT_MAPPED_AS_POINTER: gcx_result = gcx_result(213);
pub const GCX_ERROR_ECC_UNCORRECTABLE: gcx_result = gcx_result(214);
pub const GCX_ERROR_UNSUPPORTED_LIMIT: gcx_result = gcx_result(215);
pub const GCX_ERROR_CONTEXT_ALREADY_IN_USE: gcx_result = gcx_result(216);
pub const GCX_ERROR_PEER_ACCESS_UNSUPPORTED: gcx_result = gcx_result(217);
pub const GCX_ERROR_INVALID_PTX: gcx_result = gcx_result(218);
pub const GCX_ERROR_INVALID_GRAPHICS_CONTEXT: gcx_result = gcx_result(219);
pub const GCX_ERROR_NVLINK_UNCORRECTABLE: gcx_result = gcx_result(220);
pub const GCX_ERROR_JIT_COMPILER_NOT_FOUND: gcx_result = gcx_result(221);
pub const GCX_ERROR_UNSUPPORTED_PTX_VERSION: gcx_result = gcx_result(222);
pub const GCX_ERROR_JIT_COMPILATION_DISABLED: gcx_result = gcx_result(223);
pub const GCX_ERROR_UNSUPPORTED_EXEC_AFFINITY: gcx_result = gcx_result(224);
pub const GCX_ERROR_UNSUPPORTED_DEVSIDE_SYNC: gcx_result = gcx_result(225);
pub const GCX_ERROR_CONTAINED: gcx_result = gcx_result(226);
pub const GCX_ERROR_INSUFFICIENT_LOADER_VERSION: gcx_result = gcx_result(227);
pub const GCX_ERROR_INVALID_SOURCE: gcx_result = gcx_result(300);
pub const GCX_ERROR_FILE_NOT_FOUND: gcx_result = gcx_result(301);
pub const GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: gcx_result = gcx_result(302);
pub const GCX_ERROR_SHARED_OBJECT_INIT_FAILED: gcx_result = gcx_result(303);
pub const GCX_ERROR_OPERATING_SYSTEM: gcx_result = gcx_result(304);
pub const GCX_ERROR_INVALID_HANDLE: gcx_result = gcx_result(400);
pub const GCX_ERROR_ILLEGAL_STATE: gcx_result = gcx_result(401);
pub const GCX_ERROR_LOSSY_QUERY: gcx_result = gcx_result(402);
pub const GCX_ERROR_NOT_FOUND: gcx_result = gcx_result(500);
pub const GCX_ERROR_NOT_READY: gcx_result = gcx_result(600);
pub const GCX_ERROR_ILLEGAL_ADDRESS: gcx_result = gcx_result(700);
pub const GCX_ERROR_LAUNCH_OUT_OF_RESOURCES: gcx_result = gcx_result(701);
pub const GCX_ERROR_LAUNCH_TIMEOUT: gcx_result = gcx_result(702);
pub const GCX_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: gcx_result = gcx_result(703);
pub const GCX_ERROR_PEER_ACCESS_ALREADY_ENABLED: gcx_result = gcx_result(704);
pub const GCX_ERROR_PEER_ACCESS_NOT_ENABLED: gcx_result = gcx_result(705);
pub const GCX_ERROR_PRIMARY_CONTEXT_ACTIVE: gcx_result = gcx_result(708);
pub const GCX_ERROR_CONTEXT_IS_DESTROYED: gcx_result = gcx_result(709);
pub const GCX_ERROR_ASSERT: gcx_result = gcx_result(710);
pub const GCX_ERROR_TOO_MANY_PEERS: gcx_result = gcx_result(711);
pub const GCX_ERROR_HOST_MEMORY_ALREADY_REGISTERED: gcx_result = gcx_result(712);
pub const GCX_ERROR_HOST_MEMORY_NOT_REGISTERED: gcx_result = gcx_result(713);
pub const GCX_ERROR_HARDWARE_STACK_ERROR: gcx_result = gcx_result(714);
pub const GCX_ERROR_ILLEGAL_INSTRUCTION: gcx_result = gcx_result(715);
pub const GCX_ERROR_MISALIGNED_ADDRESS: gcx_result = gcx_result(716);
pub const GCX_ERROR_INVALID_ADDRESS_SPACE: gcx_result = gcx_result(717);
pub const GCX_ERROR_INVALID_PC: gcx_result = gcx_result(718);
pub const GCX_ERROR_LAUNCH_FAILED: gcx_result = gcx_result(719);
pub const GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: gcx_result = gcx_result(720);
pub const GCX_ERROR_TENSOR_MEMORY_LEAK: gcx_result = gcx_result(721);
pub const GCX_ERROR_NOT_PERMITTED: gcx_result = gcx_result(800);
pub const GCX_ERROR_NOT_SUPPORTED: gcx_result = gcx_result(801);
pub const GCX_ERROR_SYSTEM_NOT_READY: gcx_result = gcx_result(802);
pub const GCX_ERROR_SYSTEM_DRIVER_MISMATCH: gcx_result = gcx_result(803);
pub const GCX_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: gcx_result = gcx_result(804);
pub const GCX_ERROR_MPS_CONNECTION_FAILED: gcx_result = gcx_result(805);
pub const GCX_ERROR_MPS_RPC_FAILURE: gcx_result = gcx_result(806);
pub const GCX_ERROR_MPS_SERVER_NOT_READY: gcx_result = gcx_result(807);
pub const GCX_ERROR_MPS_MAX_CLIENTS_REACHED: gcx_result = gcx_result(808);
pub const GCX_ERROR_MPS_MAX_CONNECTIONS_REACHED: gcx_result = gcx_result(809);
pub const GCX_ERROR_MPS_CLIENT_TERMINATED: gcx_result = gcx_result(810);
pub const GCX_ERROR_CDP_NOT_SUPPORTED: gcx_result = gcx_result(811);
pub const GCX_ERROR_CDP_VERSION_MISMATCH: gcx_result = gcx_result(812);
pub const GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED: gcx_result = gcx_result(900);
pub const GCX_ERROR_STREAM_CAPTURE_INVALIDATED: gcx_result = gcx_result(901);
pub const GCX_ERROR_STREAM_CAPTURE_MERGE: gcx_result = gcx_result(902);
pub const GCX_ERROR_STREAM_CAPTURE_UNMATCHED: gcx_result = gcx_result(903);
pub const GCX_ERROR_STREAM_CAPTURE_UNJOINED: gcx_result = gcx_result(904);
pub const GCX_ERROR_STREAM_CAPTURE_ISOLATION: gcx_result = gcx_result(905);
pub const GCX_ERROR_STREAM_CAPTURE_IMPLICIT: gcx_result = gcx_result(906);
pub const GCX_ERROR_CAPTURED_EVENT: gcx_result = gcx_result(907);
pub const GCX_ERROR_STREAM_CAPTURE_WRONG_THREAD: gcx_result = gcx_result(908);
pub const GCX_ERROR_TIMEOUT: gcx_result = gcx_result(909);
pub const GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE: gcx_result = gcx_result(910);
pub const GCX_ERROR_EXTERNAL_DEVICE: gcx_result = gcx_result(911);
pub const GCX_ERROR_INVALID_CLUSTER_SIZE: gcx_result = gcx_result(912);
pub const GCX_ERROR_FUNCTION_NOT_LOADED: gcx_result = gcx_result(913);
pub const GCX_ERROR_INVALID_RESOURCE_TYPE: gcx_result = gcx_result(914);
pub const GCX_ERROR_INVALID_RESOURCE_CONFIGURATION: gcx_result = gcx_result(915);
pub const GCX_ERROR_KEY_ROTATION: gcx_result = gcx_result(916);
pub const GCX_ERROR_STREAM_DETACHED: gcx_result = gcx_result(917);
pub const GCX_ERROR_GRAPH_RECAPTURE_FAILURE: gcx_result = gcx_result(918);
pub const GCX_ERROR_FABRIC_NOT_READY: gcx_result = gcx_result(919);
pub const GCX_ERROR_UNKNOWN: gcx_result = gcx_result(999);
/// gcx_cancel_signal() was called
pub const GCX_ERROR_CANCELLED: gcx_result = gcx_result(10000);
/// the function must be called earlier: before CUDA starts, or before libcuda is loaded
pub const GCX_ERROR_TOO_LATE: gcx_result = gcx_result(10001);
/// another driver is open, for the rest of the process
pub const GCX_ERROR_DRIVER_ALREADY_OPEN: gcx_result = gcx_result(10002);
/// a folder is a link, belongs to another user or is open to others
pub const GCX_ERROR_UNSAFE_FOLDER: gcx_result = gcx_result(10003);
/// the function was called from a callback that must not call it
pub const GCX_ERROR_IN_CALLBACK: gcx_result = gcx_result(10004);
/// another copy of gcx in this process has leases
pub const GCX_ERROR_DUPLICATE_LIBRARY: gcx_result = gcx_result(10005);
/// which SMs the atoms have is not known: call gcx_device_map_sms() first
pub const GCX_ERROR_SMS_NOT_MAPPED: gcx_result = gcx_result(10006);
/// the shared SMs are not known: call gcx_device_find_shared_sms() first
pub const GCX_ERROR_SHARED_SMS_UNKNOWN: gcx_result = gcx_result(10007);
/// a reservation's file is invalid or cannot be read; the message has its path
pub const GCX_ERROR_CORRUPT_FILE: gcx_result = gcx_result(10008);
/// an array or a text is too small
pub const GCX_ERROR_INSUFFICIENT_CAPACITY: gcx_result = gcx_result(10009);
/// the cache limit is below the number of contexts to prepare
pub const GCX_ERROR_CACHE_LIMIT_EXCEEDED: gcx_result = gcx_result(10010);
/// the lease is parked and has no SMs: resize it first
pub const GCX_ERROR_LEASE_PARKED: gcx_result = gcx_result(10011);
#[repr(transparent)]
/** Below 10000, numbers and names are CUresult's. From 10000 on they are gcx's own, for conditions
 that CUDA has no result for.*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_result(pub ::std::os::raw::c_uint);
extern "C" {
    /** Returns the version of the running library as GCX_VERSION is composed: 10000 * major + 100 *
 minor + patch. Compare it with GCX_VERSION to detect a library older than the header. Opens no
 driver and cannot fail.*/
    pub fn gcx_version() -> u32;
}
extern "C" {
    /** Returns the name of a result, such as "GCX_ERROR_INVALID_VALUE", or "GCX_ERROR_UNRECOGNIZED" for
 a number that this version does not know. The string lives as long as the library. Opens no
 driver.*/
    pub fn gcx_result_name(result: gcx_result) -> *const ::std::os::raw::c_char;
}
extern "C" {
    /** Returns the general meaning of a result in one sentence. The string lives as long as the library.
 Opens no driver.*/
    pub fn gcx_result_string(result: gcx_result) -> *const ::std::os::raw::c_char;
}
extern "C" {
    /** Returns the message of the last gcx function that failed in the calling thread: what was wrong,
 the values, and what to do. Empty if none failed. The string belongs to the thread and is valid
 until its next gcx function fails; success does not change it. Opens no driver.*/
    pub fn gcx_last_error_message() -> *const ::std::os::raw::c_char;
}
extern "C" {
    /// Returns the number of devices.
    pub fn gcx_device_get_count(count: *mut i32) -> gcx_result;
}
/// the driver does not report it
pub const GCX_MPS_UNKNOWN: gcx_mps_state = gcx_mps_state(0);
pub const GCX_MPS_OFF: gcx_mps_state = gcx_mps_state(1);
pub const GCX_MPS_ON: gcx_mps_state = gcx_mps_state(2);
#[repr(transparent)]
/// Whether contexts of a process on a device are shared by way of MPS.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_mps_state(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_device_info {
    pub struct_size: u32,
    pub compute_capability_major: i32,
    pub compute_capability_minor: i32,
    pub sm_count: u32,
    /// SMs: the smallest coscheduled partition
    pub min_partition_size: u32,
    /// SMs: coscheduled partitions come in multiples of this
    pub coscheduled_alignment: u32,
    /// 1 if the driver does not report it
    pub locality_domain_count: u32,
    /// begins with "SIMULATED" on the simulated driver
    pub name: [::std::os::raw::c_char; 128usize],
    pub uuid: [u8; 16usize],
    /** of contexts of this process, from CU_DEVICE_ATTRIBUTE_MPS_ENABLED, whose
accuracy was not measured*/
    pub mps: gcx_mps_state,
    /** CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in the environment, greater
than 0 and at most 100; 0: not set, or another value. The
daemon's own default is not visible*/
    pub mps_thread_percentage: f32,
}
#[test]
fn bindgen_test_layout_gcx_device_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_device_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_device_info>(),
        180usize,
        "Size of gcx_device_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_device_info>(),
        4usize,
        "Alignment of gcx_device_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_device_info::struct_size",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).compute_capability_major) as usize
                - ptr as usize
        },
        4usize,
        "Offset of field: gcx_device_info::compute_capability_major",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).compute_capability_minor) as usize
                - ptr as usize
        },
        8usize,
        "Offset of field: gcx_device_info::compute_capability_minor",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_device_info::sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).min_partition_size) as usize - ptr as usize
        },
        16usize,
        "Offset of field: gcx_device_info::min_partition_size",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).coscheduled_alignment) as usize - ptr as usize
        },
        20usize,
        "Offset of field: gcx_device_info::coscheduled_alignment",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).locality_domain_count) as usize - ptr as usize
        },
        24usize,
        "Offset of field: gcx_device_info::locality_domain_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_device_info::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).uuid) as usize - ptr as usize },
        156usize,
        "Offset of field: gcx_device_info::uuid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).mps) as usize - ptr as usize },
        172usize,
        "Offset of field: gcx_device_info::mps",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).mps_thread_percentage) as usize - ptr as usize
        },
        176usize,
        "Offset of field: gcx_device_info::mps_thread_percentage",
    );
}
impl Default for gcx_device_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Returns the properties of a device. Creates no context.

 Errors:
   GCX_ERROR_INVALID_DEVICE  there is no such device*/
    pub fn gcx_device_get_info(device: i32, info: *mut gcx_device_info) -> gcx_result;
}
extern "C" {
    /** Returns the range of stream priorities: 0 and -5 on an H100. Lower numbers are more urgent, so
 *greatest is the smaller number. The first call for a device retains its primary context for the
 duration of the call.

 Errors:
   GCX_ERROR_INVALID_DEVICE  there is no such device*/
    pub fn gcx_device_get_stream_priority_range(
        device: i32,
        least: *mut i32,
        greatest: *mut i32,
    ) -> gcx_result;
}
/// CU_DEV_RESOURCE_TYPE_SM
pub const GCX_RESOURCE_SM: gcx_resource_type = gcx_resource_type(1);
/// [13.1+] CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
pub const GCX_RESOURCE_WORKQUEUE_CONFIG: gcx_resource_type = gcx_resource_type(1000);
/// [13.1+] CU_DEV_RESOURCE_TYPE_WORKQUEUE
pub const GCX_RESOURCE_WORKQUEUE: gcx_resource_type = gcx_resource_type(10000);
#[repr(transparent)]
/** ------------------------------------------------------------------------------------------
 Resources

 An SM resource is a set of atoms, the smallest groups into which the driver splits a device. All
 resources of one device and family consist of the same atoms, so gcx compares, unites and
 subtracts them without the driver. Families differ in what the driver promises; the examples are
 an H100's:
   coscheduled  The default. 15 atoms of 8 SMs and a remainder atom of 12; clusters of up to 8
                blocks.
   fine         66 atoms of 2 SMs; clusters of up to 2 blocks.
   max-cluster  5 atoms of 24 SMs and a remainder atom of 12; clusters of up to 16 blocks. Compute
                capability 9.0 and newer, 24 SMs or more.
   structured   [13.1+] The groups of one gcx_sm_split() whose requests set coscheduled counts,
                backfill or locality domains. Equal requests give equal groups. A group cannot be
                split further. gcx knows those splits of a device whose groups a context has and
                the 1,024 that were used last. Groups of another one fail with
                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION until the split is repeated.
   external     [13.1+] The SMs of a stream whose green context gcx did not create: a count
                without atoms. Functions that need atoms fail with
                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION.
 docs/explanation/concepts.md explains atoms, families and rounding.
 ----------------------------------------------------------------------------------------*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_resource_type(pub ::std::os::raw::c_uint);
/// not an SM resource
pub const GCX_SM_FAMILY_NONE: gcx_sm_family = gcx_sm_family(0);
pub const GCX_SM_FAMILY_COSCHEDULED: gcx_sm_family = gcx_sm_family(1);
pub const GCX_SM_FAMILY_FINE: gcx_sm_family = gcx_sm_family(2);
pub const GCX_SM_FAMILY_MAX_CLUSTER: gcx_sm_family = gcx_sm_family(3);
pub const GCX_SM_FAMILY_STRUCTURED: gcx_sm_family = gcx_sm_family(4);
pub const GCX_SM_FAMILY_EXTERNAL: gcx_sm_family = gcx_sm_family(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_sm_family(pub ::std::os::raw::c_uint);
/** Describes resources of one device. A resource is a value: copy it freely; it needs no destroy.
 Equal resources are equal byte for byte. It is valid only in the process that created it. Every
 function that takes a resource can fail with GCX_ERROR_INVALID_RESOURCE_TYPE if it is all zero,
 and with GCX_ERROR_INVALID_RESOURCE_CONFIGURATION if its bytes were changed.*/
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_resource {
    pub opaque: [u64; 16usize],
}
#[test]
fn bindgen_test_layout_gcx_resource() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_resource> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(::core::mem::size_of::<gcx_resource>(), 128usize, "Size of gcx_resource");
    assert_eq!(
        ::core::mem::align_of::<gcx_resource>(),
        8usize,
        "Alignment of gcx_resource",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).opaque) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_resource::opaque",
    );
}
extern "C" {
    /** Returns the whole device as a resource. Creates no context. GCX_RESOURCE_SM returns all SMs, in
 the coscheduled family; gcx_sm_split() can split them in any family. [13.1+]
 GCX_RESOURCE_WORKQUEUE_CONFIG returns the device's default, for gcx_workqueue_configure().

 Errors:
   GCX_ERROR_INVALID_DEVICE         there is no such device
   GCX_ERROR_INVALID_RESOURCE_TYPE  type is unknown, or GCX_RESOURCE_WORKQUEUE, which only
                                    contexts have
   GCX_ERROR_NOT_SUPPORTED          a workqueue type on a driver before 13.1*/
    pub fn gcx_device_get_resource(
        device: i32,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// share the device's workqueues with all contexts
pub const GCX_WORKQUEUE_SCOPE_DEVICE_CTX: gcx_workqueue_scope = gcx_workqueue_scope(0);
/// where possible, share no workqueue with other balanced contexts
pub const GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED: gcx_workqueue_scope = gcx_workqueue_scope(
    1,
);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_workqueue_scope(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_resource_info {
    pub struct_size: u32,
    pub type_: gcx_resource_type,
    pub device: i32,
    /// Of GCX_RESOURCE_SM, else 0.
    pub family: gcx_sm_family,
    pub sm_count: u32,
    pub atom_count: u32,
    /** SMs: the smallest part that a split can give; sm_count if it
cannot be split; 0 only if sm_count is 0*/
    pub min_partition_size: u32,
    /** SMs, never 0: the step between the sizes that a split can
give, unless the remainder atom is all there is*/
    pub coscheduled_alignment: u32,
    /// of a structured group: its GCX_SM_REQUEST_ flags
    pub flags: u32,
    /// valid with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID in flags
    pub locality_domain_id: u32,
    /// Of GCX_RESOURCE_WORKQUEUE_CONFIG, else 0.
    pub workqueue_scope: gcx_workqueue_scope,
    /// expected concurrent stream-ordered workloads
    pub workqueue_concurrency_limit: u32,
}
#[test]
fn bindgen_test_layout_gcx_resource_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_resource_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_resource_info>(),
        48usize,
        "Size of gcx_resource_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_resource_info>(),
        4usize,
        "Alignment of gcx_resource_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_resource_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).type_) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_resource_info::type_",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_resource_info::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_resource_info::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_resource_info::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atom_count) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_resource_info::atom_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).min_partition_size) as usize - ptr as usize
        },
        24usize,
        "Offset of field: gcx_resource_info::min_partition_size",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).coscheduled_alignment) as usize - ptr as usize
        },
        28usize,
        "Offset of field: gcx_resource_info::coscheduled_alignment",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_resource_info::flags",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).locality_domain_id) as usize - ptr as usize
        },
        36usize,
        "Offset of field: gcx_resource_info::locality_domain_id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).workqueue_scope) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_resource_info::workqueue_scope",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).workqueue_concurrency_limit) as usize
                - ptr as usize
        },
        44usize,
        "Offset of field: gcx_resource_info::workqueue_concurrency_limit",
    );
}
impl Default for gcx_resource_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /// Returns the properties of a resource.
    pub fn gcx_resource_get_info(
        resource: *const gcx_resource,
        info: *mut gcx_resource_info,
    ) -> gcx_result;
}
extern "C" {
    /** Writes a resource as an array of CUdevResource, for cuDevResourceGenerateDesc(): SMs as one for
 each atom, or as a single one if the driver has them as one; a workqueue configuration as one.
 *count receives how many there are. natives may be NULL if capacity is 0. Creates no context.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_TYPE           the resource is a GCX_RESOURCE_WORKQUEUE
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resource is external*/
    pub fn gcx_resource_get_native(
        resource: *const gcx_resource,
        natives: *mut CUdevResource_st,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Returns the resource of a CUdevResource that other code in this process obtained from the driver
 for this device: of the device, a split or a green context. SMs become a resource of the first of
 the coscheduled, max-cluster and fine family whose atoms are exactly these SMs. Creates no
 context.

 The SMs are read from the mask in CUdevResource, which cuda.h does not describe. It was seen on a
 driver of CUDA 13.0. gcx checks on each driver that the atoms have such masks.

 Errors:
   GCX_ERROR_INVALID_DEVICE                  there is no such device
   GCX_ERROR_INVALID_RESOURCE_TYPE           its type is neither SM nor workqueue configuration
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  no family's atoms are these SMs, or the workqueue
                                             configuration is of another device
   GCX_ERROR_NOT_SUPPORTED                   this driver has no such masks, and the SMs are not
                                             the whole device*/
    pub fn gcx_resource_from_native(
        device: i32,
        native: *const CUdevResource_st,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** [13.1+] Copies a workqueue configuration with another scope and concurrency limit. A limit of 0
 copies the limit of *config. *configured may be *config.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_TYPE  *config is not a workqueue configuration
   GCX_ERROR_INVALID_VALUE          scope is unknown*/
    pub fn gcx_workqueue_configure(
        config: *const gcx_resource,
        scope: gcx_workqueue_scope,
        concurrency_limit: u32,
        configured: *mut gcx_resource,
    ) -> gcx_result;
}
/** Requests one group: CU_DEV_SM_RESOURCE_GROUP_PARAMS. Set unused fields to 0. sm_count works on
 every driver. Any other field makes the whole split a structured one [13.1+], for which CUDA's
 own rules apply and nothing is rounded.*/
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_sm_request {
    /// SMs, or GCX_REST
    pub sm_count: u32,
    /// [13.1+] SMs; 0: the default
    pub coscheduled_sm_count: u32,
    /// [13.1+] SMs, used where possible
    pub preferred_coscheduled_sm_count: u32,
    /// GCX_SM_REQUEST_
    pub flags: u32,
    /// [13.4+] with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID
    pub locality_domain_id: u32,
    /// 0
    pub reserved: [u32; 11usize],
}
#[test]
fn bindgen_test_layout_gcx_sm_request() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_sm_request> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_sm_request>(),
        64usize,
        "Size of gcx_sm_request",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_sm_request>(),
        4usize,
        "Alignment of gcx_sm_request",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_sm_request::sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).coscheduled_sm_count) as usize - ptr as usize
        },
        4usize,
        "Offset of field: gcx_sm_request::coscheduled_sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).preferred_coscheduled_sm_count) as usize
                - ptr as usize
        },
        8usize,
        "Offset of field: gcx_sm_request::preferred_coscheduled_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_sm_request::flags",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).locality_domain_id) as usize - ptr as usize
        },
        16usize,
        "Offset of field: gcx_sm_request::locality_domain_id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_sm_request::reserved",
    );
}
extern "C" {
    /** Splits input into disjoint groups, one for each request, and a remainder. The result is the same
 on every driver from 12.4 on.

 Rules:
   1. If the requests can be met in any way, the split succeeds. Among the ways, the one with the
      fewest SMs beyond the requests is used, then the one that meets the most counts exactly. If
      these are equal, the first of the requests gets the remainder atom.
   2. Counts are rounded up to whole atoms. On an H100 (15 atoms of 8 SMs and a remainder atom of
      12), 7 gives 8, 10 gives 12, 16 gives 16, 17 gives 20, 24 gives 24, 108 gives 12 atoms of 8
      and the one of 12, and 120 with 5 gives 120 and 12. GCX_SPLIT_EXACT fails instead.
   3. The remainder atom does not have the family's cluster size (on an H100 clusters of up to 2
      blocks, not 8; see gcx_resource_find_max_cluster_size). Request multiples of the other atoms'
      size to avoid it: such a group gets it only if nothing else is left. Of 16 equal groups of 8
      SMs the first gets it (12, 8, 8, ...).
   4. Equal requests of an equal input give equal groups. Which atoms a group gets is otherwise
      not specified.
   5. GCX_REST takes what the counted groups leave. Several share it as evenly as atoms allow.
      Each gets at least one atom.
   6. GCX_SPLIT_EXCLUDE_SHARED leaves out each atom with SMs of gcx_device_find_shared_sms(). It
      changes nothing on devices of other compute capabilities than 9.x.
   7. input may be a whole device, a group, a remainder, or a union of these. To select another
      family than input's, input must be a whole device.

 Writes the groups to groups[0 .. request_count - 1] and the rest to *remainder, which has 0 SMs
 if nothing is left. Writes the SM counts of the groups to sm_counts[0 .. request_count - 1] and
 that of the rest to *remainder_sm_count. Creates nothing on the device. The first split in a
 family asks the driver for its atoms, which takes microseconds.

 groups may be NULL for a dry run, which only writes the counts: it makes the same checks, fails
 with the same errors and stores nothing. remainder may be NULL, and must be in a dry run.
 sm_counts may be NULL. remainder_sm_count may be NULL.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the groups do not fit, a group would be empty, a
                                             count cannot be met exactly (GCX_SPLIT_EXACT), or the
                                             family is not input's
   GCX_ERROR_INVALID_RESOURCE_TYPE           input is not an SM resource
   GCX_ERROR_INVALID_VALUE                   request_count or an sm_count is 0; flags select two
                                             families; remainder is not NULL and groups is; a
                                             structured split breaks a rule of CUDA,
                                             for which the driver can also return
                                             GCX_ERROR_INVALID_RESOURCE_CONFIGURATION
   GCX_ERROR_SHARED_SMS_UNKNOWN              with GCX_SPLIT_EXCLUDE_SHARED: the shared SMs are not
                                             known. Call gcx_device_find_shared_sms() after the
                                             module is loaded
   GCX_ERROR_SMS_NOT_MAPPED                  with GCX_SPLIT_EXCLUDE_SHARED: the atoms of the
                                             shared SMs are not known. Call gcx_device_map_sms()
   GCX_ERROR_NOT_SUPPORTED                   the driver has no structured splits (13.1) or
                                             locality domains (13.4), or the device has no
                                             clusters or too few SMs (a small MIG slice) for
                                             the family*/
    pub fn gcx_sm_split(
        input: *const gcx_resource,
        requests: *const gcx_sm_request,
        request_count: u32,
        flags: u32,
        groups: *mut gcx_resource,
        remainder: *mut gcx_resource,
        sm_counts: *mut u32,
        remainder_sm_count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Compute the union and the difference (SMs of a that are not in b) of two SM resources. For their
 intersection, subtract that difference from a. *result may be *a or *b. An empty result is a
 resource of 0 SMs.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_TYPE           one is not an SM resource
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  they are of different devices or families*/
    pub fn gcx_resource_union(
        a: *const gcx_resource,
        b: *const gcx_resource,
        result: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    pub fn gcx_resource_subtract(
        a: *const gcx_resource,
        b: *const gcx_resource,
        result: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** Counts the SMs that a and b have in common: 0 for two devices.

 Errors:
   GCX_ERROR_SMS_NOT_MAPPED         they are of different families: call gcx_device_map_sms() for
                                    both first
   GCX_ERROR_NOT_SUPPORTED          they are of different families, and one is a structured split,
                                    which cannot be mapped
   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource*/
    pub fn gcx_resource_get_overlap(
        a: *const gcx_resource,
        b: *const gcx_resource,
        sm_count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Finds the most blocks that a thread block cluster can have on these SMs, including more than the
 portable 8 (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), for blocks of 1024 threads
 without shared memory. Returns 1 on devices without clusters, before compute capability 9.0. The
 size depends on how the SMs were split, not on their number. For the limit of one kernel in a
 stream, use gcx_stream_get_kernel_fit(). On a device with clusters the first call creates a
 context of these SMs, at its usual cost, and caches it.

 Errors: those of gcx_context_create, and
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resource has 0 SMs*/
    pub fn gcx_resource_find_max_cluster_size(
        resource: *const gcx_resource,
        blocks: *mut u32,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_context_s {
    _unused: [u8; 0],
}
/** ------------------------------------------------------------------------------------------
 Contexts

 A context is a green context: SMs and, [13.1+], a workqueue configuration. Creating one takes the
 driver 1 to 3 ms and waits for all kernels that run on the device; destroying it leaks 4 MiB of
 device memory. So gcx caches one green context for each set of resources, and handles for equal
 resources share it: synchronizing or recording one covers the work of all.

 Contexts, events and graphs retain the device's primary context. If other code resets the device
 (cuDevicePrimaryCtxReset, cudaDeviceReset), its green contexts die. Live handles of contexts,
 streams, events, leases and graphs then fail with GCX_ERROR_CONTEXT_IS_DESTROYED, the functions
 that destroy and release them succeed, and resources stay valid.
 ----------------------------------------------------------------------------------------*/
pub type gcx_context = *mut gcx_context_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_stream_s {
    _unused: [u8; 0],
}
pub type gcx_stream = *mut gcx_stream_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_event_s {
    _unused: [u8; 0],
}
pub type gcx_event = *mut gcx_event_s;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_context_params {
    pub struct_size: u32,
    /// GCX_CONTEXT_
    pub flags: u32,
}
#[test]
fn bindgen_test_layout_gcx_context_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_context_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_context_params>(),
        8usize,
        "Size of gcx_context_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_context_params>(),
        4usize,
        "Alignment of gcx_context_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_context_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_context_params::flags",
    );
}
extern "C" {
    /** Creates a context over one or several disjoint SM resources of one device and family and,
 [13.1+], at most one GCX_RESOURCE_WORKQUEUE_CONFIG or GCX_RESOURCE_WORKQUEUE. params may be NULL.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resources overlap, are of different devices or
                                             families, or have 0 SMs; [13.1+] the remainder atom
                                             is combined with atoms that do not run up to the
                                             last: CUDA allows no such set
   GCX_ERROR_INVALID_RESOURCE_TYPE           there is no SM resource, or there are two workqueues
   GCX_ERROR_INVALID_VALUE                   resource_count is 0
   GCX_ERROR_CONTEXT_IS_DESTROYED            the device was reset during the call; [13.1+] no green
                                             context has the workqueue any more*/
    pub fn gcx_context_create(
        resources: *const gcx_resource,
        resource_count: u32,
        params: *const gcx_context_params,
        context: *mut gcx_context,
    ) -> gcx_result;
}
extern "C" {
    /** Destroys the handle. Streams of the context stay usable and keep it alive, and work in flight
 finishes. The green context is cached within gcx_cache_set_limit().

 Errors:
   GCX_ERROR_CONTEXT_ALREADY_IN_USE  the handle is current in the calling thread by
                                     gcx_context_push(); or its green context is current, this is
                                     the last handle and the cache is full: pop it first*/
    pub fn gcx_context_destroy(context: gcx_context) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_context_info {
    pub struct_size: u32,
    pub device: i32,
    pub sm_count: u32,
    /// live gcx streams of the green context, also of its other handles
    pub stream_count: u32,
    /** equal for two handles if and only if they share a green context;
never reused in a process. Not the number of cuGreenCtxGetId*/
    pub id: u64,
    /** the driver's id of the CUcontext, from cuCtxGetId, to compare with the
context ids of CUPTI and profilers (the same on CUDA 13.0)*/
    pub native_id: u64,
}
#[test]
fn bindgen_test_layout_gcx_context_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_context_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_context_info>(),
        32usize,
        "Size of gcx_context_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_context_info>(),
        8usize,
        "Alignment of gcx_context_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_context_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_context_info::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_context_info::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).stream_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_context_info::stream_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_context_info::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).native_id) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_context_info::native_id",
    );
}
extern "C" {
    /// Returns the properties of a context.
    pub fn gcx_context_get_info(
        context: gcx_context,
        info: *mut gcx_context_info,
    ) -> gcx_result;
}
/// Describes a green context that is in use.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_live_context {
    /// as in gcx_context_info
    pub id: u64,
    pub device: i32,
    pub sm_count: u32,
    /// gcx_context handles
    pub handle_count: u32,
    /// gcx_stream handles
    pub stream_count: u32,
    /// GCX_CONTEXT_PRIVATE
    pub flags: u32,
    /// 0
    pub reserved: u32,
    /// as in gcx_context_info
    pub native_id: u64,
    /// its SMs
    pub resource: gcx_resource,
}
#[test]
fn bindgen_test_layout_gcx_live_context() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_live_context> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_live_context>(),
        168usize,
        "Size of gcx_live_context",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_live_context>(),
        8usize,
        "Alignment of gcx_live_context",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_live_context::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_live_context::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_live_context::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).handle_count) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_live_context::handle_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).stream_count) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_live_context::stream_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_live_context::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_live_context::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).native_id) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_live_context::native_id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).resource) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_live_context::resource",
    );
}
extern "C" {
    /** Lists the green contexts of a device, or of all (-1), that have a handle or a stream, are current
 in a thread by gcx_context_push(), or belong to a lease or a gcx_graph, in the order of their
 creation. Cached contexts are not listed. contexts may be NULL if capacity is 0.

 Errors:
   GCX_ERROR_INVALID_DEVICE  there is no such device*/
    pub fn gcx_context_list(
        device: i32,
        contexts: *mut gcx_live_context,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Returns the context's resource of one type: its SMs as one resource; [13.1+] its workqueue
 configuration; or its workqueue, to share it with another context. Contexts with the same
 workqueue return equal resources. A workqueue can be used as long as one of its contexts exists,
 live or cached.

 Errors:
   GCX_ERROR_INVALID_RESOURCE_TYPE  type is unknown
   GCX_ERROR_NOT_SUPPORTED          a workqueue type on a driver before 13.1*/
    pub fn gcx_context_get_resource(
        context: gcx_context,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** Return the native handles, the context of cuCtxFromGreenCtx and the green context, or NULL on
 failure, with the reason in gcx_last_error_message(). They are valid as long as the handle or a
 stream of it is alive. Never destroy them.*/
    pub fn gcx_context_native(context: gcx_context) -> *mut CUctx_st;
}
extern "C" {
    pub fn gcx_context_native_green(context: gcx_context) -> *mut CUgreenCtx_st;
}
extern "C" {
    /** Push the context on the calling thread's CUDA context stack, which makes it current, and pop it.
 A pushed context stays alive until it is popped or the thread ends, which pops all that the
 thread pushed. *context, if not NULL, receives the handle that was pushed.

 In a green context the driver orders nothing between the legacy default stream and other streams,
 and refuses the per-thread default stream (measured, driver 580): order work by events. A stream
 that other code creates while the context is current dies with the green context, so keep the
 handle as long as that code uses the stream.

 While it is pushed, other code can make another context current: cudaSetDevice sets one in its
 place, as torch.cuda.set_device and the initialization of NCCL do, and some libraries push one and
 leave it. gcx_context_pop removes all of them, so that the stack is as it was before the push.

 Errors of gcx_context_pop:
   GCX_ERROR_INVALID_CONTEXT  this thread pushed nothing*/
    pub fn gcx_context_push(context: gcx_context) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_pop(context: *mut gcx_context) -> gcx_result;
}
extern "C" {
    /** Returns the handle that the calling thread pushed last, if its context is current, else NULL with
 GCX_SUCCESS. The caller does not own it.*/
    pub fn gcx_context_get_current(context: *mut gcx_context) -> gcx_result;
}
extern "C" {
    /** Waits until all work of the context's streams has finished. Blocks the calling thread. Errors of
 that work are returned with the driver's code.*/
    pub fn gcx_context_synchronize(context: gcx_context) -> gcx_result;
}
/// CU_STREAM_NON_BLOCKING: not ordered with the default stream
pub const GCX_STREAM_NON_BLOCKING: gcx_stream_sync = gcx_stream_sync(0);
/// CU_STREAM_DEFAULT: green contexts have no such streams
pub const GCX_STREAM_BLOCKING: gcx_stream_sync = gcx_stream_sync(1);
#[repr(transparent)]
/** ------------------------------------------------------------------------------------------
 Streams
 ----------------------------------------------------------------------------------------*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_stream_sync(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_stream_params {
    pub struct_size: u32,
    /// has to be GCX_STREAM_NON_BLOCKING
    pub sync: gcx_stream_sync,
    /// lower is more urgent; clamped to gcx_device_get_stream_priority_range
    pub priority: i32,
}
#[test]
fn bindgen_test_layout_gcx_stream_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_stream_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_stream_params>(),
        12usize,
        "Size of gcx_stream_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_stream_params>(),
        4usize,
        "Alignment of gcx_stream_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_stream_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sync) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_stream_params::sync",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).priority) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_stream_params::priority",
    );
}
impl Default for gcx_stream_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Creates a stream of the context. No other handle uses the same CUstream. params may be NULL, for
 GCX_STREAM_PARAMS_INIT. Takes microseconds, also while the device is busy. Reuses an idle stream
 that was destroyed earlier, if one has this priority.

 Errors:
   GCX_ERROR_INVALID_VALUE         sync is not GCX_STREAM_NON_BLOCKING
   GCX_ERROR_CONTEXT_IS_DESTROYED  the device was reset*/
    pub fn gcx_stream_create(
        context: gcx_context,
        params: *const gcx_stream_params,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** Creates a handle for a stream that other code created, such as PyTorch's, to query its SMs and to
 wait for it. The stream must outlive the handle; destroying the handle does not destroy it.

 Errors:
   GCX_ERROR_INVALID_VALUE  native is NULL, CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2): the
                            default streams, which are different streams in each context
   others                   the driver's, as far as it notices that native is not a stream*/
    pub fn gcx_stream_from_native(
        native: *mut CUstream_st,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** Destroys the handle. Never waits; work in the stream finishes. The green context caches up to 32
 such streams, of about 0.02 MiB each, for reuse until it is destroyed (gcx_cache_set_limit). So
 state that a library has stored for the stream stays valid. PyTorch ends the process if the
 stream of its pinned memory no longer exists.

 Special cases:
   - A stream whose attributes were changed (cuStreamSetAttribute) is not reused.
   - A stream that captures a graph continues, and is cached until the capture ends. If 32 such
     streams are cached already, the capture ends.
   - If other code destroyed the CUstream, which is not allowed, only the handle is destroyed.*/
    pub fn gcx_stream_destroy(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** Returns the CUstream, which is also a cudaStream_t, or NULL on failure, with the reason in
 gcx_last_error_message(). It is valid until the handle is destroyed; after that it can belong to
 another handle, so submit nothing to it. Never destroy it.

 A lease's stream has another CUstream after a resize. Call this for each step, and give libraries
 the result again (cublasSetStream): work submitted to an earlier CUstream runs on the SMs that the
 lease had then, which another lease may have now.*/
    pub fn gcx_stream_native(stream: gcx_stream) -> *mut CUstream_st;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_stream_info {
    pub struct_size: u32,
    pub device: i32,
    pub priority: i32,
    /// SMs that its kernels can run on
    pub sm_count: u32,
    /// gcx_context_info.id; 0 if gcx did not create the context
    pub context_id: u64,
}
#[test]
fn bindgen_test_layout_gcx_stream_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_stream_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_stream_info>(),
        24usize,
        "Size of gcx_stream_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_stream_info>(),
        8usize,
        "Alignment of gcx_stream_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_stream_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_stream_info::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).priority) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_stream_info::priority",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_stream_info::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).context_id) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_stream_info::context_id",
    );
}
extern "C" {
    /// Returns the properties of a stream.
    pub fn gcx_stream_get_info(
        stream: gcx_stream,
        info: *mut gcx_stream_info,
    ) -> gcx_result;
}
extern "C" {
    /** Returns the resource of the stream's context, as gcx_context_get_resource() does. For a context
 that gcx did not create: the whole device, if the stream can run on all SMs; else [13.1+] a
 resource of GCX_SM_FAMILY_EXTERNAL.

 Errors: those of gcx_context_get_resource, and for a context that gcx did not create
   GCX_ERROR_NOT_SUPPORTED  a part of the device on a driver before 13.1; gcx_stream_get_info()
                            has its SM count
   GCX_ERROR_NOT_FOUND      a workqueue*/
    pub fn gcx_stream_get_resource(
        stream: gcx_stream,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// The properties of a launch that decide how many of its blocks fit.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_kernel_fit_params {
    pub struct_size: u32,
    /// threads in a block, 1 to 1024
    pub block_threads: u32,
    /// of a block
    pub dynamic_shared_bytes: u32,
    /** blocks in a cluster, also if the kernel was compiled with it;
0: no clusters*/
    pub cluster_blocks: u32,
}
#[test]
fn bindgen_test_layout_gcx_kernel_fit_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_kernel_fit_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_kernel_fit_params>(),
        16usize,
        "Size of gcx_kernel_fit_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_kernel_fit_params>(),
        4usize,
        "Alignment of gcx_kernel_fit_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_kernel_fit_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).block_threads) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_kernel_fit_params::block_threads",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).dynamic_shared_bytes) as usize - ptr as usize
        },
        8usize,
        "Offset of field: gcx_kernel_fit_params::dynamic_shared_bytes",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cluster_blocks) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_kernel_fit_params::cluster_blocks",
    );
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_kernel_fit {
    pub struct_size: u32,
    /// SMs that the stream's kernels can run on
    pub sm_count: u32,
    /// blocks that run on one SM at once; 0: the kernel cannot run
    pub blocks_per_sm: u32,
    /** the largest grid whose blocks all run at once, and so the largest
cooperative grid*/
    pub max_blocks: u32,
    /** clusters of cluster_blocks that run at once; 0 without clusters.
max_blocks is this times cluster_blocks*/
    pub max_clusters: u32,
    /** the most blocks in a cluster of this kernel; 1 on a device
without clusters; 0: the kernel cannot run*/
    pub max_cluster_blocks: u32,
}
#[test]
fn bindgen_test_layout_gcx_kernel_fit() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_kernel_fit> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_kernel_fit>(),
        24usize,
        "Size of gcx_kernel_fit",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_kernel_fit>(),
        4usize,
        "Alignment of gcx_kernel_fit",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_kernel_fit::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_kernel_fit::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).blocks_per_sm) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_kernel_fit::blocks_per_sm",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).max_blocks) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_kernel_fit::max_blocks",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).max_clusters) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_kernel_fit::max_clusters",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).max_cluster_blocks) as usize - ptr as usize
        },
        20usize,
        "Offset of field: gcx_kernel_fit::max_cluster_blocks",
    );
}
extern "C" {
    /** Computes how many blocks of a kernel run on the stream's SMs at once if nothing else does, for
 kernels that size their grid by the SM count. A kernel with its own grid barrier hangs if its
 grid is larger, and CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT reports the whole device in a
 partition too.

 function is a CUfunction, or a CUkernel cast to one, as in CUDA's occupancy functions. The SMs
 are those of a lease at the time of the call, those that a graph will run on for a stream that
 captures it, and those of its context for a stream of other code. Clusters of more than 8 blocks
 need CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.

 Errors:
   GCX_ERROR_INVALID_VALUE   block_threads is not 1 to 1024, or function is NULL
   GCX_ERROR_INVALID_HANDLE  function is not a function, as far as the driver notices*/
    pub fn gcx_stream_get_kernel_fit(
        stream: gcx_stream,
        function: *mut CUfunc_st,
        params: *const gcx_kernel_fit_params,
        fit: *mut gcx_kernel_fit,
    ) -> gcx_result;
}
extern "C" {
    /** Waits until the stream's work has finished. Blocks the calling thread. Errors of that work are
 returned with the driver's code.*/
    pub fn gcx_stream_synchronize(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** Returns GCX_SUCCESS if all work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 message. Never waits.*/
    pub fn gcx_stream_query(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** Creates an event on a device.

 Errors:
   GCX_ERROR_INVALID_DEVICE  there is no such device*/
    pub fn gcx_event_create(
        device: i32,
        flags: u32,
        event: *mut gcx_event,
    ) -> gcx_result;
}
extern "C" {
    /** Creates a handle for an event that other code created, to record it, wait for it and read times.
 The event must outlive the handle; destroying the handle does not destroy it. gcx does not know
 its device and does not notice a reset of it.

 Errors: the driver's, as far as it notices that native is not an event.*/
    pub fn gcx_event_from_native(
        native: *mut CUevent_st,
        event: *mut gcx_event,
    ) -> gcx_result;
}
extern "C" {
    /// Destroys the handle, and the event unless other code created it. Never waits.
    pub fn gcx_event_destroy(event: gcx_event) -> gcx_result;
}
extern "C" {
    /// Returns the CUevent, or NULL on failure. Valid until the handle is destroyed.
    pub fn gcx_event_native(event: gcx_event) -> *mut CUevent_st;
}
extern "C" {
    /** Record the work submitted so far to the stream, or to all streams of the context, in the event.
 Replaces what was recorded before. Never blocks.

 Errors:
   GCX_ERROR_INVALID_HANDLE  the event is of another device (waiting works across devices)*/
    pub fn gcx_stream_record(stream: gcx_stream, event: gcx_event) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_record(context: gcx_context, event: gcx_event) -> gcx_result;
}
extern "C" {
    /** Make all later work of the stream, or of all streams of the context, wait on the device until the
 event's work has finished. An event that was never recorded makes nothing wait. Never blocks.*/
    pub fn gcx_stream_wait(stream: gcx_stream, event: gcx_event) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_wait(context: gcx_context, event: gcx_event) -> gcx_result;
}
extern "C" {
    /// Waits until the event's work has finished. Blocks the calling thread.
    pub fn gcx_event_synchronize(event: gcx_event) -> gcx_result;
}
extern "C" {
    /** Returns GCX_SUCCESS if the event's work has finished, GCX_ERROR_NOT_READY if not; the latter sets
 no message. Never waits.*/
    pub fn gcx_event_query(event: gcx_event) -> gcx_result;
}
extern "C" {
    /** Returns the milliseconds between the completion of two events' work. Both need GCX_EVENT_TIMING.

 Errors:
   GCX_ERROR_INVALID_HANDLE  one has no timing or was never recorded, or they are of different
                             devices; the message says which
   GCX_ERROR_NOT_READY       the work of one has not finished; the message says which*/
    pub fn gcx_event_get_elapsed(
        start: gcx_event,
        end: gcx_event,
        milliseconds: *mut f32,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_cancel_s {
    _unused: [u8; 0],
}
/** ------------------------------------------------------------------------------------------
 Cancellation

 A gcx_cancel lets another thread abort a blocking gcx_lease_acquire, gcx_reservation_acquire or
 gcx_cache_prepare.
 ----------------------------------------------------------------------------------------*/
pub type gcx_cancel = *mut gcx_cancel_s;
extern "C" {
    /** Create, signal and destroy a cancellation object. It can be passed to any number of calls. Once
 it is signalled, all calls that wait with it, and all later ones, fail with
 GCX_ERROR_CANCELLED, even if SMs are free. When gcx_cancel_signal returns, each waiting call
 either has its SMs and returns GCX_SUCCESS, or has left the queue. Destroying the handle cancels
 nothing.*/
    pub fn gcx_cancel_create(cancel: *mut gcx_cancel) -> gcx_result;
}
extern "C" {
    pub fn gcx_cancel_signal(cancel: gcx_cancel) -> gcx_result;
}
extern "C" {
    pub fn gcx_cancel_destroy(cancel: gcx_cancel) -> gcx_result;
}
extern "C" {
    /** Sets how many green contexts without handle or stream gcx caches on each device. The default is
 64; 0 caches none. Contexts beyond the limit are destroyed with their idle streams, least
 recently used first, but not while one of their streams captures a graph. The driver returns
 little of their memory (about 1 MiB of 5, or nothing before the next context is created) and
 leaks the rest, so a limit that is too small costs more memory than it saves.

 Prepared contexts (gcx_cache_prepare, gcx_lease_prepare) count towards the limit, but only this
 function and gcx_cache_trim destroy them. A limit below their number destroys the other contexts
 first; then the prepared contexts that are in use or were used most recently stay.

 Errors: the driver's, if it refuses to destroy something, and
   GCX_ERROR_CONTEXT_ALREADY_IN_USE  a context to destroy is current in the calling thread. The
                                     limit is set; the context is destroyed later*/
    pub fn gcx_cache_set_limit(max_contexts: u32) -> gcx_result;
}
/** Reports progress. Called in the thread of the call that reports, without any lock of gcx: it may
 call gcx, for example gcx_cancel_signal. It must not throw.*/
pub type gcx_progress_callback = ::core::option::Option<
    unsafe extern "C" fn(done: u32, count: u32, user_data: *mut ::core::ffi::c_void),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_prepare_params {
    pub struct_size: u32,
    /// GCX_PREPARE_
    pub flags: u32,
    /// aborts the call from another thread; may be NULL
    pub cancel: gcx_cancel,
    /// called after each resource; may be NULL
    pub progress: gcx_progress_callback,
    pub user_data: *mut ::core::ffi::c_void,
}
#[test]
fn bindgen_test_layout_gcx_prepare_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_prepare_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_prepare_params>(),
        32usize,
        "Size of gcx_prepare_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_prepare_params>(),
        8usize,
        "Alignment of gcx_prepare_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_prepare_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_prepare_params::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cancel) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_prepare_params::cancel",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).progress) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_prepare_params::progress",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).user_data) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_prepare_params::user_data",
    );
}
impl Default for gcx_prepare_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Creates and caches the context of each SM resource, so that a later gcx_context_create() or
 gcx_lease_acquire() over the same SMs takes microseconds. Runs in the calling thread; each new
 context takes milliseconds and waits for all kernels that run on the device. So call it before
 the work starts, or from a background thread. Contexts that exist already count as used now.
 params may be NULL. For layouts of live leases use gcx_lease_prepare().

 Prepared contexts are never evicted by other contexts (gcx_cache_set_limit). A reset of the
 device destroys them. After a failure the contexts that were created stay prepared.

 Errors: those of gcx_context_create, and
   GCX_ERROR_CANCELLED              gcx_cancel_signal() was called; this is checked before each
                                    resource
   GCX_ERROR_CACHE_LIMIT_EXCEEDED   a device would have more prepared contexts than its limit
                                    (gcx_cache_set_limit), including those in use; nothing was
                                    created
   GCX_ERROR_INVALID_VALUE          count is 0
   GCX_ERROR_INVALID_RESOURCE_TYPE  one is not an SM resource, or, with GCX_PREPARE_FOR_LEASES, is
                                    a structured group, which leases cannot have*/
    pub fn gcx_cache_prepare(
        resources: *const gcx_resource,
        count: u32,
        params: *const gcx_prepare_params,
    ) -> gcx_result;
}
/// The result of gcx_cache_trim.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_cache_trimmed {
    pub struct_size: u32,
    /// destroyed
    pub contexts: u32,
    /// idle streams destroyed, with their contexts or alone
    pub streams: u32,
    /// more than max_contexts: a stream captures in them
    pub contexts_left: u32,
    /// without a handle, not destroyed: they work or capture
    pub streams_left: u32,
    /** by which free device memory grew, all devices together, including changes by
other code during the call; at least 0*/
    pub bytes: u64,
}
#[test]
fn bindgen_test_layout_gcx_cache_trimmed() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_cache_trimmed> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_cache_trimmed>(),
        32usize,
        "Size of gcx_cache_trimmed",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_cache_trimmed>(),
        8usize,
        "Alignment of gcx_cache_trimmed",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_cache_trimmed::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).contexts) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_cache_trimmed::contexts",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).streams) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_cache_trimmed::streams",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).contexts_left) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_cache_trimmed::contexts_left",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).streams_left) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_cache_trimmed::streams_left",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).bytes) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_cache_trimmed::bytes",
    );
}
extern "C" {
    /** Destroys cached contexts, prepared or not, least recently used first, until max_contexts are left
 on all devices together. Destroys the idle streams without handles of all contexts. The limit
 does not change.
 Never call it while a library can still name a stream whose handle was destroyed, as PyTorch's
 allocator does (gcx_stream_destroy). *trimmed, if not NULL, receives the result.

 Errors: the driver's, if it refuses to destroy something. The rest was trimmed then, and the
 message has the numbers.*/
    pub fn gcx_cache_trim(
        max_contexts: u32,
        trimmed: *mut gcx_cache_trimmed,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_cache_stats {
    pub struct_size: u32,
    /// for each device
    pub limit: u32,
    /// green contexts with a handle or stream
    pub in_use: u32,
    /// green contexts without either
    pub cached: u32,
    /// requests met by a context that existed
    pub hits: u64,
    /// green contexts created
    pub misses: u64,
    /// destroyed by the limit and by gcx_cache_trim
    pub evicted: u64,
    /// destroyed by a reset of the device
    pub lost: u64,
    /// of those created, by a prepare function
    pub prepared: u64,
    /// nanoseconds in the driver creating them, in total
    pub creation_ns: u64,
    /// nanoseconds for the slowest one
    pub longest_creation_ns: u64,
    /// streams without a handle, cached for reuse
    pub cached_streams: u32,
}
#[test]
fn bindgen_test_layout_gcx_cache_stats() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_cache_stats> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_cache_stats>(),
        80usize,
        "Size of gcx_cache_stats",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_cache_stats>(),
        8usize,
        "Alignment of gcx_cache_stats",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_cache_stats::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).limit) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_cache_stats::limit",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).in_use) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_cache_stats::in_use",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cached) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_cache_stats::cached",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).hits) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_cache_stats::hits",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).misses) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_cache_stats::misses",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).evicted) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_cache_stats::evicted",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).lost) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_cache_stats::lost",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).prepared) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_cache_stats::prepared",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).creation_ns) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_cache_stats::creation_ns",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).longest_creation_ns) as usize - ptr as usize
        },
        64usize,
        "Offset of field: gcx_cache_stats::longest_creation_ns",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cached_streams) as usize - ptr as usize },
        72usize,
        "Offset of field: gcx_cache_stats::cached_streams",
    );
}
extern "C" {
    /// Returns the statistics of the cache since the driver was opened.
    pub fn gcx_cache_get_stats(stats: *mut gcx_cache_stats) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_lease_s {
    _unused: [u8; 0],
}
/** ------------------------------------------------------------------------------------------
 Leases

 A lease gives one part of a program exclusive use of some SMs. Two leases of a process have no SM
 in common unless both are shared. Leases grow, shrink and exchange SMs while their streams work.
 Contexts of gcx_context_create() ignore leases: split with GCX_SPLIT_EXCLUDE_LEASED to keep them
 apart. docs/explanation/concepts.md has a picture of a resize.

 Placement. Deterministic; counts are rounded as by gcx_sm_split(). A lease that grows keeps its
   SMs, and a lease that shrinks gets no new ones, unless the rounded count needs the remainder
   atom or cannot include it: on an H100, 28 (8 + 8 + 12) to 24 takes one new atom of 8. A
   prepared layout returns to the same SMs. Where these contradict each other, the prepared layout
   wins, and the lease that moves waits on the device as after any resize.
 Queue. Waiting requests are served in order of arrival; while one waits, no later request and no
   growing lease gets free SMs. Each reservation has a queue of its own.
 Streams. A function that takes a stream of a lease uses a CUstream on the SMs that the lease has
   at that call, ordered behind the stream's earlier work. A CUstream that was obtained before a
   resize stays valid, on the SMs of that time. A stream that captures a graph moves when the
   capture ends.
 Parked leases. A resize can take all SMs of a lease, which keeps its handle and its streams.
   Submitted work finishes where it runs, and gcx_stream_query(), gcx_stream_synchronize(),
   gcx_lease_query() and gcx_lease_synchronize() see it; other functions that take a stream fail
   with GCX_ERROR_LEASE_PARKED until a resize gives the lease SMs.
 Owners. Work of a new owner waits on the device until the former owner's work on those SMs,
   submitted before the change, has finished. No host thread waits. A call that submits to a
   lease's stream takes effect before a resize or after it, never during one.
 ----------------------------------------------------------------------------------------*/
pub type gcx_lease = *mut gcx_lease_s;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_reservation_s {
    _unused: [u8; 0],
}
pub type gcx_reservation = *mut gcx_reservation_s;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_params {
    pub struct_size: u32,
    /// GCX_LEASE_
    pub flags: u32,
    /// GCX_SM_FAMILY_NONE: coscheduled; not the structured family
    pub family: gcx_sm_family,
    /** smallest acceptable SM count; 0: the requested count, or one atom
with GCX_REST*/
    pub min_sm_count: u32,
    /// with GCX_LEASE_SHARED: SMs that it has exclusively
    pub exclusive_sm_count: u32,
    /// milliseconds to wait for the SMs; 0: do not wait; GCX_FOREVER
    pub timeout_ms: u32,
    /// aborts the wait from another thread; may be NULL
    pub cancel: gcx_cancel,
    /// for messages and lists, copied; may be NULL
    pub name: *const ::std::os::raw::c_char,
    /// acquire within its SMs; NULL: within the device
    pub reservation: gcx_reservation,
}
#[test]
fn bindgen_test_layout_gcx_lease_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_lease_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_lease_params>(),
        48usize,
        "Size of gcx_lease_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_lease_params>(),
        8usize,
        "Alignment of gcx_lease_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_lease_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_lease_params::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_lease_params::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).min_sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_lease_params::min_sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).exclusive_sm_count) as usize - ptr as usize
        },
        16usize,
        "Offset of field: gcx_lease_params::exclusive_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).timeout_ms) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_lease_params::timeout_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cancel) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_lease_params::cancel",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_lease_params::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reservation) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_lease_params::reservation",
    );
}
impl Default for gcx_lease_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Acquires sm_count SMs of a device, or GCX_REST, for exclusive use within this process. params may
 be NULL.

 With params->reservation, device is the reservation's or -1, and family the reservation's or
 GCX_SM_FAMILY_NONE. Resizes of the lease stay within the reservation's SMs and include only
 leases of the same reservation. The lease keeps the reservation alive, also after
 gcx_reservation_release(). A lease without a reservation can have SMs of one, but not those of
 another lease.

 The count is rounded up to whole atoms; gcx_lease_get_info() returns what was acquired. The first
 lease over a set of SMs creates its context (1 to 3 ms, waits for running kernels); later leases
 take about 1 us. If other leases have the SMs, blocks for at most params->timeout_ms. Requests
 are served in order of arrival.

 [13.1+] The contexts of a lease have balanced workqueues
 (GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED), shared with no other such context where possible. On
 older drivers all leases share the process's queues; GCX_LEASE_REQUIRE_WORKQUEUES fails there.

 Errors: those of gcx_context_create and, with a reservation, of gcx_reservation_get_resource, and
   GCX_ERROR_ALREADY_ACQUIRED                other leases have the SMs or wait for them, and
                                             timeout_ms is 0; the message names them
   GCX_ERROR_TIMEOUT                         the same, still after timeout_ms
   GCX_ERROR_CANCELLED                       gcx_cancel_signal() was called
   GCX_ERROR_DUPLICATE_LIBRARY               another copy of gcx in this process has leases; the
                                             message has the paths of both
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or the reservation, has fewer SMs than
                                             requested
   GCX_ERROR_SMS_NOT_MAPPED                  there are leases of another family: call
                                             gcx_device_map_sms() for both families first
   GCX_ERROR_NOT_SUPPORTED                   GCX_LEASE_REQUIRE_WORKQUEUES on a driver before 13.1;
                                             the device has no max-cluster family
   GCX_ERROR_INVALID_DEVICE                  there is no such device, or it is not the
                                             reservation's
   GCX_ERROR_INVALID_VALUE                   sm_count is 0; the family has no leases or is not
                                             the reservation's; the name is too long;
                                             min_sm_count or exclusive_sm_count is greater than
                                             sm_count; exclusive_sm_count is GCX_REST, or not 0
                                             without GCX_LEASE_SHARED*/
    pub fn gcx_lease_acquire(
        device: i32,
        sm_count: u32,
        params: *const gcx_lease_params,
        lease: *mut gcx_lease,
    ) -> gcx_result;
}
extern "C" {
    /** Releases the lease. Its SMs are free when this returns. Its work finishes, and the work of the
 next owner of the SMs waits for that. Calls that other threads make with the lease complete, or
 fail with GCX_ERROR_CONTEXT_IS_DESTROYED or GCX_ERROR_INVALID_HANDLE. Its streams fail with
 GCX_ERROR_CONTEXT_IS_DESTROYED in every function but gcx_stream_destroy. Never waits for work;
 waits for a resize that another thread performs.*/
    pub fn gcx_lease_release(lease: gcx_lease) -> gcx_result;
}
/// The SM count that a lease is to have.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_size {
    pub lease: gcx_lease,
    /** SMs, rounded as by gcx_sm_split; GCX_REST: what all other leases leave,
shared as evenly as atoms allow; 0 with GCX_SIZE_PARKED*/
    pub sm_count: u32,
    /// GCX_SIZE_
    pub flags: u32,
}
#[test]
fn bindgen_test_layout_gcx_lease_size() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_lease_size> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_lease_size>(),
        16usize,
        "Size of gcx_lease_size",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_lease_size>(),
        8usize,
        "Alignment of gcx_lease_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).lease) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_lease_size::lease",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_lease_size::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_lease_size::flags",
    );
}
impl Default for gcx_lease_size {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Resizes the leases of sizes[0 .. count - 1] in one operation: all of them or none. One lease can
 grow by the SMs that another loses in the same call. Work in flight finishes where it runs;
 later work of the streams runs on the new SMs. Takes microseconds if the contexts of the new sets
 are cached (gcx_lease_prepare); otherwise the time to create them, which delays no other lease.

 {a, 0, GCX_SIZE_PARKED} and {b, GCX_REST, 0} give a's SMs to b, also while requests wait:
 leases of one call exchange SMs ahead of the queue.

 Errors: those of gcx_context_create, and
   GCX_ERROR_ALREADY_ACQUIRED                the SMs of the leases and the free ones are too few,
                                             or other requests wait for them; the message names
                                             them
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the leases are of two devices, families or
                                             reservations; the sizes exceed the device or the
                                             reservation; or a size is less than the lease's
                                             exclusive_sm_count
   GCX_ERROR_SMS_NOT_MAPPED                  of a parked lease: there are leases of another family
   GCX_ERROR_INVALID_VALUE                   count is 0, an sm_count is 0 without
                                             GCX_SIZE_PARKED or not 0 with it, or a lease is
                                             listed twice*/
    pub fn gcx_lease_resize(
        sizes: *const gcx_lease_size,
        count: u32,
        flags: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Creates the contexts that gcx_lease_resize() with sizes[0 .. count - 1] would need, and resizes
 nothing. Until one of the leases is released, every resize of the same leases to the same SM
 counts returns to these sets, if no other lease has their SMs (of a device, the last 1,024
 layouts). Call it from a background thread, once for each layout. The contexts count as prepared
 (gcx_cache_prepare). Before there are leases, use gcx_cache_prepare() with
 GCX_PREPARE_FOR_LEASES.

 Errors: those of gcx_lease_resize, and
   GCX_ERROR_CACHE_LIMIT_EXCEEDED  as for gcx_cache_prepare*/
    pub fn gcx_lease_prepare(sizes: *const gcx_lease_size, count: u32) -> gcx_result;
}
extern "C" {
    /** Returns the SMs that gcx_lease_resize() with sizes[0 .. count - 1] would give, and changes
 nothing. resources[0 .. count - 1] receives those of each lease, 0 SMs for one to park.
 *remainder receives the SMs of the device, or of the reservation, that no lease would have.
 Creates no context. Waits while another thread resizes one of the leases. Thread-safe.

 After gcx_lease_prepare() with the same sizes, later resizes return to these SMs (see there).
 gcx_graph_prepare() with the resources and GCX_PREPARE_FOR_LEASES then makes graphs ready for the
 layout before the leases have it. Without that, a change of any lease can change the layout.

 Errors: those of gcx_lease_resize, but for the creation of contexts*/
    pub fn gcx_lease_get_layout(
        sizes: *const gcx_lease_size,
        count: u32,
        resources: *mut gcx_resource,
        remainder: *mut gcx_resource,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_info {
    pub struct_size: u32,
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /// SMs that it has now; 0 if it is parked
    pub sm_count: u32,
    /// of these, SMs that no other lease can have
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    /// never reused in a process
    pub id: u64,
    /// how often its SMs have changed
    pub changes: u64,
    pub name: [::std::os::raw::c_char; 64usize],
}
#[test]
fn bindgen_test_layout_gcx_lease_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_lease_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_lease_info>(),
        112usize,
        "Size of gcx_lease_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_lease_info>(),
        8usize,
        "Alignment of gcx_lease_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_lease_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_lease_info::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_lease_info::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_lease_info::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_lease_info::sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).exclusive_sm_count) as usize - ptr as usize
        },
        20usize,
        "Offset of field: gcx_lease_info::exclusive_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).stream_count) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_lease_info::stream_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_lease_info::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).changes) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_lease_info::changes",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_lease_info::name",
    );
}
impl Default for gcx_lease_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /// Returns the properties of a lease.
    pub fn gcx_lease_get_info(lease: gcx_lease, info: *mut gcx_lease_info) -> gcx_result;
}
extern "C" {
    /// Returns the SMs that the lease has now, as a resource; of a parked lease, one with 0 SMs.
    pub fn gcx_lease_get_resource(
        lease: gcx_lease,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// Describes a lease of this process.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_live_lease {
    pub id: u64,
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /** 0 if the lease is parked; of a waiting request: the requested count, or
GCX_REST*/
    pub sm_count: u32,
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    /// 1: a request that waits in gcx_lease_acquire
    pub waits: u32,
    /// 0
    pub reserved: [u32; 7usize],
    pub name: [::std::os::raw::c_char; 64usize],
    /// its SMs; 0 SMs for a waiting request
    pub resource: gcx_resource,
}
#[test]
fn bindgen_test_layout_gcx_live_lease() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_live_lease> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_live_lease>(),
        256usize,
        "Size of gcx_live_lease",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_live_lease>(),
        8usize,
        "Alignment of gcx_live_lease",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_live_lease::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_live_lease::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_live_lease::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_live_lease::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_live_lease::sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).exclusive_sm_count) as usize - ptr as usize
        },
        24usize,
        "Offset of field: gcx_live_lease::exclusive_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).stream_count) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_live_lease::stream_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).waits) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_live_lease::waits",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        36usize,
        "Offset of field: gcx_live_lease::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        64usize,
        "Offset of field: gcx_live_lease::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).resource) as usize - ptr as usize },
        128usize,
        "Offset of field: gcx_live_lease::resource",
    );
}
impl Default for gcx_live_lease {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Lists the leases of a device, or of all (-1): first the leases, in order of acquisition, then the
 waiting requests in the order of their queue. leases may be NULL if capacity is 0.

 Errors:
   GCX_ERROR_INVALID_DEVICE  there is no such device*/
    pub fn gcx_lease_list(
        device: i32,
        leases: *mut gcx_live_lease,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Creates a stream of the lease, which follows it to other SMs (see Leases). params are those of
 gcx_stream_create. Destroy it with gcx_stream_destroy().

 Errors: those of gcx_stream_create, and
   GCX_ERROR_LEASE_PARKED  the lease has no SMs*/
    pub fn gcx_lease_stream_create(
        lease: gcx_lease,
        params: *const gcx_stream_params,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** Waits until all work of the lease's streams has finished, including destroyed streams and work
 submitted before the last resize. Does not wait for other work on its SMs, nor for a stream that
 captures a graph. Blocks the calling thread. Errors of that work are returned with the driver's
 code.*/
    pub fn gcx_lease_synchronize(lease: gcx_lease) -> gcx_result;
}
extern "C" {
    /** Returns GCX_SUCCESS if the work that gcx_lease_synchronize() waits for has finished,
 GCX_ERROR_NOT_READY if not; the latter sets no message.*/
    pub fn gcx_lease_query(lease: gcx_lease) -> gcx_result;
}
extern "C" {
    /** Opens a driver library, unless it is open already. driver is
   NULL or ""     the open driver; else the one that GCX_DRIVER in the environment names, read as
                  below; else libcuda.so.1
   "sim:SPEC"     the simulated driver, such as "sim:h100@13.0", "sim:2xh100@12.4" or "sim:FILE"
                  with a recording of `gcx info --record`
   anything else  a path or name for dlopen
 Calling it is optional: the first function that needs the driver opens it as with NULL. There is
 no silent fallback: without a driver each call fails, and the next one tries again.

 Errors: the driver's from cuInit, and
   GCX_ERROR_DRIVER_ALREADY_OPEN             another driver is open, for the rest of the process
   GCX_ERROR_SHARED_OBJECT_INIT_FAILED       the library cannot be loaded: no driver is installed,
                                             or the path is wrong
   GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND  the library is not a CUDA driver, or lacks a function
                                             of its version
   GCX_ERROR_NOT_SUPPORTED                   the driver is older than CUDA 12.4
   GCX_ERROR_NO_DEVICE                       the driver has no device, or CUDA_VISIBLE_DEVICES
                                             hides all
   GCX_ERROR_FILE_NOT_FOUND                  the simulated driver is not installed
   GCX_ERROR_INVALID_VALUE                   the SPEC or its FILE is invalid*/
    pub fn gcx_driver_open(driver: *const ::std::os::raw::c_char) -> gcx_result;
}
/// 12.4: everything that is not listed here
pub const GCX_CAPABILITY_GREEN_CONTEXTS: gcx_capability = gcx_capability(0);
/** 12.5: the driver creates streams from green contexts. Before, gcx makes the context current
 for the call.*/
pub const GCX_CAPABILITY_STREAM_CREATE: gcx_capability = gcx_capability(1);
/// 13.0: cuGreenCtxGetId
pub const GCX_CAPABILITY_CONTEXT_ID: gcx_capability = gcx_capability(2);
/** 13.0: the driver reports the minimum and the alignment of an SM resource. Before, gcx derives
 them.*/
pub const GCX_CAPABILITY_RESOURCE_DETAILS: gcx_capability = gcx_capability(3);
/// 13.1: coscheduled counts in gcx_sm_request, backfill
pub const GCX_CAPABILITY_STRUCTURED_SPLIT: gcx_capability = gcx_capability(4);
/// 13.1: workqueue resources
pub const GCX_CAPABILITY_WORKQUEUES: gcx_capability = gcx_capability(5);
/** 13.1: the driver reports a stream's resources. gcx reports those of its own streams on every
 driver.*/
pub const GCX_CAPABILITY_STREAM_RESOURCE: gcx_capability = gcx_capability(6);
/// 13.4: locality domains in gcx_sm_request
pub const GCX_CAPABILITY_LOCALITY_DOMAINS: gcx_capability = gcx_capability(7);
pub const GCX_CAPABILITY_COUNT: gcx_capability = gcx_capability(8);
#[repr(transparent)]
/** What a driver can do, each with the driver version that has it first. Functions that need a
 missing capability fail with GCX_ERROR_NOT_SUPPORTED, except where gcx has a substitute.*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_capability(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_driver_info {
    pub struct_size: u32,
    /// of the driver, as from cuDriverGetVersion: 13000 is CUDA 13.0
    pub version: i32,
    /// CUDA_VERSION of the cuda.h that gcx was built with
    pub header_version: i32,
    /// 1: the simulated driver
    pub simulated: i32,
    /// what was opened
    pub library: [::std::os::raw::c_char; 256usize],
    /// by gcx_capability; 1: the driver has it
    pub capabilities: [u8; 32usize],
}
#[test]
fn bindgen_test_layout_gcx_driver_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_driver_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_driver_info>(),
        304usize,
        "Size of gcx_driver_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_driver_info>(),
        4usize,
        "Alignment of gcx_driver_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_driver_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).version) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_driver_info::version",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).header_version) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_driver_info::header_version",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).simulated) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_driver_info::simulated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).library) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_driver_info::library",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).capabilities) as usize - ptr as usize },
        272usize,
        "Offset of field: gcx_driver_info::capabilities",
    );
}
impl Default for gcx_driver_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /// Returns the properties of the driver.
    pub fn gcx_driver_get_info(info: *mut gcx_driver_info) -> gcx_result;
}
extern "C" {
    /** Returns the path of the simulated driver that "sim:" opens, for programs that start others on it;
 NULL if it is not installed, with the searched places in gcx_last_error_message(). The string
 belongs to the thread and is valid until the thread calls this again. Opens no driver.*/
    pub fn gcx_simulator_path() -> *const ::std::os::raw::c_char;
}
/// CUDA's default, 8: the variable is not set
pub const GCX_QUEUE_SOURCE_DEFAULT: gcx_queue_source = gcx_queue_source(0);
/// CUDA_DEVICE_MAX_CONNECTIONS
pub const GCX_QUEUE_SOURCE_ENVIRONMENT: gcx_queue_source = gcx_queue_source(1);
#[repr(transparent)]
/// Where the number of connections comes from.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_queue_source(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_queue_info {
    pub struct_size: u32,
    /** that CUDA has, or would have if it started now; 0: unknown, because the
variable is not a number from 1 to GCX_MAX_CONNECTIONS*/
    pub connections: u32,
    pub source: gcx_queue_source,
    /// 1: CUDA has started in the process, and the number is final
    pub started: i32,
    /** 0: CUDA started before gcx looked, and the process has changed the variable:
connections is its present value*/
    pub certain: i32,
    /** 1: there is one connection: all partitions wait as soon as one stream waits.
Creating a context then logs a GCX_LOG_WARNING, once*/
    pub too_few: i32,
}
#[test]
fn bindgen_test_layout_gcx_queue_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_queue_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_queue_info>(),
        24usize,
        "Size of gcx_queue_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_queue_info>(),
        4usize,
        "Alignment of gcx_queue_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_queue_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).connections) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_queue_info::connections",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).source) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_queue_info::source",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).started) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_queue_info::started",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).certain) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_queue_info::certain",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).too_few) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_queue_info::too_few",
    );
}
impl Default for gcx_queue_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Returns the number of connections. Opens no driver: if none is open, looks for a libcuda that the
 process has loaded, and asks it whether cuInit was called.*/
    pub fn gcx_queue_get_info(info: *mut gcx_queue_info) -> gcx_result;
}
extern "C" {
    /** Requests connections, 1 to GCX_MAX_CONNECTIONS, before CUDA starts: sets
 CUDA_DEVICE_MAX_CONNECTIONS in the process's environment unless it is as large already. CUDA
 reads it in cuInit and never again (measured on 13.0). Call it at the start of the program,
 before other threads can read the environment. Child processes inherit the number. Opens no
 driver. Succeeds after CUDA has started if there are enough connections.

 Errors:
   GCX_ERROR_TOO_LATE       CUDA has started with fewer, or certain is 0
   GCX_ERROR_INVALID_VALUE  connections is 0 or greater than GCX_MAX_CONNECTIONS*/
    pub fn gcx_queue_request_connections(connections: u32) -> gcx_result;
}
extern "C" {
    /** Loads a library in front of libcuda that reports partition counts as described above, for every
 library that opens libcuda.so.1 later, until the process ends. Call it before anything loads
 libcuda.so.1: before gcx opens the driver, before cudart's first call, in Python before torch,
 cupy or jax is imported. Code that opens libcuda by a path sees the device's count. Launches and
 copies do not pass through that library. A second call does nothing. To find libcuda's path it
 may start a short-lived child process.

 Errors:
   GCX_ERROR_TOO_LATE                   libcuda.so.1 is loaded already, or gcx has opened a driver
   GCX_ERROR_FILE_NOT_FOUND             libgcx-counts.so, or the simulated driver that GCX_DRIVER
                                        names, is not installed
   GCX_ERROR_SHARED_OBJECT_INIT_FAILED  there is no driver library, or it cannot be loaded
   GCX_ERROR_OPERATING_SYSTEM           a file cannot be created*/
    pub fn gcx_driver_report_partition_counts() -> gcx_result;
}
extern "C" {
    /** Returns the SMs that the stream's kernels run on, ascending. A capacity of GCX_MAX_SMS is always
 enough. Waits for the stream. If fewer SMs than promised were seen, probes again, a few times:
 other work can occupy them. More SMs than promised are returned as seen; if they can be those of
 gcx_device_find_shared_sms(), the log has a warning.

 Errors:
   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph
   GCX_ERROR_TIMEOUT                     other threads resized the stream's lease continuously*/
    pub fn gcx_stream_probe_sms(
        stream: gcx_stream,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Reads which SMs each atom of a family has, for gcx_resource_get_sm_ids() and for overlaps across
 families. Creates a few temporary contexts, each at the cost of a first context: 4 for an H100's
 coscheduled atoms, 7 for its fine ones. Does so once in a process for each family; later calls
 return at once.

 Errors: those of gcx_context_create, and
   GCX_ERROR_INVALID_DEVICE  there is no such device
   GCX_ERROR_INVALID_VALUE   family is not coscheduled, fine or max-cluster
   GCX_ERROR_NOT_SUPPORTED   under MPS, where the numbers are virtual; the device has no
                             max-cluster family
   GCX_ERROR_TIMEOUT         other work occupied SMs continuously: call it when the device is
                             idle, before a module with dynamic parallelism is loaded*/
    pub fn gcx_device_map_sms(device: i32, family: gcx_sm_family) -> gcx_result;
}
extern "C" {
    /** Finds the SMs that all partitions of this process share because a module with dynamic parallelism
 is loaded, ascending. From then on kernels of every green context of the process also run there,
 those created before included (compute capability 9.x; measured on an H200: 2 SMs of the
 remainder atom, 124 and 125). Other compute capabilities have none.

 Returns what gcx_stream_probe_sms() has recognised in two disjoint partitions. If that is
 nothing, creates contexts over two single atoms, at the cost of a first one each, caches them and
 probes both. Once found, the SMs stay known, and later calls return at once. While none are found
 *count is 0. Modules load lazily, so call this after a kernel of the module was launched.

 Errors: those of gcx_context_create, and
   GCX_ERROR_INVALID_DEVICE  there is no such device
   GCX_ERROR_NOT_SUPPORTED   compute capability 9.x under MPS, where the numbers are virtual*/
    pub fn gcx_device_find_shared_sms(
        device: i32,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
/// What gcx_verify saw of one stream.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_verified_stream {
    /// SMs that it was promised: gcx_stream_info.sm_count
    pub sm_count: u32,
    /// SMs that its kernels ran on
    pub seen_count: u32,
    /// 1: no problem concerns this stream
    pub ok: u32,
    /// 1: it belongs to a shared lease, whose SMs others may have too
    pub shared_lease: u32,
    /// 0
    pub reserved: [u32; 4usize],
    /// those SMs: bit n % 64 of seen[n / 64] is SM n
    pub seen: [u64; 16usize],
}
#[test]
fn bindgen_test_layout_gcx_verified_stream() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_verified_stream> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_verified_stream>(),
        160usize,
        "Size of gcx_verified_stream",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_verified_stream>(),
        8usize,
        "Alignment of gcx_verified_stream",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_verified_stream::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).seen_count) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_verified_stream::seen_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).ok) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_verified_stream::ok",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).shared_lease) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_verified_stream::shared_lease",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_verified_stream::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).seen) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_verified_stream::seen",
    );
}
/// What gcx_verify found.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_verification {
    pub struct_size: u32,
    pub device: i32,
    /// 1: there is no problem
    pub ok: u32,
    pub problem_count: u32,
    /// 1: under MPS, where SM numbers tell how many SMs, not which
    pub virtual_sm_numbers: u32,
    /// SMs that were seen in more than one stream; 0 if virtual
    pub overlap_count: u32,
    /// those SMs, as in gcx_verified_stream.seen
    pub overlap: [u64; 16usize],
    /// SMs of gcx_device_find_shared_sms() that were seen
    pub shared_by_all: [u64; 16usize],
    /// one line for each; the last says how many did not fit
    pub problems: [::std::os::raw::c_char; 4096usize],
}
#[test]
fn bindgen_test_layout_gcx_verification() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_verification> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_verification>(),
        4376usize,
        "Size of gcx_verification",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_verification>(),
        8usize,
        "Alignment of gcx_verification",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_verification::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_verification::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).ok) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_verification::ok",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).problem_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_verification::problem_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).virtual_sm_numbers) as usize - ptr as usize
        },
        16usize,
        "Offset of field: gcx_verification::virtual_sm_numbers",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).overlap_count) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_verification::overlap_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).overlap) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_verification::overlap",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).shared_by_all) as usize - ptr as usize },
        152usize,
        "Offset of field: gcx_verification::shared_by_all",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).problems) as usize - ptr as usize },
        280usize,
        "Offset of field: gcx_verification::problems",
    );
}
impl Default for gcx_verification {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Verifies which SMs streams[0 .. count - 1] run on: probes each, one after the other, as
 gcx_stream_probe_sms() does, and compares. results[0 .. count - 1] receives what was seen of each
 stream. results may be NULL.

 Problems are: a stream ran on more or fewer SMs than promised; two streams share SMs, unless both
 belong to shared leases; all partitions share SMs because a module with dynamic parallelism is
 loaded. Their texts call the streams A, B and so on. A problem is not an error: the result is
 GCX_SUCCESS and verification->ok is 0. A simulated driver proves nothing about a GPU.

 Errors: those of gcx_stream_probe_sms, and
   GCX_ERROR_INVALID_VALUE  count is 0, or the streams are of different devices*/
    pub fn gcx_verify(
        streams: *const gcx_stream,
        count: u32,
        results: *mut gcx_verified_stream,
        verification: *mut gcx_verification,
    ) -> gcx_result;
}
extern "C" {
    /** Returns the numbers of the resource's SMs, ascending, as gcx_device_map_sms() found them.

 Errors:
   GCX_ERROR_SMS_NOT_MAPPED         the family is not mapped
   GCX_ERROR_NOT_SUPPORTED          a structured group, which cannot be mapped: probe a stream of
                                    it
   GCX_ERROR_INVALID_RESOURCE_TYPE  not an SM resource*/
    pub fn gcx_resource_get_sm_ids(
        resource: *const gcx_resource,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Returns one atom of the resource as a resource. index is 0 to atom_count - 1 of
 gcx_resource_get_info().

 Errors:
   GCX_ERROR_INVALID_VALUE          there is no such atom
   GCX_ERROR_INVALID_RESOURCE_TYPE  not an SM resource*/
    pub fn gcx_resource_get_atom(
        resource: *const gcx_resource,
        index: u32,
        atom: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** Publishes this process's leases, present and future, up to 512 at a time. name is for lists and
 is copied; NULL: the program's name. If the process publishes already, changes the name. Opens
 the driver.

 Errors:
   GCX_ERROR_UNSAFE_FOLDER     the folder is a link, belongs to another user or is open to others
   GCX_ERROR_OPERATING_SYSTEM  the file cannot be created: /dev/shm or the folder of
                               GCX_RESERVATION_DIR is missing, full or read-only
   GCX_ERROR_INVALID_VALUE     name is too long, or GCX_RESERVATION_DIR is not an absolute path*/
    pub fn gcx_publish_start(name: *const ::std::os::raw::c_char) -> gcx_result;
}
extern "C" {
    /// Stops publishing. Succeeds if nothing is published. Opens no driver.
    pub fn gcx_publish_stop() -> gcx_result;
}
/// Describes a process that publishes.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_published_process {
    /// a random number that identifies the process
    pub process: u64,
    /// milliseconds since 1970 when it began to publish
    pub since_ms: u64,
    /// as the process itself sees it; differs in other containers
    pub pid: i32,
    /// 1: it uses the simulated driver
    pub simulated: i32,
    pub driver_version: i32,
    pub device_count: u32,
    pub lease_count: u32,
    /// leases beyond 512, missing in gcx_published_lease_list
    pub unlisted_count: u32,
    /// the process's gcx_version()
    pub library: u32,
    /// green contexts that exist, in use or cached
    pub context_count: u32,
    /// green contexts created
    pub contexts_created: u64,
    /// of these, destroyed by the cache's limit and by gcx_cache_trim
    pub contexts_evicted: u64,
    /// operations that changed the SMs of leases, without releases
    pub resize_count: u64,
    /// requests for leases that waited, including those that wait now
    pub wait_count: u64,
    /// nanoseconds that requests waited, without those that wait now
    pub waited_ns: u64,
    /// 0
    pub reserved: [u32; 6usize],
    /// any bytes: escape them for display
    pub name: [::std::os::raw::c_char; 64usize],
}
#[test]
fn bindgen_test_layout_gcx_published_process() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_published_process> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_published_process>(),
        176usize,
        "Size of gcx_published_process",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_published_process>(),
        8usize,
        "Alignment of gcx_published_process",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).process) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_published_process::process",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).since_ms) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_published_process::since_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).pid) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_published_process::pid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).simulated) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_published_process::simulated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).driver_version) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_published_process::driver_version",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_count) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_published_process::device_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).lease_count) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_published_process::lease_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).unlisted_count) as usize - ptr as usize },
        36usize,
        "Offset of field: gcx_published_process::unlisted_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).library) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_published_process::library",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).context_count) as usize - ptr as usize },
        44usize,
        "Offset of field: gcx_published_process::context_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).contexts_created) as usize - ptr as usize
        },
        48usize,
        "Offset of field: gcx_published_process::contexts_created",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).contexts_evicted) as usize - ptr as usize
        },
        56usize,
        "Offset of field: gcx_published_process::contexts_evicted",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).resize_count) as usize - ptr as usize },
        64usize,
        "Offset of field: gcx_published_process::resize_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).wait_count) as usize - ptr as usize },
        72usize,
        "Offset of field: gcx_published_process::wait_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).waited_ns) as usize - ptr as usize },
        80usize,
        "Offset of field: gcx_published_process::waited_ns",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        88usize,
        "Offset of field: gcx_published_process::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        112usize,
        "Offset of field: gcx_published_process::name",
    );
}
impl Default for gcx_published_process {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Lists the processes that publish, including this one. Opens no driver. processes may be NULL if
 capacity is 0. If the user's own folder is missing, the list is empty.

 Errors: those of gcx_publish_start about the folder.*/
    pub fn gcx_published_process_list(
        processes: *mut gcx_published_process,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
/// Describes a lease of a process that publishes.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_published_lease {
    /// as in gcx_published_process
    pub process: u64,
    /// of the lease, in that process
    pub id: u64,
    /// how often its SMs have changed
    pub changes: u64,
    pub pid: i32,
    pub simulated: i32,
    /// the ordinal in that process; device_uuid identifies the device
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /// 1: a request that waits in gcx_lease_acquire
    pub waits: u32,
    /// of a waiting request: the requested count, or GCX_REST
    pub sm_count: u32,
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    pub device_sm_count: u32,
    /// of the family on that device
    pub atom_count: u32,
    /// SMs of each atom but the last
    pub atom_sm_count: u32,
    /// SMs of the last atom
    pub last_atom_sm_count: u32,
    /// 0
    pub reserved: [u32; 11usize],
    /// it has atom n exclusively: bit n % 64 of word n / 64
    pub exclusive_atoms: [u64; 8usize],
    /// the same for atoms that other leases may have too
    pub shared_atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them for display
    pub name: [::std::os::raw::c_char; 64usize],
    /// as above
    pub process_name: [::std::os::raw::c_char; 64usize],
    /// as above
    pub device_name: [::std::os::raw::c_char; 128usize],
}
#[test]
fn bindgen_test_layout_gcx_published_lease() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_published_lease> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_published_lease>(),
        520usize,
        "Size of gcx_published_lease",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_published_lease>(),
        8usize,
        "Alignment of gcx_published_lease",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).process) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_published_lease::process",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_published_lease::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).changes) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_published_lease::changes",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).pid) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_published_lease::pid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).simulated) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_published_lease::simulated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_published_lease::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        36usize,
        "Offset of field: gcx_published_lease::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_published_lease::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).waits) as usize - ptr as usize },
        44usize,
        "Offset of field: gcx_published_lease::waits",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_published_lease::sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).exclusive_sm_count) as usize - ptr as usize
        },
        52usize,
        "Offset of field: gcx_published_lease::exclusive_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).stream_count) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_published_lease::stream_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_sm_count) as usize - ptr as usize },
        60usize,
        "Offset of field: gcx_published_lease::device_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atom_count) as usize - ptr as usize },
        64usize,
        "Offset of field: gcx_published_lease::atom_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atom_sm_count) as usize - ptr as usize },
        68usize,
        "Offset of field: gcx_published_lease::atom_sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).last_atom_sm_count) as usize - ptr as usize
        },
        72usize,
        "Offset of field: gcx_published_lease::last_atom_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        76usize,
        "Offset of field: gcx_published_lease::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).exclusive_atoms) as usize - ptr as usize },
        120usize,
        "Offset of field: gcx_published_lease::exclusive_atoms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).shared_atoms) as usize - ptr as usize },
        184usize,
        "Offset of field: gcx_published_lease::shared_atoms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_uuid) as usize - ptr as usize },
        248usize,
        "Offset of field: gcx_published_lease::device_uuid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        264usize,
        "Offset of field: gcx_published_lease::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).process_name) as usize - ptr as usize },
        328usize,
        "Offset of field: gcx_published_lease::process_name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_name) as usize - ptr as usize },
        392usize,
        "Offset of field: gcx_published_lease::device_name",
    );
}
impl Default for gcx_published_lease {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Lists the leases of the processes that publish: of each process first those that have SMs, in
 order of acquisition, then the waiting requests in the order of their queue. Exclusive leases of
 one process have no atom in common; leases of two processes can. Opens no driver. leases may be
 NULL if capacity is 0.

 Errors: those of gcx_published_process_list.*/
    pub fn gcx_published_lease_list(
        leases: *mut gcx_published_lease,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
pub const GCX_LOG_NONE: gcx_log_level = gcx_log_level(0);
/// something was lost or leaked
pub const GCX_LOG_ERROR: gcx_log_level = gcx_log_level(1);
/// it works, but likely not as intended
pub const GCX_LOG_WARNING: gcx_log_level = gcx_log_level(2);
/// which driver was opened, contexts created and destroyed
pub const GCX_LOG_INFO: gcx_log_level = gcx_log_level(3);
/// every failed call and its message
pub const GCX_LOG_DEBUG: gcx_log_level = gcx_log_level(4);
#[repr(transparent)]
/** ------------------------------------------------------------------------------------------
 Log
 ----------------------------------------------------------------------------------------*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_log_level(pub ::std::os::raw::c_uint);
/** Receives one message, which is valid during the call only. Called at the end of the function that
 logs, in its thread, so possibly in several threads at once, without any lock of gcx. It may take
 the application's locks. It must not call gcx.*/
pub type gcx_log_callback = ::core::option::Option<
    unsafe extern "C" fn(
        level: gcx_log_level,
        message: *const ::std::os::raw::c_char,
        user_data: *mut ::core::ffi::c_void,
    ),
>;
extern "C" {
    /** Sends log messages up to level to callback. NULL goes back to the default: messages up to the
 level that GCX_LOG in the environment names (error, warning, info or debug) are printed to
 standard error, none if it is not set. When the call returns, the previous callback is not
 running and will not be called again, so call it without a lock that the previous callback takes.

 Errors:
   GCX_ERROR_INVALID_VALUE  level is unknown
   GCX_ERROR_IN_CALLBACK    called from a log callback*/
    pub fn gcx_log_set_callback(
        level: gcx_log_level,
        callback: gcx_log_callback,
        user_data: *mut ::core::ffi::c_void,
    ) -> gcx_result;
}
/** ------------------------------------------------------------------------------------------
 Graphs

 A CUDA graph stays on the SMs that it was captured on, whichever stream launches it. A gcx_graph
 takes a captured graph and launches it on the SMs of any stream. It instantiates one executable
 for each set of SMs and caches it. docs/guides/graphs.md lists which nodes can be moved.

 Nodes. A node's number is its index in gcx_graph_get_nodes(): the order of cuGraphGetNodes, with
   the nodes of a child graph directly behind the node that contains it.
 Parts. A graph that forks over several partitions has one part for each context that its kernels
   were captured in, numbered in order of appearance. Copies and memsets belong to the part of the
   nearest kernel before them, or else after them.
 Grids. A kernel whose blocks wait for each other needs all its blocks on the SMs at once: at most
   blocks_per_sm of gcx_graph_node times the partition's SMs. A larger cooperative launch is
   refused when the executable is instantiated. A larger kernel with its own barrier hangs.
 Threads. Launches of one executable run one after the other, as CUDA orders them. Launches on
   different sets of SMs run concurrently, on the same memory. A launch concurrent with a change
   of the graph runs the graph as it was before the change or after it.
 ----------------------------------------------------------------------------------------*/
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUgraph_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_graph_s {
    _unused: [u8; 0],
}
pub type gcx_graph = *mut gcx_graph_s;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_params {
    pub struct_size: u32,
    /// GCX_GRAPH_
    pub flags: u32,
    /** cached executables, least recently used evicted first; 0: 16. Each
keeps its contexts alive and takes some device memory: 0.12 MiB
with 3 nodes on an H200*/
    pub max_executables: u32,
}
#[test]
fn bindgen_test_layout_gcx_graph_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_graph_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_graph_params>(),
        12usize,
        "Size of gcx_graph_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_graph_params>(),
        4usize,
        "Alignment of gcx_graph_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_graph_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_graph_params::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).max_executables) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_graph_params::max_executables",
    );
}
extern "C" {
    /** Creates a movable graph from a captured one, a CUgraph or cudaGraph_t. Copies it: the caller can
 destroy or change the captured graph at once. params may be NULL. The green contexts of gcx that
 kernels were captured in must exist; the graph keeps them alive.

 Errors:
   GCX_ERROR_NOT_SUPPORTED                   a node cannot be moved; the message has its kind and
                                             number
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  kernels of two devices, or of more than
                                             GCX_MAX_GRAPH_PARTS contexts
   GCX_ERROR_INVALID_CONTEXT                 the graph has no kernels, and no context is current
                                             to tell its device
   GCX_ERROR_CONTEXT_IS_DESTROYED            a context that kernels were captured in was
                                             destroyed*/
    pub fn gcx_graph_create(
        captured: *mut CUgraph_st,
        params: *const gcx_graph_params,
        graph: *mut gcx_graph,
    ) -> gcx_result;
}
extern "C" {
    /// Destroys the graph and its executables. Never waits; work in flight finishes.
    pub fn gcx_graph_destroy(graph: gcx_graph) -> gcx_result;
}
extern "C" {
    /** Launches the graph in streams[0]. If count is 1, all parts run on the SMs that the stream has
 now. If count is the number of parts, part i runs on the SMs of streams[i], for
 streams[0 .. count - 1]: the graph starts behind the earlier work of all of them, their later
 work waits for it, and parts without order between them run concurrently.

 Each launch runs on the SMs from before a resize of the lease or from after it: a resize waits
 until this function has returned in other threads, not for the graph's work. In a stream of the
 primary context that other code created, the graph runs as it was captured. The first launch on a
 set of SMs instantiates the executable (gcx_graph_prepare); later ones with one stream take less
 than 1 us longer than cuGraphLaunch (measured).

 Errors: those of gcx_graph_prepare, and
   GCX_ERROR_INVALID_DEVICE              the stream is of another device
   GCX_ERROR_CONTEXT_IS_DESTROYED        the stream's lease was released; or other code has
                                         destroyed the context of its stream, or one that the
                                         graph was captured in and is to run in
   GCX_ERROR_LEASE_PARKED                the stream's lease has no SMs
   GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED  the stream captures a graph: add the captured graph to
                                         that one as a child node instead*/
    pub fn gcx_graph_launch(
        graph: gcx_graph,
        streams: *const gcx_stream,
        count: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Instantiates the executable for resources[0 .. count - 1] ahead of time, and creates their
 contexts if there are none: one SM resource for all parts, or one for each part. flags is 0, or
 GCX_PREPARE_FOR_LEASES for launches in streams of leases. Call it from a background thread: it
 takes 1.2 to 1.4 times as long as cuGraphInstantiate (measured), and delays no launch. Does
 nothing if the executable is cached.

 Errors: those of gcx_context_create, and
   GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE  a cooperative grid does not fit the SMs; the message
                                           has the kernel's name, its grid and the largest
                                           possible
   GCX_ERROR_INVALID_VALUE                 count is neither 1 nor the number of parts
   GCX_ERROR_INVALID_DEVICE                a resource is of another device
   GCX_ERROR_NOT_SUPPORTED                 the driver did not move a node as requested; the
                                           message says which*/
    pub fn gcx_graph_prepare(
        graph: gcx_graph,
        resources: *const gcx_resource,
        count: u32,
        flags: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Assigns nodes[0 .. count - 1] to a part: an existing one, or the next number. A child graph's
 node stands for all its nodes. Destroys the executables that were instantiated for several sets
 of SMs. A part without nodes stays and runs nothing. If count is 0, nothing changes.

 Errors:
   GCX_ERROR_INVALID_VALUE  there is no such node; part is greater than the number of parts or is
                            GCX_MAX_GRAPH_PARTS; part is the next one and count is 0*/
    pub fn gcx_graph_set_part(
        graph: gcx_graph,
        nodes: *const u32,
        count: u32,
        part: u32,
    ) -> gcx_result;
}
/// The launch parameters of a kernel node.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_kernel_params {
    pub struct_size: u32,
    /// dynamic shared memory of a block
    pub shared_bytes: u32,
    /// blocks
    pub grid: [u32; 3usize],
    /// threads
    pub block: [u32; 3usize],
    /** at their offsets (cuFuncGetParamInfo), as in a C struct; copied;
NULL: the present ones*/
    pub arguments: *const ::core::ffi::c_void,
    /// at least to the end of the last argument
    pub argument_bytes: u64,
}
#[test]
fn bindgen_test_layout_gcx_kernel_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_kernel_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_kernel_params>(),
        48usize,
        "Size of gcx_kernel_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_kernel_params>(),
        8usize,
        "Alignment of gcx_kernel_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_kernel_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).shared_bytes) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_kernel_params::shared_bytes",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).grid) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_kernel_params::grid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).block) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_kernel_params::block",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).arguments) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_kernel_params::arguments",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).argument_bytes) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_kernel_params::argument_bytes",
    );
}
impl Default for gcx_kernel_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Changes the parameters of a kernel node in the graph and all its executables, or in none. Later
 launches have them. Only arguments have a default, so set all other fields; gcx_graph_get_nodes()
 returns the present ones. The driver updates executables in place, except for nodes of child
 graphs, where the executables are instantiated again.

 Errors: those of gcx_graph_prepare, the driver's about the parameters, and
   GCX_ERROR_INVALID_VALUE  there is no such node; it is not a kernel's; the grid or the block has
                            a 0; the arguments are too short*/
    pub fn gcx_graph_set_kernel(
        graph: gcx_graph,
        node: u32,
        params: *const gcx_kernel_params,
    ) -> gcx_result;
}
extern "C" {
    /** Updates the graph to the parameters of another captured graph with the same nodes in the same
 order, in all executables or in none. Parts stay. If only the parameters of kernels outside child
 graphs differ, the driver updates executables in place; otherwise they are instantiated again.
 The caller still owns captured.

 Errors: those of gcx_graph_create and, about the executables, of gcx_graph_prepare, and
   GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE  the device, the nodes or their order differ; the message
                                        says where*/
    pub fn gcx_graph_update(graph: gcx_graph, captured: *mut CUgraph_st) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_info {
    pub struct_size: u32,
    pub device: i32,
    /// GCX_GRAPH_
    pub flags: u32,
    /// including those of child graphs
    pub node_count: u32,
    /// of these, kernels
    pub kernel_count: u32,
    pub part_count: u32,
    /// cached now
    pub executables: u32,
    pub max_executables: u32,
    /// since it was created
    pub launches: u64,
    /// executables instantiated since then
    pub instantiated: u64,
    /// of these, destroyed because of max_executables
    pub evicted: u64,
}
#[test]
fn bindgen_test_layout_gcx_graph_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_graph_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_graph_info>(),
        56usize,
        "Size of gcx_graph_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_graph_info>(),
        8usize,
        "Alignment of gcx_graph_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_graph_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_graph_info::device",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_graph_info::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).node_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_graph_info::node_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).kernel_count) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_graph_info::kernel_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).part_count) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_graph_info::part_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).executables) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_graph_info::executables",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).max_executables) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_graph_info::max_executables",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).launches) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_graph_info::launches",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).instantiated) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_graph_info::instantiated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).evicted) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_graph_info::evicted",
    );
}
extern "C" {
    /// Returns the properties of a graph.
    pub fn gcx_graph_get_info(graph: gcx_graph, info: *mut gcx_graph_info) -> gcx_result;
}
pub const GCX_GRAPH_NODE_KERNEL: gcx_graph_node_kind = gcx_graph_node_kind(0);
pub const GCX_GRAPH_NODE_MEMCPY: gcx_graph_node_kind = gcx_graph_node_kind(1);
pub const GCX_GRAPH_NODE_MEMSET: gcx_graph_node_kind = gcx_graph_node_kind(2);
pub const GCX_GRAPH_NODE_HOST: gcx_graph_node_kind = gcx_graph_node_kind(3);
/// a child graph
pub const GCX_GRAPH_NODE_GRAPH: gcx_graph_node_kind = gcx_graph_node_kind(4);
pub const GCX_GRAPH_NODE_EMPTY: gcx_graph_node_kind = gcx_graph_node_kind(5);
pub const GCX_GRAPH_NODE_WAIT_EVENT: gcx_graph_node_kind = gcx_graph_node_kind(6);
pub const GCX_GRAPH_NODE_EVENT_RECORD: gcx_graph_node_kind = gcx_graph_node_kind(7);
pub const GCX_GRAPH_NODE_SEMAPHORE_SIGNAL: gcx_graph_node_kind = gcx_graph_node_kind(8);
pub const GCX_GRAPH_NODE_SEMAPHORE_WAIT: gcx_graph_node_kind = gcx_graph_node_kind(9);
#[repr(transparent)]
/// Kinds of nodes, CUgraphNodeType.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_node_kind(pub ::std::os::raw::c_uint);
/// Describes a node.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_node {
    pub kind: gcx_graph_node_kind,
    /// number of the node whose child graph contains it; GCX_NO_NODE: none
    pub parent: u32,
    pub part: u32,
    /// 1: a cooperative launch
    pub cooperative: u32,
    /// blocks
    pub grid: [u32; 3usize],
    /// threads
    pub block: [u32; 3usize],
    /// blocks; 0 without clusters
    pub cluster: [u32; 3usize],
    /// dynamic shared memory of a block
    pub shared_bytes: u32,
    /** blocks that run on one SM at once. The largest grid whose blocks may
wait for each other is this times the partition's SMs*/
    pub blocks_per_sm: u32,
    /// 0
    pub reserved: [u32; 9usize],
    /// the kernel's, as compiled
    pub name: [::std::os::raw::c_char; 256usize],
}
#[test]
fn bindgen_test_layout_gcx_graph_node() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_graph_node> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_graph_node>(),
        352usize,
        "Size of gcx_graph_node",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_graph_node>(),
        4usize,
        "Alignment of gcx_graph_node",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).kind) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_graph_node::kind",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).parent) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_graph_node::parent",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).part) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_graph_node::part",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cooperative) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_graph_node::cooperative",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).grid) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_graph_node::grid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).block) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_graph_node::block",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cluster) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_graph_node::cluster",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).shared_bytes) as usize - ptr as usize },
        52usize,
        "Offset of field: gcx_graph_node::shared_bytes",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).blocks_per_sm) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_graph_node::blocks_per_sm",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        60usize,
        "Offset of field: gcx_graph_node::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        96usize,
        "Offset of field: gcx_graph_node::name",
    );
}
impl Default for gcx_graph_node {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /// Lists the nodes. nodes may be NULL if capacity is 0.
    pub fn gcx_graph_get_nodes(
        graph: gcx_graph,
        nodes: *mut gcx_graph_node,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_reservation_params {
    pub struct_size: u32,
    /// GCX_RESERVATION_
    pub flags: u32,
    /** GCX_SM_FAMILY_NONE: coscheduled, inside gcx exec the partition's; not
the structured family*/
    pub family: gcx_sm_family,
    /** smallest acceptable SM count; 0: the requested count, or one atom
with GCX_REST*/
    pub min_sm_count: u32,
    /// milliseconds to wait for the SMs; 0: do not wait; GCX_FOREVER
    pub timeout_ms: u32,
    /// aborts the wait from another thread; may be NULL
    pub cancel: gcx_cancel,
    /** for messages and lists, copied, shorter than GCX_MAX_LEASE_NAME; may
be NULL*/
    pub name: *const ::std::os::raw::c_char,
    /// an absolute path; NULL: see above
    pub folder: *const ::std::os::raw::c_char,
}
#[test]
fn bindgen_test_layout_gcx_reservation_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_reservation_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_reservation_params>(),
        48usize,
        "Size of gcx_reservation_params",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_reservation_params>(),
        8usize,
        "Alignment of gcx_reservation_params",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_reservation_params::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_reservation_params::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_reservation_params::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).min_sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_reservation_params::min_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).timeout_ms) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_reservation_params::timeout_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).cancel) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_reservation_params::cancel",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_reservation_params::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).folder) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_reservation_params::folder",
    );
}
impl Default for gcx_reservation_params {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Acquires sm_count SMs of the device, or GCX_REST, that no other process has. params may be NULL.
 Creates no context. Waits by polling every 20 ms or less; starts no thread. If other processes
 have the folder locked, which takes them less than a millisecond, waits up to 500 ms for the lock
 even if timeout_ms is shorter.

 Errors:
   GCX_ERROR_ALREADY_ACQUIRED  other processes have the SMs or wait for them, and timeout_ms is
                               0; the message names them
   GCX_ERROR_TIMEOUT           the same, still after timeout_ms; or other processes had the folder
                               locked all that time, or, before the request was in the queue, for
                               5 s without a change, as when one was stopped in the middle of a
                               change
   GCX_ERROR_CANCELLED         gcx_cancel_signal() was called
   GCX_ERROR_UNSAFE_FOLDER     the folder belongs to another user or is open to others, or
                               /dev/shm/gcx-UID is a link
   GCX_ERROR_CORRUPT_FILE      a file cannot be read, or is invalid and a live process keeps it
                               locked, so the SMs of its reservation are not known
   GCX_ERROR_OPERATING_SYSTEM  the folder is missing, full or read-only; files in it were removed
                               during the call; /dev/shm/gcx-UID was removed while a process has a
                               reservation in it
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or inside gcx exec the partition, has
                               fewer SMs or is of another family
   GCX_ERROR_NOT_SUPPORTED     the device has no max-cluster family; inside gcx exec, the driver
                               divides the partition into other atoms than the device
   GCX_ERROR_NOT_FOUND         inside gcx exec, the partition's reservation has ended
   GCX_ERROR_INVALID_DEVICE    there is no such device
   GCX_ERROR_INVALID_VALUE     sm_count is 0; the family has no reservations; the name or path is
                               too long; the path is not absolute; min_sm_count is greater than
                               sm_count; inside gcx exec, folder is not that of the partition*/
    pub fn gcx_reservation_acquire(
        device: i32,
        sm_count: u32,
        params: *const gcx_reservation_params,
        reservation: *mut gcx_reservation,
    ) -> gcx_result;
}
extern "C" {
    /** Writes the token with which another process joins the reservation: text for its environment or
 command line. It is the path of the reservation's file. capacity is the room in token, in bytes;
 GCX_MAX_RESERVATION_TOKEN is always enough.

 Errors:
   GCX_ERROR_INSUFFICIENT_CAPACITY  capacity is too small*/
    pub fn gcx_reservation_get_token(
        reservation: gcx_reservation,
        token: *mut ::std::os::raw::c_char,
        capacity: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Joins a reservation of another process, or of this one. The reservation lasts until all that
 joined it have released it. Opens no driver, and works in a forked child.

 Errors:
   GCX_ERROR_NOT_FOUND         the reservation has ended, never existed or still waits for its SMs
   GCX_ERROR_INVALID_VALUE     token is not a token
   GCX_ERROR_TIMEOUT           other processes had the folder locked for 5 s
   GCX_ERROR_CORRUPT_FILE      the reservation's file is invalid or cannot be read
   GCX_ERROR_UNSAFE_FOLDER, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire*/
    pub fn gcx_reservation_join(
        token: *const ::std::os::raw::c_char,
        reservation: *mut gcx_reservation,
    ) -> gcx_result;
}
extern "C" {
    /** Releases the reservation. If no other process joined it and no lease in it is left, other
 processes can have its SMs at once. Then waits up to 300 ms for the folder, to remove the file. A
 forked child has none of its parent's handles.*/
    pub fn gcx_reservation_release(reservation: gcx_reservation) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_reservation_info {
    pub struct_size: u32,
    pub family: gcx_sm_family,
    /// GCX_RESERVATION_; 0 for a joined one
    pub flags: u32,
    /// SMs that it has
    pub sm_count: u32,
    /// SMs of the device
    pub device_sm_count: u32,
    /// 1: by gcx_reservation_join
    pub joined: i32,
    /// 1: of the simulated driver
    pub simulated: i32,
    /** 1: its file was removed or its folder moved: other processes may be
given its SMs*/
    pub lost: i32,
    /// as the process that acquired it saw it
    pub mps: gcx_mps_state,
    /// the same, as in gcx_device_info
    pub mps_thread_percentage: f32,
    /// a random number that identifies the reservation
    pub id: u64,
    /// milliseconds since 1970 when it was acquired
    pub since_ms: u64,
    /// it has atom n of the family: bit n % 64 of word n / 64
    pub atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them for display
    pub name: [::std::os::raw::c_char; 64usize],
}
#[test]
fn bindgen_test_layout_gcx_reservation_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_reservation_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_reservation_info>(),
        200usize,
        "Size of gcx_reservation_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_reservation_info>(),
        8usize,
        "Alignment of gcx_reservation_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_reservation_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_reservation_info::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).flags) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_reservation_info::flags",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_reservation_info::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_sm_count) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_reservation_info::device_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).joined) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_reservation_info::joined",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).simulated) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_reservation_info::simulated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).lost) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_reservation_info::lost",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).mps) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_reservation_info::mps",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).mps_thread_percentage) as usize - ptr as usize
        },
        36usize,
        "Offset of field: gcx_reservation_info::mps_thread_percentage",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_reservation_info::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).since_ms) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_reservation_info::since_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atoms) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_reservation_info::atoms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_uuid) as usize - ptr as usize },
        120usize,
        "Offset of field: gcx_reservation_info::device_uuid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        136usize,
        "Offset of field: gcx_reservation_info::name",
    );
}
impl Default for gcx_reservation_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /// Returns the properties of a reservation. Opens no driver.
    pub fn gcx_reservation_get_info(
        reservation: gcx_reservation,
        info: *mut gcx_reservation_info,
    ) -> gcx_result;
}
extern "C" {
    /** Returns the reservation's SMs as a resource of this process. Opens the driver.

 Errors:
   GCX_ERROR_NO_DEVICE  no device of this process has the reservation's UUID
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  this process sees other atoms than the process that
                        acquired the reservation, or is limited by
                        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and that one was not; inside gcx exec,
                        the reservation has SMs outside of the partition*/
    pub fn gcx_reservation_get_resource(
        reservation: gcx_reservation,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// Describes a reservation of any process, or a request that waits for one.
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_live_reservation {
    /// a random number that identifies the reservation
    pub id: u64,
    /// milliseconds since 1970 when it was acquired or the wait began
    pub since_ms: u64,
    /// of a waiting request: when it times out; 0: never
    pub until_ms: u64,
    /** the process that acquired it, or, once that has ended, another one that
shares it; 0: none is visible, as from another container*/
    pub pid: i32,
    /// id of the user who owns the file
    pub user: u32,
    /// 1: of the simulated driver
    pub simulated: i32,
    /// 1: a request that waits in gcx_reservation_acquire
    pub waits: u32,
    pub family: gcx_sm_family,
    /// of a waiting request: the requested count, or GCX_REST
    pub sm_count: u32,
    pub device_sm_count: u32,
    /// of the family on that device
    pub atom_count: u32,
    /// SMs of each atom but the last
    pub atom_sm_count: u32,
    /// SMs of the last atom
    pub last_atom_sm_count: u32,
    /// as the process that acquired it saw it
    pub mps: gcx_mps_state,
    /// the same, as in gcx_device_info
    pub mps_thread_percentage: f32,
    /** id of the reservation that it is a part of, which may have
ended; 0: of the device*/
    pub parent: u64,
    /// 0
    pub reserved: [u32; 6usize],
    /// it has atom n: bit n % 64 of word n / 64
    pub atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them for display
    pub name: [::std::os::raw::c_char; 64usize],
    /// of that process; as above
    pub process_name: [::std::os::raw::c_char; 64usize],
    /// as above
    pub device_name: [::std::os::raw::c_char; 128usize],
}
#[test]
fn bindgen_test_layout_gcx_live_reservation() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_live_reservation> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_live_reservation>(),
        440usize,
        "Size of gcx_live_reservation",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_live_reservation>(),
        8usize,
        "Alignment of gcx_live_reservation",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).id) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_live_reservation::id",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).since_ms) as usize - ptr as usize },
        8usize,
        "Offset of field: gcx_live_reservation::since_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).until_ms) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_live_reservation::until_ms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).pid) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_live_reservation::pid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).user) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_live_reservation::user",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).simulated) as usize - ptr as usize },
        32usize,
        "Offset of field: gcx_live_reservation::simulated",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).waits) as usize - ptr as usize },
        36usize,
        "Offset of field: gcx_live_reservation::waits",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).family) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_live_reservation::family",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).sm_count) as usize - ptr as usize },
        44usize,
        "Offset of field: gcx_live_reservation::sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_sm_count) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_live_reservation::device_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atom_count) as usize - ptr as usize },
        52usize,
        "Offset of field: gcx_live_reservation::atom_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atom_sm_count) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_live_reservation::atom_sm_count",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).last_atom_sm_count) as usize - ptr as usize
        },
        60usize,
        "Offset of field: gcx_live_reservation::last_atom_sm_count",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).mps) as usize - ptr as usize },
        64usize,
        "Offset of field: gcx_live_reservation::mps",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).mps_thread_percentage) as usize - ptr as usize
        },
        68usize,
        "Offset of field: gcx_live_reservation::mps_thread_percentage",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).parent) as usize - ptr as usize },
        72usize,
        "Offset of field: gcx_live_reservation::parent",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        80usize,
        "Offset of field: gcx_live_reservation::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).atoms) as usize - ptr as usize },
        104usize,
        "Offset of field: gcx_live_reservation::atoms",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_uuid) as usize - ptr as usize },
        168usize,
        "Offset of field: gcx_live_reservation::device_uuid",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        184usize,
        "Offset of field: gcx_live_reservation::name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).process_name) as usize - ptr as usize },
        248usize,
        "Offset of field: gcx_live_reservation::process_name",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).device_name) as usize - ptr as usize },
        312usize,
        "Offset of field: gcx_live_reservation::device_name",
    );
}
impl Default for gcx_live_reservation {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Lists the reservations of a folder by device: first those that have SMs, in order of acquisition,
 then the waiting requests in the order of their queue. folder may be NULL, as in
 gcx_reservation_params. reservations may be NULL if capacity is 0. Opens no driver and needs no
 GPU. If a reservation with GCX_RESERVATION_INHERIT has no process, waits up to 100 ms for one that
 is starting, and then removes the file; changes nothing else in the folder. Invalid files are
 skipped with a warning in the log. If the user's own folder is missing, the list is empty.

 Errors:
   GCX_ERROR_UNSAFE_FOLDER, GCX_ERROR_OPERATING_SYSTEM  as for gcx_reservation_acquire
   GCX_ERROR_INVALID_VALUE  the folder's path is not absolute or too long*/
    pub fn gcx_reservation_list(
        folder: *const ::std::os::raw::c_char,
        reservations: *mut gcx_live_reservation,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
/// The start of a gcx_device_info: all zero but its size.
pub const GCX_DEVICE_INFO_INIT: gcx_device_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_device_info>()];
    let mut value: gcx_device_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_device_info>() as u32;
    value
};
/// The start of a gcx_resource_info: all zero but its size.
pub const GCX_RESOURCE_INFO_INIT: gcx_resource_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_resource_info>()];
    let mut value: gcx_resource_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_resource_info>() as u32;
    value
};
/// The start of a gcx_context_params: all zero but its size.
pub const GCX_CONTEXT_PARAMS_INIT: gcx_context_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_context_params>()];
    let mut value: gcx_context_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_context_params>() as u32;
    value
};
/// The start of a gcx_context_info: all zero but its size.
pub const GCX_CONTEXT_INFO_INIT: gcx_context_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_context_info>()];
    let mut value: gcx_context_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_context_info>() as u32;
    value
};
/// The start of a gcx_stream_params: all zero but its size.
pub const GCX_STREAM_PARAMS_INIT: gcx_stream_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_stream_params>()];
    let mut value: gcx_stream_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_stream_params>() as u32;
    value
};
/// The start of a gcx_stream_info: all zero but its size.
pub const GCX_STREAM_INFO_INIT: gcx_stream_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_stream_info>()];
    let mut value: gcx_stream_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_stream_info>() as u32;
    value
};
/// The start of a gcx_kernel_fit_params: all zero but its size.
pub const GCX_KERNEL_FIT_PARAMS_INIT: gcx_kernel_fit_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_kernel_fit_params>()];
    let mut value: gcx_kernel_fit_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_kernel_fit_params>() as u32;
    value
};
/// The start of a gcx_kernel_fit: all zero but its size.
pub const GCX_KERNEL_FIT_INIT: gcx_kernel_fit = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_kernel_fit>()];
    let mut value: gcx_kernel_fit = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_kernel_fit>() as u32;
    value
};
/// The start of a gcx_prepare_params: all zero but its size.
pub const GCX_PREPARE_PARAMS_INIT: gcx_prepare_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_prepare_params>()];
    let mut value: gcx_prepare_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_prepare_params>() as u32;
    value
};
/// The start of a gcx_cache_trimmed: all zero but its size.
pub const GCX_CACHE_TRIMMED_INIT: gcx_cache_trimmed = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_cache_trimmed>()];
    let mut value: gcx_cache_trimmed = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_cache_trimmed>() as u32;
    value
};
/// The start of a gcx_cache_stats: all zero but its size.
pub const GCX_CACHE_STATS_INIT: gcx_cache_stats = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_cache_stats>()];
    let mut value: gcx_cache_stats = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_cache_stats>() as u32;
    value
};
/// The start of a gcx_lease_params: all zero but its size.
pub const GCX_LEASE_PARAMS_INIT: gcx_lease_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_lease_params>()];
    let mut value: gcx_lease_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_lease_params>() as u32;
    value
};
/// The start of a gcx_lease_info: all zero but its size.
pub const GCX_LEASE_INFO_INIT: gcx_lease_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_lease_info>()];
    let mut value: gcx_lease_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_lease_info>() as u32;
    value
};
/// The start of a gcx_reservation_params: all zero but its size.
pub const GCX_RESERVATION_PARAMS_INIT: gcx_reservation_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_reservation_params>()];
    let mut value: gcx_reservation_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_reservation_params>() as u32;
    value
};
/// The start of a gcx_reservation_info: all zero but its size.
pub const GCX_RESERVATION_INFO_INIT: gcx_reservation_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_reservation_info>()];
    let mut value: gcx_reservation_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_reservation_info>() as u32;
    value
};
/// The start of a gcx_graph_params: all zero but its size.
pub const GCX_GRAPH_PARAMS_INIT: gcx_graph_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_graph_params>()];
    let mut value: gcx_graph_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_graph_params>() as u32;
    value
};
/// The start of a gcx_kernel_params: all zero but its size.
pub const GCX_KERNEL_PARAMS_INIT: gcx_kernel_params = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_kernel_params>()];
    let mut value: gcx_kernel_params = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_kernel_params>() as u32;
    value
};
/// The start of a gcx_graph_info: all zero but its size.
pub const GCX_GRAPH_INFO_INIT: gcx_graph_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_graph_info>()];
    let mut value: gcx_graph_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_graph_info>() as u32;
    value
};
/// The start of a gcx_driver_info: all zero but its size.
pub const GCX_DRIVER_INFO_INIT: gcx_driver_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_driver_info>()];
    let mut value: gcx_driver_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_driver_info>() as u32;
    value
};
/// The start of a gcx_queue_info: all zero but its size.
pub const GCX_QUEUE_INFO_INIT: gcx_queue_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_queue_info>()];
    let mut value: gcx_queue_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_queue_info>() as u32;
    value
};
/// The start of a gcx_verification: all zero but its size.
pub const GCX_VERIFICATION_INIT: gcx_verification = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_verification>()];
    let mut value: gcx_verification = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_verification>() as u32;
    value
};
