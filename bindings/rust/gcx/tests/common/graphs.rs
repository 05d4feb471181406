//! Graphs as other libraries in the process capture them, of kernels that note the SMs they ran on.

use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;

use gcx::sys::{CUfunc_st, CUgraph_st};
use gcx::Stream;

use super::{begin_capture, driver_function, End, Launch, Pop, Push, Retain};

const PTX: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)
{ ret; }
\0";

const MOST_SMS: usize = 1024;
const PLACES: usize = 4;

type Pointer = *mut c_void;
type LoadLibrary = extern "C" fn(
    *mut Pointer,
    *const c_void,
    Pointer,
    Pointer,
    c_uint,
    Pointer,
    Pointer,
    c_uint,
) -> c_int;
type GetKernel = extern "C" fn(*mut Pointer, Pointer, *const c_void) -> c_int;
type GetFunction = extern "C" fn(*mut Pointer, Pointer) -> c_int;
type Allocate = extern "C" fn(*mut u64, usize) -> c_int;
type Set = extern "C" fn(u64, c_uint, usize) -> c_int;
type SetInStream = extern "C" fn(u64, c_uint, usize, Pointer) -> c_int;
type Copy = extern "C" fn(Pointer, u64, usize) -> c_int;
type Cooperative = extern "C" fn(
    Pointer,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Pointer,
    *mut Pointer,
) -> c_int;

/// Kernels of a library, and the places where they note their SMs. Stays as long as the process.
pub struct Probes {
    function: Pointer,
    counts: u64,
    primary: Pointer,
}

// SAFETY: the driver's functions may be called from any thread.
unsafe impl Sync for Probes {}

impl Probes {
    pub fn new() -> Self {
        gcx::devices().unwrap(); // it opens the driver
        let (mut primary, mut library) = (ptr::null_mut(), ptr::null_mut());
        let (mut kernel, mut function, mut counts) = (ptr::null_mut(), ptr::null_mut(), 0);
        let none = ptr::null_mut();
        // SAFETY: the types are those of cuda.h; the texts end with a zero byte.
        unsafe {
            let retain: Retain = driver_function("cuDevicePrimaryCtxRetain");
            let push: Push = driver_function("cuCtxPushCurrent_v2");
            let load: LoadLibrary = driver_function("cuLibraryLoadData");
            let get_kernel: GetKernel = driver_function("cuLibraryGetKernel");
            let get_function: GetFunction = driver_function("cuKernelGetFunction");
            let allocate: Allocate = driver_function("cuMemAlloc_v2");
            let set: Set = driver_function("cuMemsetD32_v2");
            let pop: Pop = driver_function("cuCtxPopCurrent_v2");
            assert_eq!(retain(&mut primary, 0), 0);
            assert_eq!(push(primary), 0);
            assert_eq!(load(&mut library, PTX.as_ptr().cast(), none, none, 0, none, none, 0), 0);
            assert_eq!(get_kernel(&mut kernel, library, b"gcx_probe\0".as_ptr().cast()), 0);
            assert_eq!(get_function(&mut function, kernel), 0);
            assert_eq!(allocate(&mut counts, PLACES * MOST_SMS * 4), 0);
            assert_eq!(set(counts, 0, PLACES * MOST_SMS), 0);
            assert_eq!(pop(&mut primary), 0);
        }
        Probes { function, counts, primary }
    }

    pub fn function(&self) -> *mut CUfunc_st {
        self.function.cast()
    }

    /// The kernel's arguments for a place, as in a C struct.
    pub fn arguments(&self, place: usize) -> Vec<u8> {
        let mut bytes = self.at(place).to_ne_bytes().to_vec();
        bytes.extend(u32::try_from(MOST_SMS).unwrap().to_ne_bytes());
        bytes.extend(1000u32.to_ne_bytes());
        bytes
    }

    fn at(&self, place: usize) -> u64 {
        assert!(place < PLACES);
        self.counts + (place * MOST_SMS * 4) as u64
    }

