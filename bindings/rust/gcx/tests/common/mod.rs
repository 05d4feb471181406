//! What several tests use: private processes, and a program that calls the driver as other
//! libraries do.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::ffi::CString;
use std::fs::{create_dir, remove_dir_all, set_permissions, Permissions};
use std::mem::transmute_copy;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::ptr;

use gcx::sys::{CUfunc_st, CUgraph_st};
use gcx::{Graph, Stream};

/// Runs a test in a private process on a machine with two devices, and fails with its output.
pub fn in_process(test: &str, body: impl FnOnce()) {
    let spec = std::env::var("GCX_DRIVER").unwrap_or_else(|_| "sim:h100@13.0".to_owned());
    let spec = spec.replace("sim:h100", "sim:2xh100");
    in_process_with(&[], test, || {
        // SAFETY: it is the simulated driver, or a GPU's.
        unsafe { gcx::open_driver(&spec) }.unwrap();
        body();
    });
}

/// As [`in_process`], with variables in the environment, and without opening a driver.
pub fn in_process_with(variables: &[(&str, &str)], test: &str, body: impl FnOnce()) {
    if std::env::var_os("GCX_RUST_PROCESS").as_deref() == Some(test.as_ref()) {
        body();
        return;
    }
    let done = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("GCX_RUST_PROCESS", test)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr) + String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{test}: {}\n{said}", done.status);
    assert!(said.contains("1 passed") || test.starts_with("exit_"), "{said}");
}

/// As [`in_process_with`], with a private folder for reservations and published leases.
pub fn with_folder(test: &str, body: impl FnOnce()) {
    let folder = std::env::temp_dir().join(format!("gcx-rust-{test}-{}", std::process::id()));
    let name = folder.to_str().unwrap();
    if std::env::var_os("GCX_RUST_PROCESS").is_some() {
        return in_process_with(&[], test, body);
    }
    create_dir(&folder).unwrap();
    set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    in_process_with(&[("GCX_RESERVATION_DIR", name), ("GCX_PUBLISH", "")], test, body);
    remove_dir_all(&folder).unwrap();
}

