//! What several tests use: processes of their own, and the driver as other libraries in the process
//! call it.

// Each test program uses a part of it.
#![allow(dead_code)]

pub mod graphs;

use std::ffi::CString;
use std::fs::Permissions;
use std::mem::transmute_copy;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::Duration;

use gcx::{Result, Stream};

/// Runs a test in a process of its own on a machine with two devices, and fails with what that said
/// unless it ends well.
pub fn alone(test: &str, body: impl FnOnce()) {
    let spec = std::env::var("GCX_DRIVER").unwrap_or_else(|_| "sim:h100@13.0".to_owned());
    let spec = spec.replace("sim:h100", "sim:2xh100");
    alone_with(&[], test, || {
        // SAFETY: it is the simulated driver, or a GPU's.
        unsafe { gcx::open_driver(&spec) }.unwrap();
        body();
    });
}

/// The same with more in the environment, and no driver opened.
pub fn alone_with(more: &[(&str, &str)], test: &str, body: impl FnOnce()) {
    if std::env::var_os("GCX_RUST_ALONE").as_deref() == Some(test.as_ref()) {
        body();
        return;
    }
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("GCX_RUST_ALONE", test)
        .envs(more.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr) + String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{test}: {}\n{said}", done.status);
    assert!(said.contains("1 passed") || test.starts_with("exit_"), "{said}");
}

/// The same with a folder of the test's own, which the variable names in the environment, and with the
/// driver that the test is run on.
pub fn with_folder(variable: &str, more: &[(&str, &str)], test: &str, body: impl FnOnce()) {
    if std::env::var_os("GCX_RUST_ALONE").is_some() {
        alone_with(&[], test, body);
        return;
    }
    let folder = std::env::temp_dir().join(format!("gcx-rust-{test}-{}", std::process::id()));
    make_folder(&folder, 0o700);
    let driver = std::env::var("GCX_DRIVER").unwrap_or_else(|_| "sim:h100@13.0".to_owned());
    let mut all = vec![(variable, folder.to_str().unwrap()), ("GCX_DRIVER", &driver)];
    all.extend(more);
    alone_with(&all, test, body);
    std::fs::remove_dir_all(&folder).unwrap();
}

pub fn make_folder(folder: &Path, mode: u32) {
    std::fs::create_dir(folder).unwrap();
    std::fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}

/// How long tests under load go on: for `GCX_RUST_LOAD_SECONDS`, 2 if it isn't set.
pub fn duration() -> Duration {
    let seconds = std::env::var("GCX_RUST_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(2.0, |text| text.parse().expect("a number of seconds"));
    Duration::from_secs_f64(seconds)
}

/// Whether it holds in the child of a fork, which calls gcx alone and ends at once.
pub fn holds_in_a_child(body: impl FnOnce() -> bool) -> bool {
    extern "C" {
        fn fork() -> c_int;
        fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: of the other threads the child needs nothing.
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

/// A function of the driver that gcx has opened.
///
/// # Safety
///
/// `F` is the type of the function.
pub unsafe fn driver_function<F>(name: &str) -> F {
    function_of(&gcx::driver_info().unwrap().library, name)
}

/// A function of a library.
///
/// # Safety
///
/// `F` is the type of the function.
pub unsafe fn function_of<F>(library: &str, name: &str) -> F {
    #[link(name = "dl")]
    extern "C" {
        fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    let (library, name) = (CString::new(library).unwrap(), CString::new(name).unwrap());
    let opened = dlopen(library.as_ptr(), 2);
    assert!(!opened.is_null(), "{library:?}");
    let address = dlsym(opened, name.as_ptr());
    assert!(!address.is_null(), "{name:?}");
    transmute_copy(&address)
}

type Retain = extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type Push = extern "C" fn(*mut c_void) -> c_int;
type Load = extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
type Find = extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
type Pop = extern "C" fn(*mut *mut c_void) -> c_int;
type End = extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
type Launch = extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// Does it with the primary context of device 0 current, as programs of CUDA's runtime have it: not
/// every call of a GPU's driver does without. The context stays as long as the process.
pub fn in_primary<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the types are those of cuda.h.
    let (retain, push, pop): (Retain, Push, Pop) = unsafe {
        (
            driver_function("cuDevicePrimaryCtxRetain"),
            driver_function("cuCtxPushCurrent_v2"),
            driver_function("cuCtxPopCurrent_v2"),
        )
    };
    let mut primary = ptr::null_mut();
    assert_eq!(retain(&mut primary, 0), 0);
    assert_eq!(push(primary), 0);
    let done = body();
    assert_eq!(pop(&mut primary), 0);
    done
}

/// Begins a graph capture in the stream's native stream of now.
pub fn begin_capture(stream: &Stream) -> Result<()> {
    // SAFETY: the type is that of cuda.h; the mode is CU_STREAM_CAPTURE_MODE_RELAXED.
    let begin: extern "C" fn(*mut c_void, c_int) -> c_int =
        unsafe { driver_function("cuStreamBeginCapture_v2") };
    let native = stream.native()?.cast();
    assert_eq!(in_primary(|| begin(native, 2)), 0);
    Ok(())
}

/// The text of what [`Work`] and [`graphs::Probes`] launch, as the driver takes it.
const PTX: &str = concat!(include_str!("kernels.ptx"), "\0");

/// Work for streams, which takes a time of the driver's clock, a simulated or a GPU's. Stays as long
/// as the process.
pub struct Work {
    spinner: *mut c_void,
    launch: Launch,
}

// SAFETY: the driver's functions may be called from any thread.
unsafe impl Sync for Work {}

impl Work {
    pub fn new() -> Self {
        gcx::devices().unwrap(); // it opens the driver
        let (mut module, mut spinner) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the types are those of cuda.h; the texts end with a zero byte.
        unsafe {
            let load: Load = driver_function("cuModuleLoadData");
            let find: Find = driver_function("cuModuleGetFunction");
            in_primary(|| {
                assert_eq!(load(&mut module, PTX.as_ptr().cast()), 0);
                assert_eq!(find(&mut spinner, module, b"gcx_spin\0".as_ptr().cast()), 0);
            });
            Work { spinner, launch: driver_function("cuLaunchKernel") }
        }
    }

    /// A kernel of one block that takes so long, in the stream's native stream of now.
    pub fn spin(&self, stream: &Stream, milliseconds: u64) -> Result<()> {
        let mut nanoseconds = milliseconds * 1_000_000;
        let mut arguments = [ptr::addr_of_mut!(nanoseconds).cast::<c_void>()];
        let (native, none) = (stream.native()?.cast(), ptr::null_mut());
        let args = arguments.as_mut_ptr();
        let result =
            in_primary(|| (self.launch)(self.spinner, 1, 1, 1, 1, 1, 1, 0, native, args, none));
        assert_eq!(result, 0, "cuLaunchKernel");
        Ok(())
    }
}
