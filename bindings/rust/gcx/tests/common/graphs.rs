//! Graphs as other libraries in the process capture them, of kernels that note the SMs they ran on.

use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;

use gcx::sys::{CUfunc_st, CUgraph_st};
use gcx::Stream;

use super::{begin_capture, driver_function, in_primary, End, Launch, PTX};

/// Of each block: one or two fill an SM, so that a grid of so many blocks leaves none empty.
pub const THREADS: u32 = 1024;
pub const BLOCKS: u32 = 1024;

/// How long a block stays: long enough for all the SMs to get one meanwhile.
const NANOSECONDS: u32 = 20_000;

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
}

// SAFETY: the driver's functions may be called from any thread.
unsafe impl Sync for Probes {}

impl Probes {
    pub fn new() -> Self {
        gcx::devices().unwrap(); // it opens the driver
        let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        let (mut function, mut counts) = (ptr::null_mut(), 0);
        let none = ptr::null_mut();
        // SAFETY: the types are those of cuda.h; the texts end with a zero byte.
        unsafe {
            let load: LoadLibrary = driver_function("cuLibraryLoadData");
            let get_kernel: GetKernel = driver_function("cuLibraryGetKernel");
            let get_function: GetFunction = driver_function("cuKernelGetFunction");
            let allocate: Allocate = driver_function("cuMemAlloc_v2");
            let set: Set = driver_function("cuMemsetD32_v2");
            let text = PTX.as_ptr().cast();
            in_primary(|| {
                assert_eq!(load(&mut library, text, none, none, 0, none, none, 0), 0);
                assert_eq!(get_kernel(&mut kernel, library, b"gcx_probe\0".as_ptr().cast()), 0);
                assert_eq!(get_function(&mut function, kernel), 0);
                assert_eq!(allocate(&mut counts, PLACES * MOST_SMS * 4), 0);
                assert_eq!(set(counts, 0, PLACES * MOST_SMS), 0);
            });
        }
        Probes { function, counts }
    }

    pub fn function(&self) -> *mut CUfunc_st {
        self.function.cast()
    }

    /// The kernel's arguments for a place, as in a C struct.
    pub fn arguments(&self, place: usize) -> Vec<u8> {
        let mut bytes = self.at(place).to_ne_bytes().to_vec();
        bytes.extend(u32::try_from(MOST_SMS).unwrap().to_ne_bytes());
        bytes.extend(NANOSECONDS.to_ne_bytes());
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
            let none = ptr::null_mut();
            launch(self.function, BLOCKS, 1, 1, THREADS, 1, 1, 0, native, arguments, none)
        });
    }

    /// The same as a cooperative launch of so many blocks.
    pub fn launch_cooperative(&self, stream: &Stream, place: usize, blocks: u32) {
        self.launched(stream, place, |arguments, native| {
            // SAFETY: the type is that of cuda.h.
            let launch: Cooperative = unsafe { driver_function("cuLaunchCooperativeKernel") };
            launch(self.function, blocks, 1, 1, THREADS, 1, 1, 0, native, arguments)
        });
    }

    fn launched(
        &self,
        stream: &Stream,
        place: usize,
        launch: impl FnOnce(*mut Pointer, Pointer) -> c_int,
    ) {
        let (mut counts, mut most, mut nanoseconds) =
            (self.at(place), u32::try_from(MOST_SMS).unwrap(), NANOSECONDS);
        let mut arguments: [Pointer; 3] = [
            ptr::addr_of_mut!(counts).cast(),
            ptr::addr_of_mut!(most).cast(),
            ptr::addr_of_mut!(nanoseconds).cast(),
        ];
        let native = stream.native().unwrap().cast();
        assert_eq!(in_primary(|| launch(arguments.as_mut_ptr(), native)), 0);
    }

    /// A memset of a place.
    pub fn clear(&self, stream: &Stream, place: usize) {
        // SAFETY: the type is that of cuda.h.
        let set: SetInStream = unsafe { driver_function("cuMemsetD32Async") };
        let native = stream.native().unwrap().cast();
        assert_eq!(in_primary(|| set(self.at(place), 0, MOST_SMS, native)), 0);
    }

    /// The SMs that were noted in a place since the last time.
    pub fn take(&self, place: usize) -> Vec<u32> {
        let mut counts = vec![0u32; MOST_SMS];
        // SAFETY: the types are those of cuda.h; the vector has room.
        unsafe {
            let synchronize: extern "C" fn() -> c_int = driver_function("cuCtxSynchronize");
            let copy: Copy = driver_function("cuMemcpyDtoH_v2");
            let set: Set = driver_function("cuMemsetD32_v2");
            in_primary(|| {
                assert_eq!(synchronize(), 0);
                assert_eq!(copy(counts.as_mut_ptr().cast(), self.at(place), MOST_SMS * 4), 0);
                assert_eq!(set(self.at(place), 0, MOST_SMS), 0);
            });
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
    let native = stream.native().unwrap().cast();
    assert_eq!(in_primary(|| end(native, &mut graph)), 0);
    Captured(graph.cast())
}