/// Returns what a function answers in the child of a fork, which calls gcx only and then exits.
pub fn holds_in_a_child(body: impl FnOnce() -> bool) -> bool {
    extern "C" {
        fn fork() -> c_int;
        fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: the child needs none of the other threads.
    unsafe {
        let child = fork();
        if child == 0 {
            _exit(c_int::from(!body()));
        }
        let mut status = -1;
        assert_eq!(waitpid(child, &mut status, 0), child);
        status == 0
    }
}

/// Returns a function of the driver that gcx has opened.
///
/// # Safety
///
/// `F` is the type of the function.
unsafe fn driver_function<F>(name: &str) -> F {
    #[link(name = "dl")]
    extern "C" {
        fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    let library = CString::new(gcx::driver_info().unwrap().library).unwrap();
    let name = CString::new(name).unwrap();
    let address = dlsym(dlopen(library.as_ptr(), 2), name.as_ptr());
    assert!(!address.is_null(), "{name:?}");
    transmute_copy(&address)
}

type Pointer = *mut c_void;

/// Calls a driver function by its name, and asserts that it succeeds.
macro_rules! driver {
    ($name:literal($($argument:expr => $type:ty),*)) => {{
        // SAFETY: the types are those of cuda.h.
        let function: extern "C" fn($($type),*) -> c_int = unsafe { driver_function($name) };
        assert_eq!(function($($argument),*), 0, $name);
    }};
}

/// Calls a function with the primary context of device 0 current, as CUDA's runtime has it. The
/// context lives as long as the process.
fn in_primary<T>(body: impl FnOnce() -> T) -> T {
    let mut primary = ptr::null_mut();
    driver!("cuDevicePrimaryCtxRetain"(&mut primary => *mut Pointer, 0 => c_int));
    driver!("cuCtxPushCurrent_v2"(primary => Pointer));
    let done = body();
    driver!("cuCtxPopCurrent_v2"(&mut primary => *mut Pointer));
    done
}

/// Blocks of 1024 threads: one or two fill an SM, so that a grid of so many leaves none empty.
pub const THREADS: u32 = 1024;
pub const BLOCKS: u32 = 1024;

/// How long a block stays: long enough for all SMs to get one.
const NANOSECONDS: u32 = 20_000;
const MAX_SMS: u32 = 1024;
const PLACES: usize = 4;

/// A kernel that notes the SMs it runs on in one of four places. Lives as long as the process.
pub struct Probes {
    function: Pointer,
    counts: u64,
}

impl Probes {
    pub fn new() -> Self {
        gcx::devices().unwrap(); // it opens the driver
        let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        let (mut function, mut counts, none) = (ptr::null_mut(), 0, ptr::null_mut());
        let text = concat!(include_str!("../../../../go/testdata/probe.ptx"), "\0").as_ptr();
        in_primary(|| {
            driver!("cuLibraryLoadData"(&mut library => *mut Pointer, text => *const u8,
                none => Pointer, none => Pointer, 0 => c_uint, none => Pointer, none => Pointer,
                0 => c_uint));
            let name = b"gcx_probe\0".as_ptr();
            driver!("cuLibraryGetKernel"(
                &mut kernel => *mut Pointer, library => Pointer, name => *const u8));
            driver!("cuKernelGetFunction"(&mut function => *mut Pointer, kernel => Pointer));
            let size = PLACES * MAX_SMS as usize * 4;
            driver!("cuMemAlloc_v2"(&mut counts => *mut u64, size => usize));
            driver!("cuMemsetD8_v2"(counts => u64, 0 => u8, size => usize));
        });
        Probes { function, counts }
    }

    pub fn function(&self) -> *mut CUfunc_st {
        self.function.cast()
    }

    /// The kernel's arguments for a place, as in a C struct.
    pub fn arguments(&self, place: usize) -> Vec<u8> {
        let mut bytes = self.at(place).to_ne_bytes().to_vec();
        bytes.extend(MAX_SMS.to_ne_bytes());
        bytes.extend(NANOSECONDS.to_ne_bytes());
        bytes
    }

    fn at(&self, place: usize) -> u64 {
        assert!(place < PLACES);
        self.counts + (place * MAX_SMS as usize * 4) as u64
    }

    /// Launches a grid that fills the stream's SMs, and notes them in a place.
    pub fn launch(&self, stream: &Stream, place: usize) {
        let mut bytes = self.arguments(place);
        let at = |offset| -> Pointer { bytes.as_mut_ptr().wrapping_add(offset).cast() };
        let mut arguments = [0, 8, 12].map(at);
        let (native, none) = (stream.native().unwrap().cast(), ptr::null_mut());
        in_primary(|| {
            driver!("cuLaunchKernel"(self.function => Pointer, BLOCKS => u32, 1 => u32, 1 => u32,
                THREADS => u32, 1 => u32, 1 => u32, 0 => u32, native => Pointer,
                arguments.as_mut_ptr() => *mut Pointer, none => Pointer));
        });
    }

    /// Returns the SMs that were noted in a place since the last call.
    pub fn take(&self, place: usize) -> Vec<u32> {
        let mut counts = vec![0u32; MAX_SMS as usize];
        let (size, at) = (MAX_SMS as usize * 4, self.at(place));
        in_primary(|| {
            driver!("cuCtxSynchronize"());
            driver!("cuMemcpyDtoH_v2"(counts.as_mut_ptr() => *mut u32, at => u64, size => usize));
            driver!("cuMemsetD8_v2"(at => u64, 0 => u8, size => usize));
        });
        (0u32..).zip(counts).filter(|(_, count)| *count != 0).map(|(sm, _)| sm).collect()
    }
}

/// A native graph, which is destroyed with this.
pub struct Captured(*mut CUgraph_st);

impl Captured {
    /// Captures what is submitted to a stream.
    pub fn new(stream: &Stream, submit: impl FnOnce()) -> Captured {
        const RELAXED: c_int = 2;
        let native: Pointer = stream.native().unwrap().cast();
        in_primary(|| driver!("cuStreamBeginCapture_v2"(native => Pointer, RELAXED => c_int)));
        submit();
        let mut graph = ptr::null_mut();
        in_primary(|| driver!("cuStreamEndCapture"(native => Pointer, &mut graph => *mut Pointer)));
        Captured(graph.cast())
    }

    pub fn native(&self) -> *mut CUgraph_st {
        self.0
    }

    pub fn graph(&self) -> Graph {
        // SAFETY: the graph is alive; what it works on lives as long as the process.
        unsafe { Graph::from_native(self.0) }.unwrap()
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        driver!("cuGraphDestroy"(self.0 => *mut CUgraph_st));
    }
}
