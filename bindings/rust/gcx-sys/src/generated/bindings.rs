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
pub const GCX_RESIZE_DEFAULT: u32 = 0;
pub const GCX_RESIZE_DEFERRED: u32 = 1;
pub const GCX_MAX_PROCESS_NAME: u32 = 64;
pub const GCX_MAX_RESERVATION_TOKEN: u32 = 4096;
pub const GCX_RESERVATION_INHERIT: u32 = 1;
pub const GCX_MAX_CONNECTIONS: u32 = 32;
pub const GCX_MAX_GRAPH_PARTS: u32 = 16;
pub const GCX_MAX_KERNEL_NAME: u32 = 256;
pub const GCX_NO_NODE: u32 = 4294967295;
pub const GCX_GRAPH_NODE_PRIORITIES: u32 = 1;
pub const GCX_MAX_SMS: u32 = 1024;
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
#[repr(transparent)]
/// Numbers and names are CUresult's.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_result(pub ::std::os::raw::c_uint);
/** CUDA's own types, so that this header needs no cuda.h: CUcontext, CUgreenCtx, CUstream, CUevent
 and CUfunction are pointers to these. cudaStream_t and cudaEvent_t are the same pointers.*/
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
extern "C" {
    /// How many devices there are. Errors: those of opening.
    pub fn gcx_device_get_count(count: *mut i32) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_device_info {
    pub struct_size: u32,
    pub compute_capability_major: i32,
    pub compute_capability_minor: i32,
    pub sm_count: u32,
    /// SMs: the least that a coscheduled partition has
    pub min_partition_size: u32,
    /// SMs: coscheduled partitions come in multiples of this
    pub coscheduled_alignment: u32,
    /// 1 where the driver doesn't tell
    pub locality_domain_count: u32,
    /// begins with "SIMULATED" on the simulated driver
    pub name: [::std::os::raw::c_char; 128usize],
    pub uuid: [u8; 16usize],
}
#[test]
fn bindgen_test_layout_gcx_device_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_device_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_device_info>(),
        172usize,
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
    /** Fills *info. Makes no context on the device.
 Errors: GCX_ERROR_INVALID_DEVICE no such device.*/
    pub fn gcx_device_get_info(device: i32, info: *mut gcx_device_info) -> gcx_result;
}
extern "C" {
    /** The priorities that the device's streams can have. Lower numbers are more urgent, so that
 *greatest is the lowest: 0 and -5 on an H100. Holds the primary context while it asks, which is
 once a process.
 Errors: GCX_ERROR_INVALID_DEVICE no such device.*/
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

 An SM resource is a set of atoms: the smallest groups into which the driver splits the
 device. All resources of a device and family are made of the same atoms, whatever calls they
 came from, so that it is known whether two of them overlap, and sets can be joined and taken
 apart without the driver. The families differ in what the driver promises:
   coscheduled  the default. An H100's atoms are 15 groups of 8 SMs and one odd group of 12.
                Kernels with thread block clusters of up to 8 run on any of those of 8
   fine         66 atoms of 2 SMs on an H100, any even count; clusters of up to 2
   max-cluster  compute capability 9.0 and newer, 24 SMs or more. Groups that the driver picks
                for large clusters: on an H200 5 of 24 SMs and an odd one of 12, clusters of
                up to 16
   structured   [13.1+] the groups of one gcx_sm_split with coscheduled counts, backfill or
                locality domains in its requests; two calls with the same requests give the same
                groups. They can't be split further. Their resources carry the requests, so that
                gcx keeps nothing for them: of one not used lately the driver is asked again.
                Requests for a score and more of unlike groups, for which a resource has no room,
                are remembered for good, some hundred bytes for each different split
   foreign      [13.1+] what gcx_stream_get_resource tells of a stream whose green context gcx did
                not make: counts, with no atoms. It can be asked by gcx_resource_get_info; what
                needs the atoms refuses it with GCX_ERROR_INVALID_RESOURCE_CONFIGURATION
 ----------------------------------------------------------------------------------------*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_resource_type(pub ::std::os::raw::c_uint);
/// not an SM resource
pub const GCX_SM_FAMILY_NONE: gcx_sm_family = gcx_sm_family(0);
pub const GCX_SM_FAMILY_COSCHEDULED: gcx_sm_family = gcx_sm_family(1);
pub const GCX_SM_FAMILY_FINE: gcx_sm_family = gcx_sm_family(2);
pub const GCX_SM_FAMILY_MAX_CLUSTER: gcx_sm_family = gcx_sm_family(3);
pub const GCX_SM_FAMILY_STRUCTURED: gcx_sm_family = gcx_sm_family(4);
pub const GCX_SM_FAMILY_FOREIGN: gcx_sm_family = gcx_sm_family(5);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_sm_family(pub ::std::os::raw::c_uint);
/** A description of resources of one device: a value that is copied and thrown away at will. Two
 equal ones are equal byte for byte. It is valid in the process that made it. What isn't one, or
 was changed, is refused with GCX_ERROR_INVALID_RESOURCE_TYPE (all zero) or
 GCX_ERROR_INVALID_RESOURCE_CONFIGURATION; any function that takes a resource can return these.*/
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
    /** The whole device's resource of one type. Makes no context. GCX_RESOURCE_SM gives all SMs, as
 coscheduled; gcx_sm_split can split it in any family. GCX_RESOURCE_WORKQUEUE_CONFIG [13.1+] gives
 the device's default, to be changed by gcx_workqueue_configure.
 Errors: GCX_ERROR_INVALID_DEVICE no such device; GCX_ERROR_INVALID_RESOURCE_TYPE no such type, or
 GCX_RESOURCE_WORKQUEUE, which only a context has; GCX_ERROR_NOT_SUPPORTED workqueues on a driver
 before 13.1.*/
    pub fn gcx_device_get_resource(
        device: i32,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// share the device's workqueues with all contexts
pub const GCX_WORKQUEUE_SCOPE_DEVICE_CTX: gcx_workqueue_scope = gcx_workqueue_scope(0);
/** where possible, share none with other contexts
that are balanced*/
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
    /// of GCX_RESOURCE_SM, else 0
    pub family: gcx_sm_family,
    pub sm_count: u32,
    pub atom_count: u32,
    /** SMs: the least that splitting this can give; all of it, where
it can't be split; 0 only of a resource of 0 SMs*/
    pub min_partition_size: u32,
    /** SMs, never 0: the step of the sizes that splitting this can
give, the odd atom aside, unless that is all there is*/
    pub coscheduled_alignment: u32,
    /// of one structured group: its GCX_SM_REQUEST_ flags
    pub flags: u32,
    /// valid with GCX_SM_REQUEST_LOCALITY_DOMAIN_ID in flags
    pub locality_domain_id: u32,
    /// of GCX_RESOURCE_WORKQUEUE_CONFIG, else 0
    pub workqueue_scope: gcx_workqueue_scope,
    /// concurrent stream-ordered workloads expected
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
    /** Fills *info from the value, without the driver but for a structured group that wasn't used
 lately.*/
    pub fn gcx_resource_get_info(
        resource: *const gcx_resource,
        info: *mut gcx_resource_info,
    ) -> gcx_result;
}
extern "C" {
    /** [13.1+] Gives in *configured the workqueue configuration *config with another scope and
 concurrency limit (0: keep the one it has). May be the same variable.
 Errors: GCX_ERROR_INVALID_RESOURCE_TYPE *config isn't a workqueue configuration;
 GCX_ERROR_INVALID_VALUE no such scope.*/
    pub fn gcx_workqueue_configure(
        config: *const gcx_resource,
        scope: gcx_workqueue_scope,
        concurrency_limit: u32,
        configured: *mut gcx_resource,
    ) -> gcx_result;
}
/** What one group is to be: CU_DEV_SM_RESOURCE_GROUP_PARAMS. Zero whatever isn't set. sm_count
 alone works on every driver; any other field makes the whole split a structured one [13.1+],
 with CUDA's own rules for it, which round nothing.*/
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_sm_request {
    /// SMs, or GCX_REST: what the other groups leave
    pub sm_count: u32,
    /// [13.1+] SMs that are coscheduled; 0: the default
    pub coscheduled_sm_count: u32,
    /// [13.1+] SMs; where possible
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
    /** Divides input into one group for each request, disjoint, and what is left over. The same on every
 driver from 12.4 on:
   - The rule: what can be given is given, whatever the order of the requests, with the fewest SMs
     beyond what was asked, then with the most counts met exactly, then by the order of the
     requests.
   - So counts are rounded up to whole atoms. On an H100, whose atoms are 15 of 8 and an odd one
 of 12, 7 gives 8, 16 and 24 are given as they are, and 108 is 12 atoms of 8 and the one of 12.
     Where the odd atom is nearer it is taken: 10 gives 12, 17 gives 20, 120 and 5 give 120 and
     12. GCX_SPLIT_EXACT refuses whatever would not give each count asked.
   - The odd atom by itself lacks what the family promises: an H100's allows clusters of up to 2,
     not 8, see gcx_resource_get_max_cluster_size. Who needs clusters asks for multiples of the
     other atoms' size, which get it only where nothing else is left: of 16 equal groups of 8 the
     first has it (12, 8, 8, ...).
   - Groups are filled in the order of the requests from the first atoms on, so that a larger
     first group contains the smaller one of another split: growing moves nothing. A group with
     the odd atom takes its others from the last ones on instead: 108 is not 104 and some more.
   - GCX_REST takes what the counted groups leave; several share it as evenly as atoms allow, by
     their order, the last with the odd atom. A group has one atom at least.
   - GCX_SPLIT_EXCLUDE_SHARED takes nothing from an atom that holds SMs which all partitions of
     the process share, see gcx_device_get_shared_sms. It changes nothing on devices that share
     none, those of other compute capabilities than 9.x.
   - input may be a whole device, a group, a remainder, or any union: splits of splits need no
     context in between. Where GCX_SPLIT_ flags name another family than input's, input must be
     a whole device.
 Writes the groups to groups[0 .. request_count - 1] and what is left to *remainder, an
 SM resource of 0 SMs if nothing is. remainder may be NULL. Nothing is made on the device; the
 first split in a family asks the driver for its atoms (microseconds), later ones ask nothing.
 Errors:
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the groups don't fit, or a group would be empty; with
       GCX_SPLIT_EXACT a count can't be met; another family than input's
   GCX_ERROR_INVALID_RESOURCE_TYPE           input isn't an SM resource
   GCX_ERROR_INVALID_VALUE                   request_count or a request's sm_count is 0; unknown
       flags; both families at once; a structured split that breaks one of CUDA's rules, for which
       the driver may answer GCX_ERROR_INVALID_RESOURCE_CONFIGURATION too
   GCX_ERROR_NOT_READY                       with GCX_SPLIT_EXCLUDE_SHARED: the shared SMs aren't
       known, call gcx_device_get_shared_sms after the module is loaded; or which atom holds them
       isn't, call gcx_device_map_sms
   GCX_ERROR_NOT_SUPPORTED                   the driver lacks structured splits (13.1) or locality
       domains (13.4); the device has no clusters for the max-cluster family, or too few SMs (a
       small MIG slice)*/
    pub fn gcx_sm_split(
        input: *const gcx_resource,
        requests: *const gcx_sm_request,
        request_count: u32,
        flags: u32,
        groups: *mut gcx_resource,
        remainder: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** What gcx_sm_split would give, in SMs, without making or keeping anything: the count of each group
 in sm_counts[0 .. request_count - 1] and that of the remainder. Either may be NULL. A plan and a
 split can't differ: they are one computation. Errors: those of gcx_sm_split.*/
    pub fn gcx_sm_plan(
        input: *const gcx_resource,
        requests: *const gcx_sm_request,
        request_count: u32,
        flags: u32,
        sm_counts: *mut u32,
        remainder_sm_count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** The SMs of a and b together, in *result; those of a without those of b; those of both. *result
 may be a or b. An empty result is a resource of 0 SMs.
 Errors: GCX_ERROR_INVALID_RESOURCE_TYPE one isn't an SM resource;
 GCX_ERROR_INVALID_RESOURCE_CONFIGURATION they are of two devices or families.*/
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
    pub fn gcx_resource_intersect(
        a: *const gcx_resource,
        b: *const gcx_resource,
        result: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** How many of the resource's SMs are held by live contexts, those that gcx_context_list tells, of
 gcx in this process. Beside contexts of other families it is known once gcx_device_map_sms has
 read which SMs the atoms hold.
 Errors: GCX_ERROR_NOT_READY it isn't known yet; GCX_ERROR_NOT_SUPPORTED one of two families is
 the structured one, which can't be mapped; GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource.*/
    pub fn gcx_resource_get_live_overlap(
        resource: *const gcx_resource,
        sm_count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** How many SMs a and b share: 0 for two devices. Within a family this is always known. Across
 families it is known once gcx_device_map_sms has read which SMs the atoms hold.
 Errors: GCX_ERROR_NOT_READY it isn't known yet; GCX_ERROR_NOT_SUPPORTED one is of a structured
 split, which can't be mapped; GCX_ERROR_INVALID_RESOURCE_TYPE one isn't an SM resource.*/
    pub fn gcx_resource_get_overlap(
        a: *const gcx_resource,
        b: *const gcx_resource,
        sm_count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** The same as gcx_stream_get_max_cluster_size of a stream with these SMs. On a device with clusters
 the first call makes a context of them, with the cost of one, and keeps it (below).
 Errors: those of gcx_context_create; GCX_ERROR_INVALID_RESOURCE_CONFIGURATION it has 0 SMs.*/
    pub fn gcx_resource_get_max_cluster_size(
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

 A context is a green context: SMs, and [13.1+] a workqueue configuration. gcx makes one green
 context for each set of resources, once, and keeps it: making one takes the driver 1 to 3 ms,
 waits for every kernel that runs on the device and loses 4 MiB of device memory for good when
 it is destroyed. A context for resources that had one before takes microseconds, waits
 for nothing and loses nothing. So two handles for equal resources stand for one green context,
 and synchronizing or recording one covers the work of both, unless GCX_CONTEXT_PRIVATE. The first
 context on a device retains its primary context, which gcx keeps.
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
    /** A context over resource_count resources: one or several SM resources of one device and family,
 disjoint, and [13.1+] at most one GCX_RESOURCE_WORKQUEUE_CONFIG or GCX_RESOURCE_WORKQUEUE.
 params may be NULL. The new handle is the caller's, to be given to gcx_context_destroy.
 Errors:
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the resources overlap, or one is given twice, or
       they are of two devices or families, or hold no SMs
   GCX_ERROR_INVALID_RESOURCE_TYPE           there is no SM resource, or are two workqueues
   GCX_ERROR_INVALID_VALUE                   resource_count is 0; unknown flags
   GCX_ERROR_CONTEXT_IS_DESTROYED            [13.1+] the GCX_RESOURCE_WORKQUEUE is gone: no green
       context has it any more
   GCX_ERROR_NOT_SUPPORTED                   [13.1+] the odd atom together with atoms that don't
       run up to the last: CUDA allows no such descriptor there*/
    pub fn gcx_context_create(
        resources: *const gcx_resource,
        resource_count: u32,
        params: *const gcx_context_params,
        context: *mut gcx_context,
    ) -> gcx_result;
}
extern "C" {
    /** Gives the handle up. Streams of the context stay usable and keep it, and work in flight finishes.
 The green context is kept for the next that asks for the same resources, within
 gcx_cache_set_limit.
 Errors: GCX_ERROR_CONTEXT_ALREADY_IN_USE the handle is current in the calling thread by
 gcx_context_push, or its green context is current and this is its last handle: pop it first.*/
    pub fn gcx_context_destroy(context: gcx_context) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_context_info {
    pub struct_size: u32,
    pub device: i32,
    pub sm_count: u32,
    /// live gcx streams of the green context, those of other handles too
    pub stream_count: u32,
    /** the same for two handles exactly if they share a green context; never
used twice in a process. gcx's own, not cuGreenCtxGetId's*/
    pub id: u64,
}
#[test]
fn bindgen_test_layout_gcx_context_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_context_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_context_info>(),
        24usize,
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
}
extern "C" {
    /// Fills *info. Errors: GCX_ERROR_CONTEXT_IS_DESTROYED (below).
    pub fn gcx_context_get_info(
        context: gcx_context,
        info: *mut gcx_context_info,
    ) -> gcx_result;
}
/// A green context that is in use. Grows at the end of reserved, never in size.
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
    pub reserved: [u32; 3usize],
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
        unsafe { ::core::ptr::addr_of!((*ptr).resource) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_live_context::resource",
    );
}
extern "C" {
    /** The green contexts of a device, or of all (-1), that have a handle or a stream, that a thread
 has current by gcx_context_push, or that a lease or a gcx_graph keeps: in
 contexts[0 .. *count - 1], in the order in which they were made. Not the kept ones. capacity is
 the room in contexts, which may be NULL if that is 0. Errors: GCX_ERROR_INVALID_DEVICE no such
 device; GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed.*/
    pub fn gcx_context_list(
        device: i32,
        contexts: *mut gcx_live_context,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** The context's resource of one type: the SMs it was made of as one resource; [13.1+] its
 workqueue configuration, or its workqueue, to be shared with another context. Contexts with the
 same workqueue give equal resources. It can be used as long as one of them exists, alive or kept.
 Errors: GCX_ERROR_INVALID_RESOURCE_TYPE no such type; GCX_ERROR_NOT_SUPPORTED workqueues on a
 driver before 13.1.*/
    pub fn gcx_context_get_resource(
        context: gcx_context,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** The native handles, for any CUDA code; NULL on failure, with the reason in
 gcx_last_error_message(). They stay gcx's: never destroy them. They are valid as long as the
 handle or a stream of it is alive. cuCtxFromGreenCtx's context, and the green context itself.*/
    pub fn gcx_context_native(context: gcx_context) -> *mut CUctx_st;
}
extern "C" {
    pub fn gcx_context_native_green(context: gcx_context) -> *mut CUgreenCtx_st;
}
extern "C" {
    /** A further handle for the context that gcx made behind a native one, the caller's to destroy.
 Errors: GCX_ERROR_NOT_FOUND native isn't one of gcx's contexts.*/
    pub fn gcx_context_from_native(
        native: *mut CUctx_st,
        context: *mut gcx_context,
    ) -> gcx_result;
}
extern "C" {
    /** Makes the context current in the calling thread, on top of CUDA's context stack, and takes it
 off again. push holds the context until pop, or until the thread ends, which takes off all that
 it had pushed. *context, if not NULL, receives the handle that was pushed. Errors of pop:
 GCX_ERROR_INVALID_CONTEXT nothing was pushed in this thread, or its end has taken it off, or
 another context is on top, since other code pushed or set one: take that off first.*/
    pub fn gcx_context_push(context: gcx_context) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_pop(context: *mut gcx_context) -> gcx_result;
}
extern "C" {
    /** The handle that the calling thread pushed last, if its context is current; else NULL, with
 success. It stays with its owner.*/
    pub fn gcx_context_get_current(context: *mut gcx_context) -> gcx_result;
}
extern "C" {
    /** Waits until all work of the context's streams has finished. Blocks the calling thread. Errors of
 that work appear here with the driver's code.*/
    pub fn gcx_context_synchronize(context: gcx_context) -> gcx_result;
}
/// CU_STREAM_NON_BLOCKING: no order with the default stream
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
    /// GCX_STREAM_NON_BLOCKING
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
    /** A stream of the context, which it keeps, and nobody else's while the handle lives: one that was
 given up before, if there is one of this priority whose work has finished, or a new one. params
 NULL is GCX_STREAM_PARAMS_INIT. Takes microseconds, also while the device is busy. The handle is
 the caller's. Errors: GCX_ERROR_INVALID_VALUE sync isn't GCX_STREAM_NON_BLOCKING;
 GCX_ERROR_CONTEXT_IS_DESTROYED the device was reset.*/
    pub fn gcx_stream_create(
        context: gcx_context,
        params: *const gcx_stream_params,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** A handle for a stream that someone else made, e.g. PyTorch's: for asking for its SMs, and for
 waiting. It must outlive the handle; destroying the handle leaves it alone.
 Errors: GCX_ERROR_INVALID_VALUE it is NULL, CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2), the
 names of CUDA's default streams, which are other streams in each context; what the driver says
 of a stream that isn't one, as far as it notices.*/
    pub fn gcx_stream_from_native(
        native: *mut CUstream_st,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** Gives the handle up. Work in the stream finishes. Never waits. The green context keeps up to 32
 such streams, about 0.02 MiB each, and they go when it does, see gcx_cache_set_limit. So what a
 library holds by stream stays valid, as PyTorch's cached memory, which ends the process if the
 stream of its pinned memory is gone. A stream whose attributes were changed
 (cuStreamSetAttribute), before or after, is given to nobody and destroyed when that is noticed,
 by the next who wants a stream or the place of one. One that captures a graph captures on, and is
 kept at least until that has ended; if 32 such are kept already, its capture ends with it. One
 that somebody destroyed with CUDA's own function, which nobody should, is gone already: then the
 handle goes.*/
    pub fn gcx_stream_destroy(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** The CUstream, which is a cudaStream_t too; NULL on failure, with the reason in
 gcx_last_error_message(). Valid until the handle is destroyed: don't submit to it afterwards, it
 may be someone else's then. Never destroy it.*/
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
    /// gcx_context_info.id; 0 if the context isn't gcx's
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
    /// Fills *info.
    pub fn gcx_stream_get_info(
        stream: gcx_stream,
        info: *mut gcx_stream_info,
    ) -> gcx_result;
}
extern "C" {
    /** The resource of the stream's context: gcx_context_get_resource, by the stream. If its context
 isn't gcx's: the whole device's, if it can run on all SMs, as one of the primary context; else
 [13.1+] a resource of GCX_SM_FAMILY_FOREIGN.
 Errors: those of gcx_context_get_resource, and of a context that isn't gcx's
   GCX_ERROR_NOT_SUPPORTED  a part of the device on a driver before 13.1; gcx_stream_get_info has
       its count
   GCX_ERROR_NOT_FOUND      a workqueue*/
    pub fn gcx_stream_get_resource(
        stream: gcx_stream,
        type_: gcx_resource_type,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** The most blocks that a thread block cluster of the stream's kernels can have, sizes above the
 portable 8 included (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), as the driver says it
 of blocks of 1024 threads without shared memory. 1 on a device without clusters, before compute
 capability 9.0. It follows from how the SMs were split off, not from their number.*/
    pub fn gcx_stream_get_max_cluster_size(
        stream: gcx_stream,
        blocks: *mut u32,
    ) -> gcx_result;
}
/// A kernel's launch, as far as it decides how much of it fits.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_kernel_fit_params {
    pub struct_size: u32,
    /// threads of a block, 1 to 1024
    pub block_threads: u32,
    /// of a block
    pub dynamic_shared_bytes: u32,
    /** blocks of a cluster, also of one that the kernel was compiled
with; 0: it is launched without clusters*/
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
    /// blocks of the kernel that an SM holds at once; 0: it can't run
    pub blocks_per_sm: u32,
    /** the largest grid that runs all at once, and so the largest
cooperative one*/
    pub max_blocks: u32,
    /** clusters that run at once, without clusters 0: of cluster_blocks
each. max_blocks is cluster_blocks times as many*/
    pub max_clusters: u32,
    /** the most blocks that a cluster of this kernel can have; 1 on a
device without clusters; 0: it can't run*/
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
    /** How much of a kernel fits the stream's SMs at once, when nothing else is there: for kernels that
 size their grid by the SMs. A kernel with a barrier of its own over a grid that does not fit
 hangs, since the blocks which wait leave no room for those which they wait for; and
 CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT tells the whole device's SMs inside a partition too.
 function is a CUfunction, or a CUkernel cast to one, as CUDA's own occupancy functions take it.
 A stream of a lease answers for the SMs that the lease has at that call; one that
 captures a graph for those that the graph will run on; one of someone else's for those of its
 context.
 What a cluster may have follows from the kernel's own attributes too, first of all
 CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED for more than 8.
 Errors: GCX_ERROR_INVALID_VALUE block_threads is not 1 to 1024, or function is NULL;
 GCX_ERROR_INVALID_HANDLE function is none, as far as the driver notices.*/
    pub fn gcx_stream_get_kernel_fit(
        stream: gcx_stream,
        function: *mut CUfunc_st,
        params: *const gcx_kernel_fit_params,
        fit: *mut gcx_kernel_fit,
    ) -> gcx_result;
}
extern "C" {
    /** Waits until the stream's work has finished. Blocks the calling thread. Errors of that work appear
 here with the driver's code.*/
    pub fn gcx_stream_synchronize(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** GCX_SUCCESS if all work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 message. Never waits.*/
    pub fn gcx_stream_query(stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** An event on a device; retains the primary context as contexts do. The handle is the caller's.
 Errors: GCX_ERROR_INVALID_DEVICE; GCX_ERROR_INVALID_VALUE unknown flags.*/
    pub fn gcx_event_create(
        device: i32,
        flags: u32,
        event: *mut gcx_event,
    ) -> gcx_result;
}
extern "C" {
    /** A handle for an event that someone else made, e.g. PyTorch's, for recording, waiting and times.
 It must outlive the handle; destroying the handle leaves it alone. Its device isn't known, and
 a reset of it is for its owner to notice.
 Errors: what the driver says of an event that isn't one, as far as it notices.*/
    pub fn gcx_event_from_native(
        native: *mut CUevent_st,
        event: *mut gcx_event,
    ) -> gcx_result;
}
extern "C" {
    /// Gives the handle up, and destroys the event unless someone else made it. Never waits.
    pub fn gcx_event_destroy(event: gcx_event) -> gcx_result;
}
extern "C" {
    /// The CUevent; NULL on failure. Valid until the handle is destroyed.
    pub fn gcx_event_native(event: gcx_event) -> *mut CUevent_st;
}
extern "C" {
    /** Captures in the event the work submitted so far to the stream, or to all streams of the context.
 Recording again forgets what was captured before.
 Errors: GCX_ERROR_INVALID_HANDLE the event is of another device; waiting works across devices.*/
    pub fn gcx_stream_record(stream: gcx_stream, event: gcx_event) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_record(context: gcx_context, event: gcx_event) -> gcx_result;
}
extern "C" {
    /** Holds all later work of the stream, or of all streams of the context, until the event's work has
 finished. An event never recorded holds nothing.*/
    pub fn gcx_stream_wait(stream: gcx_stream, event: gcx_event) -> gcx_result;
}
extern "C" {
    pub fn gcx_context_wait(context: gcx_context, event: gcx_event) -> gcx_result;
}
extern "C" {
    /// Waits in the calling thread for the event's work.
    pub fn gcx_event_synchronize(event: gcx_event) -> gcx_result;
}
extern "C" {
    /** GCX_SUCCESS if the event's work has finished, GCX_ERROR_NOT_READY if not; the latter sets no
 message.*/
    pub fn gcx_event_query(event: gcx_event) -> gcx_result;
}
extern "C" {
    /** Milliseconds between the two events' work. Both need GCX_EVENT_TIMING and to have finished.
 Errors: GCX_ERROR_INVALID_HANDLE one has no timing or was never recorded, or they are of two
 devices; GCX_ERROR_NOT_READY one has not finished. The message says which.*/
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
 Giving up

 What takes long can be given up from another thread: waits for SMs, and contexts that are made
 ahead of time.
 ----------------------------------------------------------------------------------------*/
pub type gcx_cancel = *mut gcx_cancel_s;
extern "C" {
    /** One may be given to any number of calls. Once it was signalled, all calls that wait with it, and
 all that come later, also for SMs that are free, return with GCX_ERROR_NOT_PERMITTED. When
 gcx_cancel_signal returns, each call that waits has been granted its SMs and returns GCX_SUCCESS,
 or is out of the queue, of leases and of reservations: it is never granted any, and holds up no
 other request. The handle is the caller's; destroying it cancels no wait.*/
    pub fn gcx_cancel_create(cancel: *mut gcx_cancel) -> gcx_result;
}
extern "C" {
    pub fn gcx_cancel_signal(cancel: gcx_cancel) -> gcx_result;
}
extern "C" {
    pub fn gcx_cancel_destroy(cancel: gcx_cancel) -> gcx_result;
}
extern "C" {
    /** Sets how many green contexts without handle or stream gcx keeps on each device: 64 at first.
 Those beyond are destroyed, the longest unused first, with those of their streams that were given
 up, but not while such a stream captures a graph. 0 keeps none. The driver gives little of their
 memory back (about 1 MiB of 5, or nothing before the next is made) and loses the rest
 permanently, so that a limit which is too small costs more memory than it saves.

 Contexts that gcx_cache_prepare or gcx_lease_prepare made or found count towards the limit, but
 only this function and gcx_cache_trim destroy them. A limit below their number destroys the
 others first; no more contexts than the limit stay prepared, those in use and used last.*/
    pub fn gcx_cache_set_limit(kept_contexts: u32) -> gcx_result;
}
/** Told how far a call is, in the thread that made it, with no lock of gcx held: it may call gcx,
 also to give the call up. It must not throw.*/
pub type gcx_progress_callback = ::core::option::Option<
    unsafe extern "C" fn(done: u32, count: u32, user_data: *mut ::core::ffi::c_void),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_prepare_params {
    pub struct_size: u32,
    /// GCX_PREPARE_
    pub flags: u32,
    /// gives the rest up; may be NULL
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
    /** Makes the contexts of SM resources beforehand, one for each, and keeps them, so that
 gcx_context_create and gcx_lease_acquire over the same SMs take microseconds. In the calling
 thread: making one takes milliseconds and waits for every kernel that runs on the device, so call
 it before the work starts, or from a thread that has nothing else to do. Of sets whose context is
 there already none is made, and it counts as used now. params may be NULL. The layouts of leases
 that live are made by gcx_lease_prepare.
 The contexts are prepared from then on: other contexts never push them out of the cache, see
 gcx_cache_set_limit. A reset of the device destroys them as all others.
 After a failure what was made stays prepared.
 Errors: those of gcx_context_create;
   GCX_ERROR_NOT_PERMITTED  given up by gcx_cancel_signal, which is looked at before each one
   GCX_ERROR_INVALID_VALUE  count is 0; unknown flags; a device would have more prepared contexts
       than its limit, those in use among them: nothing was made
   GCX_ERROR_INVALID_RESOURCE_TYPE  one isn't an SM resource; with GCX_PREPARE_FOR_LEASES one is
 of a structured split, which has no leases*/
    pub fn gcx_cache_prepare(
        resources: *const gcx_resource,
        count: u32,
        params: *const gcx_prepare_params,
    ) -> gcx_result;
}
/// What a trim came to.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_cache_trimmed {
    pub struct_size: u32,
    /// destroyed
    pub contexts: u32,
    /// that were given up, destroyed: with their contexts, and beside
    pub streams: u32,
    /// beyond the number, but a stream that was given up captures in them
    pub contexts_left: u32,
    /// given up, but at work or capturing still
    pub streams_left: u32,
    /// 0
    pub reserved: u32,
    /** device memory that is free now and was not before, all devices
together; what others did meanwhile is in it; at least 0*/
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
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_cache_trimmed::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).bytes) as usize - ptr as usize },
        24usize,
        "Offset of field: gcx_cache_trimmed::bytes",
    );
}
extern "C" {
    /** Destroys the kept contexts beyond that number, all devices together, now: the longest unused
 first, prepared or not, and the given-up streams of all that stay, but those at work. The limit
 stays as it is. Never while a library may still name a stream that was given up, as PyTorch's
 allocator does (gcx_stream_destroy).
 *trimmed, if not NULL, says what was done, and what could not be.
 Errors: what the driver says if it refuses to destroy something; the rest was trimmed then, and
 the message has the numbers.*/
    pub fn gcx_cache_trim(
        kept_contexts: u32,
        trimmed: *mut gcx_cache_trimmed,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_cache_stats {
    pub struct_size: u32,
    /// of each device
    pub limit: u32,
    /// green contexts with a handle or stream
    pub in_use: u32,
    /// without
    pub kept: u32,
    /// contexts given from kept ones or from ones in use
    pub hits: u64,
    /// green contexts made
    pub misses: u64,
    /// destroyed by the limit and by gcx_cache_trim
    pub evicted: u64,
    /// dead by a reset of the device
    pub lost: u64,
    /// made ahead of time, of those made
    pub prepared: u64,
    /// nanoseconds in the driver making them, all together
    pub making_ns: u64,
    /// of the one that took longest
    pub longest_making_ns: u64,
    /// streams that were given up, of all contexts
    pub kept_streams: u32,
    /// 0
    pub reserved: u32,
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
        unsafe { ::core::ptr::addr_of!((*ptr).kept) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_cache_stats::kept",
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
        unsafe { ::core::ptr::addr_of!((*ptr).making_ns) as usize - ptr as usize },
        56usize,
        "Offset of field: gcx_cache_stats::making_ns",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).longest_making_ns) as usize - ptr as usize
        },
        64usize,
        "Offset of field: gcx_cache_stats::longest_making_ns",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).kept_streams) as usize - ptr as usize },
        72usize,
        "Offset of field: gcx_cache_stats::kept_streams",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        76usize,
        "Offset of field: gcx_cache_stats::reserved",
    );
}
extern "C" {
    /// Fills *stats, since the driver was opened.
    pub fn gcx_cache_get_stats(stats: *mut gcx_cache_stats) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_lease_s {
    _unused: [u8; 0],
}
/** ------------------------------------------------------------------------------------------
 Leases

 A split says which SMs there are; a lease says whose they are. No two leases of a process have an
 SM in common unless both are shared, whoever made them, and they grow, shrink and change hands
 while their streams work. What no lease has is free. Plain contexts are not asked: gcx_sm_split
 with GCX_SPLIT_EXCLUDE_LEASED keeps clear of leases, gcx_context_list shows both.

 Which SMs. A lease is atoms of one family, counted and rounded as gcx_sm_split divides what can
 be had: what is free, and in a change also what its leases have. If min_sm_count allows less, a
 lease gets all that is free. Placement promises this:
   - It is deterministic.
   - A lease that grows keeps its SMs, and a lease that shrinks gets no new ones. Exempt is the
     family's remainder atom, which goes where a split has it. [13.1+] Where the driver would
     make no context of a set with the remainder atom (gcx_context_create), the leases of the
     change move, or do without that atom.
   - A layout that was prepared (gcx_lease_prepare) comes back to the same SMs, whose contexts are
     cached. A lease may move then, and its work waits on the device as after any change.
 A shared lease prefers the SMs that most leases share. Its exclusive SMs stay unless it is to
 have fewer SMs than those.

 Who is first. Requests that wait are served in the order of arrival, and while one waits nobody
   who came later is given what is free: neither another request nor a lease that grows. So none
   starves, however large. Each reservation has a queue of its own, and so have the leases outside
 of reservations: a request that waits in a reservation keeps only the reservation's free SMs from
 leases outside. A request that was cancelled or has timed out is out of its queue at that moment.

 Streams follow. A gcx_stream of a lease stands for the lease: gcx_stream_native, and every
   function that takes the stream, uses a CUstream of the SMs that the lease has at that call,
   behind all work of the CUstream before. A CUstream that was taken before a change still is a
   live stream of the SMs which the lease had then, until its work is done: so take it anew for
   each step, and submit nothing to it while another thread changes the lease. A stream that
   captures a graph moves once the capture has ended; the graph stays on the SMs of its capture.

 SMs that change hands. Their new holder's work waits on the device for the work that the former
   holders' streams were given before the change and that runs on them, so that leases are
   disjoint in time too. No host thread waits. A stream is told to wait when it is next used, if
   there is anything to wait for: one that is not used occupies none of the device's queues.
   Functions of gcx that submit to a lease's stream in another thread come before or after a
   change, never in between. A change takes as many driver calls whatever waits.
 ----------------------------------------------------------------------------------------*/
pub type gcx_lease = *mut gcx_lease_s;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_params {
    pub struct_size: u32,
    /// GCX_LEASE_
    pub flags: u32,
    /// GCX_SM_FAMILY_NONE: coscheduled; not the structured family
    pub family: gcx_sm_family,
    /** SMs: so many will do if those asked for can't be had; 0: no less
than asked for, and of GCX_REST one atom*/
    pub min_sm_count: u32,
    /// with GCX_LEASE_SHARED: so many of the SMs are its alone
    pub exclusive_sm_count: u32,
    /// milliseconds to wait for the SMs; 0: don't; GCX_FOREVER
    pub timeout_ms: u32,
    /// gives the wait up from another thread; may be NULL
    pub cancel: gcx_cancel,
    /// for messages and lists, copied; NULL: none
    pub name: *const ::std::os::raw::c_char,
}
#[test]
fn bindgen_test_layout_gcx_lease_params() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_lease_params> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_lease_params>(),
        40usize,
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
    /** Acquires sm_count SMs of the device, or GCX_REST. params may be NULL. What the lease really got
 is in gcx_lease_get_info. The first lease over a set of SMs makes a context of them, with the
 cost of one (above), later ones take microseconds. [13.1+] Each context that the lease has, over
 its changes, has balanced workqueues (GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED): none in common
 with other such contexts, when possible. On older drivers leases share the process's queues;
 GCX_LEASE_REQUIRE_WORKQUEUES is refused there. The handle is the caller's, to be given to
 gcx_lease_release.
 Errors: those of gcx_context_create;
   GCX_ERROR_ALREADY_ACQUIRED  others hold the SMs, or wait for them, and after timeout_ms still
       did; the message says who
   GCX_ERROR_NOT_PERMITTED     the wait was cancelled by gcx_cancel_signal; another copy of gcx in
       this process has acquired leases, and the message has the paths of both
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device, or the reservation, has fewer SMs than
 requested GCX_ERROR_NOT_READY         there are leases of another family, and which SMs the
 families' atoms hold isn't known: call gcx_device_map_sms for both GCX_ERROR_NOT_SUPPORTED
 GCX_LEASE_REQUIRE_WORKQUEUES on a driver before 13.1 GCX_ERROR_INVALID_DEVICE    no such device
   GCX_ERROR_INVALID_VALUE     sm_count is 0; unknown flags, a family that has no leases, a name
       that is too long; min_sm_count or exclusive_sm_count is more than sm_count*/
    pub fn gcx_lease_acquire(
        device: i32,
        sm_count: u32,
        params: *const gcx_lease_params,
        lease: *mut gcx_lease,
    ) -> gcx_result;
}
extern "C" {
    /** Releases the lease. Its SMs are free when this returns, whatever other threads do with the lease:
 their calls finish, or fail with GCX_ERROR_CONTEXT_IS_DESTROYED or GCX_ERROR_INVALID_HANDLE. Its
 work finishes, and the work of the SMs' next holder waits for that. Its streams end with it: they
 answer GCX_ERROR_CONTEXT_IS_DESTROYED to everything but gcx_stream_destroy. Never waits for work;
 waits for a change of the lease that another thread is making.*/
    pub fn gcx_lease_release(lease: gcx_lease) -> gcx_result;
}
/// What a lease is to have.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_size {
    pub lease: gcx_lease,
    /** SMs, rounded as by gcx_sm_split; GCX_REST: what the others of the
operation and all other leases leave, shared as evenly as atoms allow*/
    pub sm_count: u32,
    /// 0
    pub reserved: u32,
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
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_lease_size::reserved",
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
    /** Gives the leases of sizes[0 .. count - 1] other sizes, all in one operation or none: one can grow
 by what another gives.
 Work in flight finishes where it runs; later work of their streams runs on the new SMs, behind
 what was before in its stream. Takes microseconds where contexts of the new sets are kept (see
 gcx_lease_prepare), and else the time to make them, which holds up no other lease.
 Errors: those of gcx_context_create;
   GCX_ERROR_ALREADY_ACQUIRED  the SMs that the leases have and those that are free don't suffice,
       or others wait for them; the message says who
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the leases are of two devices or families; the sizes,
       rounded to whole atoms, never fit on the device or in the reservation, even if all SMs were
 free; one is less than its lease's exclusive_sm_count GCX_ERROR_INVALID_VALUE     count or an
 sm_count is 0, a lease is there twice, unknown flags*/
    pub fn gcx_lease_resize(
        sizes: *const gcx_lease_size,
        count: u32,
        flags: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Makes the contexts that gcx_lease_resize with sizes[0 .. count - 1] would need, and changes
 nothing. Until one of the leases is released, each change of the same leases that comes to the
 same numbers of SMs brings these sets back, as long as no other lease has their SMs (of a device,
 the last 1,024 layouts). For a thread of the caller's that makes ahead of time what is to be
 changed in microseconds later, one call for each layout, between which the caller reports its
 progress and may stop. Before there are leases it is gcx_cache_prepare with
 GCX_PREPARE_FOR_LEASES. The contexts are prepared from then on, as after gcx_cache_prepare.
 Errors: those of gcx_lease_resize; GCX_ERROR_INVALID_VALUE the limit is too small, as at
 gcx_cache_prepare.*/
    pub fn gcx_lease_prepare(sizes: *const gcx_lease_size, count: u32) -> gcx_result;
}
extern "C" {
    /** Releases from and gives all its SMs to the lease to, past those who wait: both or nothing, also
 if another thread releases one of them. flags as above.
 Errors: those of gcx_lease_resize; GCX_ERROR_NOT_SUPPORTED [13.1+] the SMs of both can't go
 together, see gcx_context_create.*/
    pub fn gcx_lease_hand_over(from: gcx_lease, to: gcx_lease, flags: u32) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_lease_info {
    pub struct_size: u32,
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /// SMs that it has now
    pub sm_count: u32,
    /// of these, those that nobody else can have meanwhile
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    pub reserved: u32,
    /// never used twice in a process
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
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        28usize,
        "Offset of field: gcx_lease_info::reserved",
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
    /// Fills *info.
    pub fn gcx_lease_get_info(lease: gcx_lease, info: *mut gcx_lease_info) -> gcx_result;
}
extern "C" {
    /// The SMs that the lease has now, as a resource.
    pub fn gcx_lease_get_resource(
        lease: gcx_lease,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
/// A lease of the process. Grows at the end of reserved, never in size.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_live_lease {
    pub id: u64,
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /// of one that waits: those it asked for
    pub sm_count: u32,
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    /// 1: it has nothing yet, and waits in gcx_lease_acquire
    pub waits: u32,
    /// 0
    pub reserved: [u32; 7usize],
    pub name: [::std::os::raw::c_char; 64usize],
    /// its SMs; of one that waits 0 SMs
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
    /** The leases of a device, or of all (-1): those that hold SMs in the order in which they were
 acquired, then those that wait, the first first. capacity is the room in leases, which may be
 NULL if that is 0. Errors: GCX_ERROR_INVALID_DEVICE no such device; GCX_ERROR_INVALID_VALUE
 capacity is too small: *count then holds what is needed.*/
    pub fn gcx_lease_list(
        device: i32,
        leases: *mut gcx_live_lease,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** A stream of the lease, that follows it (above). params as of gcx_stream_create. The handle is the
 caller's, to be given to gcx_stream_destroy.*/
    pub fn gcx_lease_stream_create(
        lease: gcx_lease,
        params: *const gcx_stream_params,
        stream: *mut gcx_stream,
    ) -> gcx_result;
}
extern "C" {
    /** Waits until the work of the lease's streams has finished, those that were destroyed among them,
 on whatever SMs it was submitted. Other work on the lease's SMs doesn't count, that of former
 holders only where work of these streams is behind it. Blocks the calling thread. Errors of that
 work appear here with the driver's code. A stream that captures a graph is not waited for.*/
    pub fn gcx_lease_synchronize(lease: gcx_lease) -> gcx_result;
}
extern "C" {
    /// GCX_SUCCESS if that work has finished, GCX_ERROR_NOT_READY if not; the latter sets no message.
    pub fn gcx_lease_query(lease: gcx_lease) -> gcx_result;
}
extern "C" {
    /** From now on this process's leases are published, those that there are and those to come, up to
 512 at a time. name is for lists, copied; NULL: the program's. Of a process that publishes
 already it changes the name. Opens the driver. Errors:
   GCX_ERROR_NOT_PERMITTED     the folder is a link or another user's, or others may enter it
   GCX_ERROR_OPERATING_SYSTEM  the file can't be made: /dev/shm or the folder of
 GCX_RESERVATION_DIR is missing, full or read-only GCX_ERROR_INVALID_VALUE     name is too long,
 or GCX_RESERVATION_DIR is not an absolute path*/
    pub fn gcx_publish_start(name: *const ::std::os::raw::c_char) -> gcx_result;
}
extern "C" {
    /// No longer. Success also where nothing is published. Opens no driver.
    pub fn gcx_publish_stop() -> gcx_result;
}
/// A process that publishes. Grows at the end of reserved, never in size.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_published_process {
    /// a random number, which tells it from all others
    pub process: u64,
    /// milliseconds since 1970 when it began to publish
    pub since_ms: u64,
    /// as the process itself sees it; other containers may not
    pub pid: i32,
    /// 1: on the simulated driver, no GPU is involved
    pub simulated: i32,
    pub driver_version: i32,
    pub device_count: u32,
    pub lease_count: u32,
    /// leases beyond the 512, which aren't in gcx_published_lease_list
    pub unlisted_count: u32,
    /// 0
    pub reserved: [u32; 8usize],
    /// any bytes: escape them where they are shown
    pub name: [::std::os::raw::c_char; 64usize],
}
#[test]
fn bindgen_test_layout_gcx_published_process() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_published_process> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_published_process>(),
        136usize,
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
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_published_process::reserved",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        72usize,
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
    /** The processes that publish, this one among them if it does. capacity is the room in processes,
 which may be NULL if that is 0. Opens no driver. Errors: GCX_ERROR_INVALID_VALUE capacity is too
 small: *count then holds what is needed; GCX_ERROR_NOT_PERMITTED and GCX_ERROR_OPERATING_SYSTEM
 as of gcx_publish_start, but if the user's own folder is missing the list is empty.*/
    pub fn gcx_published_process_list(
        processes: *mut gcx_published_process,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
/// A lease of a process that publishes. Grows at the end of reserved, never in size.
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
    /// the ordinal in that process; device_uuid tells the same one in others
    pub device: i32,
    pub family: gcx_sm_family,
    /// GCX_LEASE_
    pub flags: u32,
    /// 1: it has nothing yet, and waits in gcx_lease_acquire
    pub waits: u32,
    /// of one that waits: those it asked for, or GCX_REST
    pub sm_count: u32,
    pub exclusive_sm_count: u32,
    pub stream_count: u32,
    pub device_sm_count: u32,
    /// of the family, on that device
    pub atom_count: u32,
    /// SMs of each atom but the last
    pub atom_sm_count: u32,
    /// SMs of the last atom
    pub last_atom_sm_count: u32,
    /// 0
    pub reserved: [u32; 11usize],
    /// atom n is its alone: bit n % 64 of word n / 64
    pub exclusive_atoms: [u64; 8usize],
    /// the same of those that others may have too
    pub shared_atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them where they are shown
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
    /** The leases of the processes that publish: of each process those that hold SMs in the order in
 which they were acquired, then those that wait, the first first. Two exclusive leases of one
 process never have an atom in common. Across processes there are no such promises: leases are a
 process's own, and reservations (below) are what processes agree on. capacity is the room in
 leases, which may be NULL if that is 0. Opens no driver. Errors: those of
 gcx_published_process_list.*/
    pub fn gcx_published_lease_list(
        leases: *mut gcx_published_lease,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct gcx_reservation_s {
    _unused: [u8; 0],
}
/** ------------------------------------------------------------------------------------------
 Reservations: SMs that no other process has

 A lease is a process's own; a reservation is agreed on by the processes of a host. No two live
 reservations of a device have an SM in common, as long as all take theirs in the same folder.
 Programs that take none are not bound by it. There is no daemon, and nobody needs to be root.

 What it isolates. Under MPS, the same atoms in two processes are the same SMs, and partitions of
 two processes run side by side (measured on an H200). Without MPS, processes take
 turns on the whole device, and partitions between them change nothing: a reservation is given all
 the same, gcx_mps_get_info and the lists tell of it, and the log has a warning.

 How long it lasts. A reservation is a file that its processes keep locked; the kernel drops a
 lock however its process ends, SIGKILL included. A reservation ends when its last process has
 destroyed it or has ended; that it closes descriptors which it knows nothing of ends none, where
 files can be mapped. A forked child has no part in it, and what exec starts neither, unless it
 joins or GCX_RESERVATION_INHERIT is set. Work that still runs when a reservation is destroyed
 goes on, on SMs that somebody else may have by then: so destroy contexts first, or wait for them.

 Who is first. As with leases: those who wait are served in the order in which they came, per
   device, and nobody who came later is given what is free. Who was killed while waiting is
   skipped. A process that is stopped (SIGSTOP) as the first that waits holds up the others.

 Which SMs. As a lease's: atoms of one family, those of a split's group of what is free. Between
 reservations of two families on one device overlap is known where gcx_device_map_sms has read
 both in the taking process, without MPS; else a reservation of another family has the whole
 device. The same is true of one whose process has another version of the driver, sees other
 atoms, or has less than 100 in CUDA_MPS_ACTIVE_THREAD_PERCENTAGE where it matters: the daemon
 alone knows which SMs such a process has. Devices are told apart by UUID (of MIG devices their
 own), never by ordinal; simulated ones are never taken for real ones.

 Where. In gcx_reservation_params.folder, or if that is NULL in GCX_RESERVATION_DIR of the
 environment, or if that isn't set in /dev/shm/gcx-UID, which gcx creates with mode 700. UID is
 the effective user: neither login sessions nor sudo's environment change the folder. A folder
 that was named is either the user's own of mode 700, or a group's: setgid, no rights for others
 (mode 2770, or 3770 to keep members from removing each other's files), and only its members can
 open it. It is never made, must be on a local disk or in memory, and reservations in two folders
 know nothing of each other. Containers agree if they share the folder; process numbers and host
 names may differ. Members of a group can keep SMs from each other, and without the sticky bit of
 mode 3770 also remove each other's files, after which others are given those SMs.

 Inside gcx exec. The SMs of a gcx exec are a reservation, and what its programs request is a part
 of that reservation: within it, disjoint from other parts, of its family, in its folder, and with
 a queue of its own. For all others the reservation has its SMs, whatever parts of it there are.

 What lies there and can't be believed, but is kept locked by a live process, is an error that
 names the file: gcx never guesses which SMs it means. What nobody keeps locked is removed.
 ----------------------------------------------------------------------------------------*/
pub type gcx_reservation = *mut gcx_reservation_s;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_reservation_params {
    pub struct_size: u32,
    /// GCX_RESERVATION_
    pub flags: u32,
    /** GCX_SM_FAMILY_NONE: coscheduled, inside gcx exec the partition's; not
the structured family*/
    pub family: gcx_sm_family,
    /** SMs: so many will do if those asked for can't be had; 0: no less than
asked for, and of GCX_REST one atom*/
    pub min_sm_count: u32,
    /// milliseconds to wait for the SMs; 0: don't; GCX_FOREVER
    pub timeout_ms: u32,
    /// 0
    pub reserved: u32,
    /// gives the wait up from another thread; may be NULL
    pub cancel: gcx_cancel,
    /** for messages and lists, copied; NULL: none. Shorter than
GCX_MAX_LEASE_NAME*/
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
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        20usize,
        "Offset of field: gcx_reservation_params::reserved",
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
    /** Takes sm_count SMs of the device, or GCX_REST, from all processes that take theirs in the same
 folder. params may be NULL. Makes no context. The handle is the caller's, to be given to
 gcx_reservation_release. Waiting is a look every 20 ms at most, and no thread. timeout_ms bounds
 all waiting; but if other processes have the folder locked, which takes them less than a
 millisecond, the call waits for that for up to 500 ms even if timeout_ms is shorter. Errors:
   GCX_ERROR_ALREADY_ACQUIRED  others hold the SMs, or wait for them, and after timeout_ms still
       did; the message says who. Or others changed the folder all that time
   GCX_ERROR_NOT_PERMITTED     the wait was given up by gcx_cancel_signal; the folder is another
       user's, or too many may enter it
   GCX_ERROR_OPERATING_SYSTEM  the folder isn't there, the disk is full, the folder read-only; a
       file there can't be believed; a process stopped in the middle of a change;
       /dev/shm/gcx-UID was removed, and a process still has a reservation in it
   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION  the device has not so many SMs, whoever holds them;
       inside gcx exec, the partition has not, or is of another family
   GCX_ERROR_NOT_SUPPORTED     the max-cluster family on a device that has none; inside gcx exec,
       the driver divides the partition into no atoms of the device
   GCX_ERROR_NOT_FOUND         inside gcx exec, the partition's reservation has ended
   GCX_ERROR_INVALID_DEVICE    no such device
   GCX_ERROR_INVALID_VALUE     sm_count is 0; unknown flags, a family that has no reservations, a
 name or path that is too long, a path that is not absolute; min_sm_count is more than sm_count*/
    pub fn gcx_reservation_acquire(
        device: i32,
        sm_count: u32,
        params: *const gcx_reservation_params,
        reservation: *mut gcx_reservation,
    ) -> gcx_result;
}
extern "C" {
    /** Writes what another process joins the reservation by: text, to be given to it in its environment
 or on its command line. It is the path of the reservation's file, so that it works where that
 path leads to the same folder. capacity is the room in token, in bytes; GCX_MAX_RESERVATION_TOKEN
 is enough. Errors: GCX_ERROR_INVALID_VALUE capacity is too small.*/
    pub fn gcx_reservation_get_token(
        reservation: gcx_reservation,
        token: *mut ::std::os::raw::c_char,
        capacity: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Joins a reservation that another process, or this one, has: it lasts until all who joined have
 given it up. Opens no driver, and works in a forked child too. The handle is the caller's, to be
 given to gcx_reservation_release. Errors: GCX_ERROR_NOT_FOUND         the reservation has ended,
 or was never there GCX_ERROR_INVALID_VALUE     the token is none GCX_ERROR_ALREADY_ACQUIRED other
 processes changed the folder all the time for 5 s GCX_ERROR_NOT_PERMITTED,
 GCX_ERROR_OPERATING_SYSTEM  as of gcx_reservation_acquire*/
    pub fn gcx_reservation_join(
        token: *const ::std::os::raw::c_char,
        reservation: *mut gcx_reservation,
    ) -> gcx_result;
}
extern "C" {
    /** Gives the reservation up. If no other process joined it, and no lease was acquired in it that is
 still there, its SMs can be had by others at once. A forked child has none of its parent's
 handles.*/
    pub fn gcx_reservation_release(reservation: gcx_reservation) -> gcx_result;
}
/// the driver doesn't tell
pub const GCX_MPS_UNKNOWN: gcx_mps_state = gcx_mps_state(0);
pub const GCX_MPS_OFF: gcx_mps_state = gcx_mps_state(1);
pub const GCX_MPS_ON: gcx_mps_state = gcx_mps_state(2);
#[repr(transparent)]
/// Whether contexts of a process on a device are shared by way of MPS.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_mps_state(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_reservation_info {
    pub struct_size: u32,
    pub family: gcx_sm_family,
    /// GCX_RESERVATION_; of one that was joined 0
    pub flags: u32,
    /// SMs that it has
    pub sm_count: u32,
    /// SMs of the device
    pub device_sm_count: u32,
    /// 1: by gcx_reservation_join
    pub joined: i32,
    /// 1: of the simulated driver
    pub simulated: i32,
    /** 1: somebody removed the reservation's file, or moved its folder: others
may be given its SMs*/
    pub lost: i32,
    /// as the process saw it that took the reservation
    pub mps: gcx_mps_state,
    /// the same, as in gcx_mps_info
    pub mps_thread_percentage: f32,
    /// a random number, which tells it from all others
    pub id: u64,
    /// milliseconds since 1970 when it was taken
    pub since_ms: u64,
    /// of the family: it has atom n: bit n % 64 of word n / 64
    pub atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them where they are shown
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
    /// Fills *info. Opens no driver.
    pub fn gcx_reservation_get_info(
        reservation: gcx_reservation,
        info: *mut gcx_reservation_info,
    ) -> gcx_result;
}
extern "C" {
    /** The reservation's SMs as a resource of this process, to be split and to make contexts of. Opens
 the driver. Errors: GCX_ERROR_NO_DEVICE no device of this process has the reservation's UUID;
 GCX_ERROR_INVALID_RESOURCE_CONFIGURATION this process sees other atoms than the one that took the
 reservation, or is limited by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, and that one was not.*/
    pub fn gcx_reservation_get_resource(
        reservation: gcx_reservation,
        resource: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** gcx_lease_acquire out of the reservation's SMs alone, and so are the lease's later changes:
 leases of a reservation change only together with leases of the same reservation. params->family
 is the reservation's or GCX_SM_FAMILY_NONE. The lease keeps the reservation, after
 gcx_reservation_release too. A lease that was acquired without a reservation may have the same
 SMs as a reservation, but never as another lease. Errors: those of gcx_lease_acquire and of
 gcx_reservation_get_resource; GCX_ERROR_INVALID_VALUE another family.*/
    pub fn gcx_reservation_acquire_lease(
        reservation: gcx_reservation,
        sm_count: u32,
        params: *const gcx_lease_params,
        lease: *mut gcx_lease,
    ) -> gcx_result;
}
/** A reservation of any process, or one that waits for it. Grows at the end of reserved, never in
 size.*/
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_live_reservation {
    /// a random number, which tells it from all others
    pub id: u64,
    /// milliseconds since 1970 when it was taken, or the wait began
    pub since_ms: u64,
    /// of one that waits: when it gives up; 0: never
    pub until_ms: u64,
    /** the process that took it while that keeps it, then another one that does; 0:
none of those is visible here, as in another container*/
    pub pid: i32,
    /// the number of the user whose file it is
    pub user: u32,
    /// 1: of the simulated driver
    pub simulated: i32,
    /// 1: it has nothing yet, and waits in gcx_reservation_acquire
    pub waits: u32,
    pub family: gcx_sm_family,
    /// of one that waits: those it asked for, or GCX_REST
    pub sm_count: u32,
    pub device_sm_count: u32,
    /// of the family, on that device
    pub atom_count: u32,
    /// SMs of each atom but the last
    pub atom_sm_count: u32,
    /// SMs of the last atom
    pub last_atom_sm_count: u32,
    /// as the process saw it that took the reservation
    pub mps: gcx_mps_state,
    /// the same, as in gcx_mps_info
    pub mps_thread_percentage: f32,
    /** the id of the reservation that it is a part of, which may have
ended; 0: of the device*/
    pub parent: u64,
    /// 0
    pub reserved: [u32; 6usize],
    /// it has atom n: bit n % 64 of word n / 64
    pub atoms: [u64; 8usize],
    pub device_uuid: [u8; 16usize],
    /// any bytes: escape them where they are shown
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
    /** The reservations of a folder, by device, of each those that have SMs in the order in which they
 were taken, then those that wait, the first first. folder: NULL as in gcx_reservation_params.
 capacity is the room in reservations, which may be NULL if that is 0. Opens no driver and needs
 no GPU. What can't be believed is left out, with a warning in the log. What the dead left is
 removed, where this process may. Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count
 then holds what is needed; GCX_ERROR_NOT_PERMITTED and GCX_ERROR_OPERATING_SYSTEM as of
 gcx_reservation_acquire, but that the user's own folder, if it is missing, has no reservations.*/
    pub fn gcx_reservation_list(
        folder: *const ::std::os::raw::c_char,
        reservations: *mut gcx_live_reservation,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct gcx_mps_info {
    pub struct_size: u32,
    /// what the driver says of contexts of this process on the device
    pub state: gcx_mps_state,
    /** CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of the environment, which limits
this process under MPS: more than 0, at most 100; 0: it isn't set,
or holds something else. The daemon's own default is not seen*/
    pub thread_percentage: f32,
    pub reserved: u32,
}
#[test]
fn bindgen_test_layout_gcx_mps_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_mps_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(::core::mem::size_of::<gcx_mps_info>(), 16usize, "Size of gcx_mps_info");
    assert_eq!(
        ::core::mem::align_of::<gcx_mps_info>(),
        4usize,
        "Alignment of gcx_mps_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_mps_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).state) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_mps_info::state",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).thread_percentage) as usize - ptr as usize
        },
        8usize,
        "Offset of field: gcx_mps_info::thread_percentage",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize },
        12usize,
        "Offset of field: gcx_mps_info::reserved",
    );
}
impl Default for gcx_mps_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Fills *info: by the driver's attribute CU_DEVICE_ATTRIBUTE_MPS_ENABLED, of which nobody has
 measured yet whether it tells the truth. Makes no context.
 Errors: GCX_ERROR_INVALID_DEVICE no such device.*/
    pub fn gcx_mps_get_info(device: i32, info: *mut gcx_mps_info) -> gcx_result;
}
/// CUDA's own number, 8: the variable isn't set
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
    /** that CUDA has or, if it hasn't started, would have; 0: unknown, the
variable holds something else than 1 to GCX_MAX_CONNECTIONS*/
    pub connections: u32,
    pub source: gcx_queue_source,
    /// 1: CUDA has started in the process, and the number stays
    pub started: i32,
    /** 0: CUDA had started before gcx looked, and the process had set the variable
anew, before that or after: connections is what it holds now*/
    pub certain: i32,
    /** 1: there is one connection, with which all partitions wait as soon as one
stream does. Making a context then logs a GCX_LOG_WARNING, once*/
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
    /** Fills *info. Opens no driver: before one is open it looks at the one that would be opened and at
 libcuda.so.1, if they are loaded; CUDA has started if somebody has called cuInit there.*/
    pub fn gcx_queue_get_info(info: *mut gcx_queue_info) -> gcx_result;
}
extern "C" {
    /** Asks for connections, 1 to GCX_MAX_CONNECTIONS, before CUDA starts: sets
 CUDA_DEVICE_MAX_CONNECTIONS in the process's environment, unless it holds as many or more. To be
 called at the beginning of a program, before other threads run, since nothing may read the
 environment meanwhile; processes that it starts inherit the number. Opens no driver. Succeeds
 also once CUDA has started with as many or more.
 CUDA reads the variable in cuInit, and not later (measured on 13.0).
 Errors: GCX_ERROR_NOT_PERMITTED CUDA has started with fewer, or certain is 0: it is too late;
 GCX_ERROR_INVALID_VALUE connections is 0 or more than GCX_MAX_CONNECTIONS.*/
    pub fn gcx_queue_request_connections(connections: u32) -> gcx_result;
}
/** ------------------------------------------------------------------------------------------
 Graphs

 A CUDA graph keeps the SMs it was captured on, whatever stream launches it. A gcx_graph takes
 one that was captured once, by whoever and wherever, and launches it on the SMs of any stream:
 it makes one executable for each set of SMs, at the first launch there or ahead of time, and
 keeps it. Nothing is captured again.

 What moves. Kernels of libraries (cudart, cuBLAS, cuLibrary) and of modules (Triton), with their
   arguments and attributes (clusters, cooperative, priority, programmatic launch), copies,
   memsets, host functions, events, external semaphores, empty nodes and child graphs. What was
   moved is read back and compared: a driver that does it otherwise is an error, never a wrong
   graph. Nodes that allocate or free memory and conditional nodes can't be moved, since CUDA
   copies no graph that has them, nor can batched memory operations and nodes that device code
   updates.

 Nodes have numbers, their place in gcx_graph_get_nodes: the order of cuGraphGetNodes, each child
   graph's nodes right behind the node that stands for it.

 Parts. A graph that forks over several partitions has several parts, each of which can have SMs
   of its own: one for each context that its kernels were captured in, numbered as they first
   appear, unless gcx_graph_set_part says otherwise. Copies and memsets, whose context CUDA does
   not tell, are of the part of the kernel nearest before them, or else after them.

 Grids. A kernel whose blocks wait for each other needs all of them on the SMs at once: at most
   blocks_per_sm of gcx_graph_node, times the partition's SMs. A cooperative launch that is larger
   is refused when the executable is made. One with a barrier of its own, which CUDA knows nothing
   of, is not, and hangs.

 Threads. One graph is launched from any number of threads. Launches of one executable run one
   after the other, as CUDA orders them; those of different sets of SMs run side by side, on the
   same memory. A graph may be changed while it is launched: each launch runs the graph as it was
   before a change or after it.
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
    /** that are kept, the last used; 0: 16. Each holds its contexts, and
some device memory: 0.12 MiB with 3 nodes on an H200*/
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
    /** Takes a copy of a captured graph, a CUgraph or cudaGraph_t. captured stays the caller's, can be
 destroyed or changed at once, and its own executables run on. params may be NULL. Reads each
 node once. The handle is the caller's, to be given to gcx_graph_destroy. The green contexts of
 gcx that kernels were captured in must still exist; they stay as long as the graph does.
 Errors: GCX_ERROR_NOT_SUPPORTED a node can't be moved; the message has its kind and number;
 GCX_ERROR_INVALID_RESOURCE_CONFIGURATION kernels of two devices, or of more than
 GCX_MAX_GRAPH_PARTS contexts; GCX_ERROR_INVALID_CONTEXT the graph has no kernels, and no context
 is current that would tell its device; GCX_ERROR_CONTEXT_IS_DESTROYED a context that kernels were
 captured in was destroyed; GCX_ERROR_INVALID_VALUE unknown flags.*/
    pub fn gcx_graph_create(
        captured: *mut CUgraph_st,
        params: *const gcx_graph_params,
        graph: *mut gcx_graph,
    ) -> gcx_result;
}
extern "C" {
    /// Gives the graph and its executables up. Work in flight finishes. Never waits for it.
    pub fn gcx_graph_destroy(graph: gcx_graph) -> gcx_result;
}
extern "C" {
    /** Launches the graph in the stream, all parts on the SMs that the stream has now. Of a lease's
 stream: a change of the lease waits for calls of this that are under way, so that the work is of
 the SMs before or after it, and is waited for as all work of the stream is. In a stream of the
 primary context, made by someone else, the graph runs as it was captured; in one of another
 context, where that is.
 The first launch on a set of SMs makes the executable, see gcx_graph_prepare; later ones cost
 what cuGraphLaunch does.
 Errors: those of gcx_graph_prepare; GCX_ERROR_INVALID_DEVICE the stream is of another device;
 GCX_ERROR_CONTEXT_IS_DESTROYED the graph was captured in a context that someone else made and has
 destroyed, and is to run there; GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED the stream is capturing a
 graph: add the captured graph to that as a child node instead.*/
    pub fn gcx_graph_launch(graph: gcx_graph, stream: gcx_stream) -> gcx_result;
}
extern "C" {
    /** The same of a graph with several parts: part i runs on the SMs of streams[i], for
 streams[0 .. count - 1], and count is the number of parts. It is launched in streams[0]; it
 runs behind what all the streams were given before, and what they are given afterwards runs
 behind it. Parts with no order between them run side by side.*/
    pub fn gcx_graph_launch_parts(
        graph: gcx_graph,
        streams: *const gcx_stream,
        count: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Makes the executable for resources[0 .. count - 1] ahead of time, and their contexts if there are
 none: one SM resource for all parts, or one for each. flags is 0 or GCX_PREPARE_FOR_LEASES,
 of launches in streams of leases. For a thread of the caller's. Costs what
 cuGraphInstantiate does and a little more, 1.3 to 2 us a node, and holds up no launches of
 executables that there are. A no-op if it is kept already. It keeps its contexts, as streams do.
 Errors: those of gcx_context_create; GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE a cooperative grid is
 larger than the SMs hold; the message has the kernel's name, its grid and the largest;
 GCX_ERROR_INVALID_VALUE count is neither 1 nor the number of parts; unknown flags;
 GCX_ERROR_INVALID_DEVICE a resource of another device; GCX_ERROR_NOT_SUPPORTED the driver did
 not move a node as it was told, the message says which.*/
    pub fn gcx_graph_prepare(
        graph: gcx_graph,
        resources: *const gcx_resource,
        count: u32,
        flags: u32,
    ) -> gcx_result;
}
extern "C" {
    /** Says which part nodes[0 .. count - 1] are of: one of those that there are, or the next. A child
 graph's node stands for all of its nodes. Executables for several sets of SMs are given up. If
 count is 0, nothing changes. A part that has lost all of its nodes stays, and runs nothing.
 Errors: GCX_ERROR_INVALID_VALUE no such node; part is more than the number of parts, or
 GCX_MAX_GRAPH_PARTS; part is the next, and count is 0.*/
    pub fn gcx_graph_set_part(
        graph: gcx_graph,
        nodes: *const u32,
        count: u32,
        part: u32,
    ) -> gcx_result;
}
/// What a kernel is launched with.
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
    /** each at its place (cuFuncGetParamInfo), as in a C struct; NULL: those
that it has. Copied*/
    pub arguments: *const ::core::ffi::c_void,
    /// at least to the end of the last
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
    /** Gives a kernel node other parameters, in the graph and all executables, or nowhere. Launches
 from then on have them, work in flight has the former. Takes about a microsecond for each
 executable where the driver changes executables, which it doesn't in child graphs; else the
 executables are made anew.
 Errors: GCX_ERROR_INVALID_VALUE no such node, or not a kernel's; arguments that are too short;
 what the driver says of the parameters; those of gcx_graph_prepare.*/
    pub fn gcx_graph_set_kernel(
        graph: gcx_graph,
        node: u32,
        params: *const gcx_kernel_params,
    ) -> gcx_result;
}
extern "C" {
    /** Takes over all parameters of another captured graph with the same nodes and order, as of the same
 code captured again, in all executables or nowhere. Parts stay. Kernels' parameters alone cost
 a microsecond each and executable; whatever else differs has the executables made anew.
 captured stays the caller's.
 Errors: those of gcx_graph_create; GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE the nodes or their order
 differ, the message says where.*/
    pub fn gcx_graph_update(graph: gcx_graph, captured: *mut CUgraph_st) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_info {
    pub struct_size: u32,
    pub device: i32,
    /// GCX_GRAPH_
    pub flags: u32,
    /// those of child graphs too
    pub node_count: u32,
    /// of these, kernels
    pub kernel_count: u32,
    pub part_count: u32,
    /// that are kept now
    pub executables: u32,
    pub max_executables: u32,
    /// since it was created
    pub launches: u64,
    /// executables made since then
    pub made: u64,
    /// of these, given up for max_executables
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
        unsafe { ::core::ptr::addr_of!((*ptr).made) as usize - ptr as usize },
        40usize,
        "Offset of field: gcx_graph_info::made",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).evicted) as usize - ptr as usize },
        48usize,
        "Offset of field: gcx_graph_info::evicted",
    );
}
extern "C" {
    /// Fills *info.
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
/// A node. Grows at the end of reserved, never in size.
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_graph_node {
    pub kind: gcx_graph_node_kind,
    /// number of the node whose child graph it is in; GCX_NO_NODE: none
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
    /** that an SM holds at once, without others'. The largest grid whose
blocks may wait for each other is this times the partition's SMs*/
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
    /** The nodes in nodes[0 .. *count - 1]. capacity is the room in nodes, which may be NULL if that is
 0. Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed.*/
    pub fn gcx_graph_get_nodes(
        graph: gcx_graph,
        nodes: *mut gcx_graph_node,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** The SMs that the stream's kernels run on, ascending, in sm_ids[0 .. *count - 1]. capacity is the
 room in sm_ids, GCX_MAX_SMS suffices always. Waits for the stream. Probes again while fewer SMs
 than promised were seen, a few times: other work may have held them. More SMs than promised are
 reported as seen, and a warning logged: see gcx_device_get_shared_sms.
 Errors: GCX_ERROR_INVALID_VALUE capacity is too small: *count then holds what is needed;
 GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED the stream is capturing a graph; GCX_ERROR_NOT_READY other
 threads changed the stream's lease all the time.*/
    pub fn gcx_stream_probe_sms(
        stream: gcx_stream,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** Reads which SMs each atom of a family holds, from a few contexts that are made for a moment and
 not kept: 4 for an H100's coscheduled atoms, 7 for its fine ones, each with the cost of a first
 context (above). Once a process and family, also if several threads ask at once; later calls
 return at once. For
 gcx_resource_get_sm_ids and for overlaps across families.
 Errors: GCX_ERROR_INVALID_VALUE family isn't coscheduled, fine or max-cluster;
 GCX_ERROR_NOT_SUPPORTED under MPS, where the numbers are virtual.*/
    pub fn gcx_device_map_sms(device: i32, family: gcx_sm_family) -> gcx_result;
}
extern "C" {
    /** Finds the SMs that all partitions of this process share because a module with dynamic parallelism
 is loaded, in sm_ids[0 .. *count - 1], ascending; capacity as above. From then on kernels of
 every green context of the process also run there, those made before included (compute
 capability 9.x; measured on an H200: 2 SMs of the remainder atom, 124 and 125). Other
 capabilities have none.

 Returns what gcx_stream_probe_sms has recognised in two disjoint partitions; if that is nothing,
 makes contexts of two atoms, with the cost of a first one each, keeps them and probes both. Once
 found, the SMs stay known, and later calls return at once. While none are found *count is 0:
 modules load lazily, so call this after a kernel of the module was launched. Thread-safe.

 Errors:
   GCX_ERROR_INVALID_VALUE  capacity is too small: *count then holds what is needed
   GCX_ERROR_NOT_SUPPORTED  compute capability 9.x under MPS, where the numbers are virtual*/
    pub fn gcx_device_get_shared_sms(
        device: i32,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
/// What gcx_verify saw of one stream. Grows at the end of reserved, never in size.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_verified_stream {
    /// SMs that it was promised: gcx_stream_info.sm_count
    pub sm_count: u32,
    /// SMs that its kernels ran on
    pub seen_count: u32,
    /// 1: none of the problems is of this stream
    pub ok: u32,
    /// 1: it follows a shared lease, whose SMs other shared leases may have
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
    /// SMs of gcx_device_get_shared_sms that were seen beside others
    pub shared_by_all: [u64; 16usize],
    /// in words, a line for each; the last says how many didn't fit
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
    /** Shows which SMs streams[0 .. count - 1] really run on, and whether that is what was promised:
 probes each stream as gcx_stream_probe_sms does, one after the other, and compares.
 results[0 .. count - 1] receives what was seen of each, in their order; it may be NULL. It is a
 problem if a stream's kernels ran on more or fewer SMs than promised, if two streams share SMs,
 unless both follow shared leases, and if all partitions share SMs because a module with dynamic
 parallelism is loaded. The problems call the streams A, B, and so on. A problem is no error: the
 result is GCX_SUCCESS, and verification->ok is 0. Simulated drivers prove nothing about a GPU.
 Errors: GCX_ERROR_INVALID_VALUE count is 0, or the streams are of several devices; those of
 gcx_stream_probe_sms.*/
    pub fn gcx_verify(
        streams: *const gcx_stream,
        count: u32,
        results: *mut gcx_verified_stream,
        verification: *mut gcx_verification,
    ) -> gcx_result;
}
extern "C" {
    /** The SMs that the resource holds, ascending, as gcx_device_map_sms found them. capacity as
 above. None are of a resource of 0 SMs. Errors: GCX_ERROR_NOT_READY the family isn't mapped;
 GCX_ERROR_NOT_SUPPORTED it is of a structured split, which can't be mapped: probe a stream of it;
 GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource; GCX_ERROR_INVALID_VALUE capacity is too
 small: *count then holds what is needed.*/
    pub fn gcx_resource_get_sm_ids(
        resource: *const gcx_resource,
        sm_ids: *mut u32,
        capacity: u32,
        count: *mut u32,
    ) -> gcx_result;
}
extern "C" {
    /** The atom at an index, 0 to atom_count - 1 of gcx_resource_get_info, as a resource of its own.
 Errors: GCX_ERROR_INVALID_VALUE no such atom; GCX_ERROR_INVALID_RESOURCE_TYPE not an SM resource.*/
    pub fn gcx_resource_get_atom(
        resource: *const gcx_resource,
        index: u32,
        atom: *mut gcx_resource,
    ) -> gcx_result;
}
extern "C" {
    /** Chooses the driver library, before anything opened another. driver is
   NULL or ""     the one that is open; else the environment's GCX_DRIVER, if that is set, read as
                  below; else libcuda.so.1
   "sim:SPEC"     the simulated driver, e.g. "sim:h100@13.0", "sim:2xh100@12.4" or
                  "sim:FILE" with what `gcx info --record` wrote
   anything else  a path or name for dlopen
 and opens it, unless it is open already. Calling it is optional: the first function that needs
 the driver opens it as with NULL. Nothing falls back in silence: without a driver each call says
 so, and the next tries again.
 Errors: GCX_ERROR_ALREADY_ACQUIRED another driver is open, for the rest of the process; those of
 opening (top).*/
    pub fn gcx_driver_open(driver: *const ::std::os::raw::c_char) -> gcx_result;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_driver_info {
    pub struct_size: u32,
    /// of the driver, as cuDriverGetVersion gives it: 13000 is CUDA 13.0
    pub version: i32,
    /// CUDA_VERSION of the cuda.h that gcx was built with
    pub header_version: i32,
    /// 1: no GPU is involved
    pub simulated: i32,
    /// what was opened
    pub library: [::std::os::raw::c_char; 256usize],
}
#[test]
fn bindgen_test_layout_gcx_driver_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_driver_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_driver_info>(),
        272usize,
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
    /// Fills *info. Errors: those of opening.
    pub fn gcx_driver_get_info(info: *mut gcx_driver_info) -> gcx_result;
}
/// 12.4: everything that isn't named here
pub const GCX_CAPABILITY_GREEN_CONTEXTS: gcx_capability = gcx_capability(0);
/** 12.5: the driver makes a stream from a green context. gcx
makes streams on every driver; before 12.5 by making
the context current for a moment*/
pub const GCX_CAPABILITY_STREAM_CREATE: gcx_capability = gcx_capability(1);
/// 13.0: cuGreenCtxGetId
pub const GCX_CAPABILITY_CONTEXT_ID: gcx_capability = gcx_capability(2);
/** 13.0: the driver tells minimum and alignment of an SM
resource. Before, gcx derives them*/
pub const GCX_CAPABILITY_RESOURCE_DETAILS: gcx_capability = gcx_capability(3);
/// 13.1: coscheduled counts in gcx_sm_request, backfill
pub const GCX_CAPABILITY_STRUCTURED_SPLIT: gcx_capability = gcx_capability(4);
/// 13.1: workqueue resources
pub const GCX_CAPABILITY_WORKQUEUES: gcx_capability = gcx_capability(5);
/** 13.1: the driver tells a stream's resources. gcx tells
those of its own streams on every driver*/
pub const GCX_CAPABILITY_STREAM_RESOURCE: gcx_capability = gcx_capability(6);
/// 13.4: locality domains in gcx_sm_request
pub const GCX_CAPABILITY_LOCALITY_DOMAINS: gcx_capability = gcx_capability(7);
pub const GCX_CAPABILITY_COUNT: gcx_capability = gcx_capability(8);
#[repr(transparent)]
/** What a driver can do. Where it makes no streams of green contexts, has no ids for them or tells
 no details of resources, gcx has a way of its own or does without. What needs another one that
 is lacking answers GCX_ERROR_NOT_SUPPORTED.*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_capability(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_capability_info {
    pub struct_size: u32,
    /// 1: the open driver has it
    pub available: i32,
    /// of the driver: 13010 is CUDA 13.1
    pub required_version: i32,
    /// "structured split"; lives as long as the library
    pub name: *const ::std::os::raw::c_char,
}
#[test]
fn bindgen_test_layout_gcx_capability_info() {
    const UNINIT: ::core::mem::MaybeUninit<gcx_capability_info> = ::core::mem::MaybeUninit::uninit();
    let ptr = UNINIT.as_ptr();
    assert_eq!(
        ::core::mem::size_of::<gcx_capability_info>(),
        24usize,
        "Size of gcx_capability_info",
    );
    assert_eq!(
        ::core::mem::align_of::<gcx_capability_info>(),
        8usize,
        "Alignment of gcx_capability_info",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize },
        0usize,
        "Offset of field: gcx_capability_info::struct_size",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).available) as usize - ptr as usize },
        4usize,
        "Offset of field: gcx_capability_info::available",
    );
    assert_eq!(
        unsafe {
            ::core::ptr::addr_of!((*ptr).required_version) as usize - ptr as usize
        },
        8usize,
        "Offset of field: gcx_capability_info::required_version",
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).name) as usize - ptr as usize },
        16usize,
        "Offset of field: gcx_capability_info::name",
    );
}
impl Default for gcx_capability_info {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    /** Fills *info. Errors: GCX_ERROR_INVALID_VALUE no such capability; those of opening. A driver
 that is too old for green contexts is one of the latter.*/
    pub fn gcx_capability_get_info(
        capability: gcx_capability,
        info: *mut gcx_capability_info,
    ) -> gcx_result;
}
extern "C" {
    /** The path of the simulated driver that "sim:" opens, for programs that start others on it. The
 string belongs to the thread and is valid until its next call of this. NULL if it isn't
 installed; gcx_last_error_message() then says where it was looked for. Opens no driver.*/
    pub fn gcx_simulator_path() -> *const ::std::os::raw::c_char;
}
extern "C" {
    /** Puts a library before libcuda in this process that answers as above, for every library that
 opens libcuda.so.1 from now on and for all time. It must come before anything loads libcuda.so.1:
 before the first call of gcx that opens the driver, before cudart's first call, from Python
 before torch, cupy or jax is imported. Code that opens libcuda by a path gets it as it is.
 Launches and copies don't pass through that library; the attribute above and cuGetProcAddress do.
 Doing it twice does it once. To find libcuda's path it may start a child process for a moment.
 Errors: GCX_ERROR_NOT_PERMITTED libcuda.so.1 is loaded already; GCX_ERROR_FILE_NOT_FOUND
 libgcx-counts.so, or the simulated driver that GCX_DRIVER names, isn't installed;
 GCX_ERROR_SHARED_OBJECT_INIT_FAILED there is no driver library, or it can't be loaded;
 GCX_ERROR_OPERATING_SYSTEM no file can be made.*/
    pub fn gcx_driver_report_partition_counts() -> gcx_result;
}
extern "C" {
    /** *reporting is 1 once gcx_driver_report_partition_counts has succeeded in this process, else 0.
 Opens no driver.*/
    pub fn gcx_driver_reports_partition_counts(reporting: *mut i32) -> gcx_result;
}
extern "C" {
    /** The version of the library that runs, as GCX_VERSION is made: 10000 * major + 100 * minor +
 patch. Compare with GCX_VERSION to tell a library older than the header. Opens no driver and
 can't fail.*/
    pub fn gcx_version() -> u32;
}
extern "C" {
    /** "GCX_ERROR_INVALID_VALUE" for GCX_ERROR_INVALID_VALUE; "GCX_ERROR_UNRECOGNIZED" for a number that
 this version has no name for. The string lives as long as the library. Opens no driver.*/
    pub fn gcx_result_name(result: gcx_result) -> *const ::std::os::raw::c_char;
}
extern "C" {
    /// What the result means in general, in one sentence. Lifetime as above.
    pub fn gcx_result_string(result: gcx_result) -> *const ::std::os::raw::c_char;
}
extern "C" {
    /** What went wrong in the last gcx function that failed in the calling thread: what was wrong,
 the values, what would work. Empty if none failed. The string belongs to the thread and is valid
 until its next gcx function fails; success leaves it alone. Opens no driver.*/
    pub fn gcx_last_error_message() -> *const ::std::os::raw::c_char;
}
pub const GCX_LOG_NONE: gcx_log_level = gcx_log_level(0);
/// something was lost or left behind
pub const GCX_LOG_ERROR: gcx_log_level = gcx_log_level(1);
/// it works, but likely not as meant
pub const GCX_LOG_WARNING: gcx_log_level = gcx_log_level(2);
/// which driver was opened, contexts made and given back
pub const GCX_LOG_INFO: gcx_log_level = gcx_log_level(3);
/// every failed call and its message
pub const GCX_LOG_DEBUG: gcx_log_level = gcx_log_level(4);
#[repr(transparent)]
/** ------------------------------------------------------------------------------------------
 Diagnostics
 ----------------------------------------------------------------------------------------*/
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct gcx_log_level(pub ::std::os::raw::c_uint);
/** message is valid during the call only. It is called at the end of the function that has something
 to say, in its thread, so from several threads at once. gcx holds no lock then, so that it may
 take the application's, also those under which other threads call gcx. It must not call gcx.*/
pub type gcx_log_callback = ::core::option::Option<
    unsafe extern "C" fn(
        level: gcx_log_level,
        message: *const ::std::os::raw::c_char,
        user_data: *mut ::core::ffi::c_void,
    ),
>;
extern "C" {
    /** Sends diagnostics up to level to callback. NULL goes back to the default: nothing is
 printed, unless the environment's GCX_LOG is error, warning, info or debug, which prints to
 standard error. When the call returns, the callback before is no longer running and won't be
 called again: it waits for that. So the one rule: call it with no lock held that the callback
 before takes. Other functions wait for no callback.
 Errors: GCX_ERROR_INVALID_VALUE level is none of gcx_log_level; GCX_ERROR_NOT_PERMITTED called
 from a log callback, whose end it would have to wait for.*/
    pub fn gcx_log_set_callback(
        level: gcx_log_level,
        callback: gcx_log_callback,
        user_data: *mut ::core::ffi::c_void,
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
/// The start of a gcx_mps_info: all zero but its size.
pub const GCX_MPS_INFO_INIT: gcx_mps_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_mps_info>()];
    let mut value: gcx_mps_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_mps_info>() as u32;
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
/// The start of a gcx_verification: all zero but its size.
pub const GCX_VERIFICATION_INIT: gcx_verification = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_verification>()];
    let mut value: gcx_verification = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_verification>() as u32;
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
/// The start of a gcx_capability_info: all zero but its size.
pub const GCX_CAPABILITY_INFO_INIT: gcx_capability_info = {
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<gcx_capability_info>()];
    let mut value: gcx_capability_info = unsafe { core::mem::transmute(zero) };
    value.struct_size = core::mem::size_of::<gcx_capability_info>() as u32;
    value
};