    /// A kernel that fills the stream's SMs and notes them in a place.
    pub fn launch(&self, stream: &Stream, place: usize) {
        self.launched(stream, place, |arguments, native| {
            // SAFETY: the type is that of cuda.h.
            let launch: Launch = unsafe { driver_function("cuLaunchKernel") };
            launch(self.function, 1024, 1, 1, 64, 1, 1, 0, native, arguments, ptr::null_mut())
        });
    }

    /// The same as a cooperative launch of so many blocks.
    pub fn launch_cooperative(&self, stream: &Stream, place: usize, blocks: u32) {
        self.launched(stream, place, |arguments, native| {
            // SAFETY: the type is that of cuda.h.
            let launch: Cooperative = unsafe { driver_function("cuLaunchCooperativeKernel") };
            launch(self.function, blocks, 1, 1, 64, 1, 1, 0, native, arguments)
        });
    }

    fn launched(
        &self,
        stream: &Stream,
        place: usize,
        launch: impl FnOnce(*mut Pointer, Pointer) -> c_int,
    ) {
        let (mut counts, mut most, mut nanoseconds) =
            (self.at(place), u32::try_from(MOST_SMS).unwrap(), 1000u32);
        let mut arguments: [Pointer; 3] = [
            ptr::addr_of_mut!(counts).cast(),
            ptr::addr_of_mut!(most).cast(),
            ptr::addr_of_mut!(nanoseconds).cast(),
        ];
        assert_eq!(launch(arguments.as_mut_ptr(), stream.native().unwrap().cast()), 0);
    }

    /// A memset of a place.
    pub fn clear(&self, stream: &Stream, place: usize) {
        // SAFETY: the type is that of cuda.h.
        let set: SetInStream = unsafe { driver_function("cuMemsetD32Async") };
        assert_eq!(set(self.at(place), 0, MOST_SMS, stream.native().unwrap().cast()), 0);
    }

    /// The SMs that were noted in a place since the last time.
    pub fn take(&self, place: usize) -> Vec<u32> {
        let mut counts = vec![0u32; MOST_SMS];
        let mut popped = ptr::null_mut();
        // SAFETY: the types are those of cuda.h; the vector has room.
        unsafe {
            let push: Push = driver_function("cuCtxPushCurrent_v2");
            let synchronize: extern "C" fn() -> c_int = driver_function("cuCtxSynchronize");
            let copy: Copy = driver_function("cuMemcpyDtoH_v2");
            let set: Set = driver_function("cuMemsetD32_v2");
            let pop: Pop = driver_function("cuCtxPopCurrent_v2");
            assert_eq!(push(self.primary), 0);
            assert_eq!(synchronize(), 0);
            assert_eq!(copy(counts.as_mut_ptr().cast(), self.at(place), MOST_SMS * 4), 0);
            assert_eq!(set(self.at(place), 0, MOST_SMS), 0);
            assert_eq!(pop(&mut popped), 0);
        }
        (0u32..).zip(counts).filter(|(_, count)| *count != 0).map(|(sm, _)| sm).collect()
    }
}

/// A native graph, which is destroyed with this.
pub struct Captured(*mut CUgraph_st);

// SAFETY: the driver's functions may be called from any thread, and nobody changes the graph.
unsafe impl Sync for Captured {}

impl Captured {
    pub fn native(&self) -> *mut CUgraph_st {
        self.0
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // SAFETY: the type is that of cuda.h.
        let destroy: extern "C" fn(*mut CUgraph_st) -> c_int =
            unsafe { driver_function("cuGraphDestroy") };
        assert_eq!(destroy(self.0), 0);
    }
}

/// What is submitted in between becomes a graph.
pub fn capture(stream: &Stream, submit: impl FnOnce()) -> Captured {
    begin_capture(stream).unwrap();
    submit();
    let mut graph = ptr::null_mut();
    // SAFETY: the type is that of cuda.h.
    let end: End = unsafe { driver_function("cuStreamEndCapture") };
    assert_eq!(end(stream.native().unwrap().cast(), &mut graph), 0);
    Captured(graph.cast())
}
