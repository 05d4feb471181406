//! Opens the C library at run time, for the feature `dlopen`.
//!
//! The first call of a function, or [`open`], opens the library. Until that succeeds, functions
//! return `GCX_ERROR_SHARED_OBJECT_INIT_FAILED` and `gcx_last_error_message` says why; the next
//! call tries again.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Mutex;

use crate::bindings::{gcx_result, FUNCTIONS, GCX_ERROR_SHARED_OBJECT_INIT_FAILED};

/// The default library, and the environment variable that names another.
const DEFAULT: &str = "libgcx.so.1";
const VARIABLE: &str = "GCX_LIBRARY";

const RTLD_NOW: c_int = 2;

#[link(name = "dl")]
extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}

type Addresses = [*mut c_void; FUNCTIONS.len()];

/// NULL until the library is open, which it stays for the rest of the process, as this array does.
static ADDRESSES: AtomicPtr<Addresses> = AtomicPtr::new(ptr::null_mut());
static OPENING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Why the library could not be opened at this thread's last call.
    static REASON: RefCell<CString> = RefCell::new(CString::default());
}

/// Why the C library could not be opened.
#[derive(Debug, Clone)]
pub struct NotOpened(String);

impl fmt::Display for NotOpened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NotOpened {}

/// Opens the C library, unless it is open: the given file, or the one that `GCX_LIBRARY` of the
/// environment names, or `libgcx.so.1`.
///
/// # Safety
///
/// The file is gcx's library: its initialization runs, and its functions are called as gcx.h
/// declares them. The functions open the one that the environment names, which is trusted as the
/// rest of what starts a process.
///
/// # Errors
///
/// There is no such library, or it is older than these bindings and lacks a function.
pub unsafe fn open(file: Option<&OsStr>) -> Result<(), NotOpened> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !ADDRESSES.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let chosen = file.map(OsStr::to_owned).or_else(|| std::env::var_os(VARIABLE));
    let chosen = chosen.unwrap_or_else(|| DEFAULT.into());
    let name = CString::new(chosen.as_bytes())
        .map_err(|_| NotOpened("the library's name has a zero byte in it".to_owned()))?;
    let library = dlopen(name.as_ptr(), RTLD_NOW);
    if library.is_null() {
        return Err(NotOpened(format!(
            "gcx's library could not be opened: {}. Install gcx, or set {VARIABLE} to the path of \
             {DEFAULT}",
            last_error()
        )));
    }
    let mut found: Box<Addresses> = Box::new([ptr::null_mut(); FUNCTIONS.len()]);
    for (address, function) in found.iter_mut().zip(FUNCTIONS) {
        *address = dlsym(library, function.as_ptr().cast());
        if address.is_null() {
            dlclose(library); // nothing uses it yet
            return Err(NotOpened(format!(
                "{} has no function {}: it is older than these bindings, of gcx {}",
                chosen.to_string_lossy(),
                function.trim_end_matches('\0'),
                env!("CARGO_PKG_VERSION")
            )));
        }
    }
    ADDRESSES.store(Box::into_raw(found), Ordering::Release);
    Ok(())
}

fn last_error() -> String {
    // SAFETY: dlerror gives NULL or a string that is the thread's own until its next call.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return "no reason is known".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Returns the address of a function in the list, or stores why there is none.
#[inline]
pub fn address(index: usize) -> Option<*mut c_void> {
    // SAFETY: it is NULL or an array that is never freed.
    match unsafe { ADDRESSES.load(Ordering::Acquire).as_ref() } {
        Some(addresses) => Some(addresses[index]),
        None => address_in_opened(index),
    }
}

#[cold]
fn address_in_opened(index: usize) -> Option<*mut c_void> {
    // SAFETY: the environment and an installed libgcx.so.1 are trusted.
    match unsafe { open(None) } {
        Ok(()) => address(index),
        Err(NotOpened(reason)) => {
            let reason = CString::new(reason).unwrap_or_default();
            // It fails while the thread ends, when no code asks for the reason.
            let _ = REASON.try_with(|kept| *kept.borrow_mut() = reason);
            None
        }
    }
}

/// What a function returns while there is no library.
pub trait Missing {
    fn missing(function: &str) -> Self;
}

impl Missing for gcx_result {
    fn missing(_function: &str) -> Self {
        GCX_ERROR_SHARED_OBJECT_INIT_FAILED
    }
}

impl Missing for u32 {
    fn missing(_function: &str) -> Self {
        0
    }
}

impl Missing for *const c_char {
    fn missing(function: &str) -> Self {
        let text: &[u8] = match function {
            "gcx_last_error_message" => {
                return REASON
                    .try_with(|kept| kept.borrow().as_ptr())
                    .unwrap_or_else(|_| b"\0".as_ptr().cast())
            }
            "gcx_result_name" => b"GCX_ERROR_SHARED_OBJECT_INIT_FAILED\0",
            "gcx_result_string" => b"The library can't be loaded.\0",
            _ => return ptr::null(),
        };
        text.as_ptr().cast()
    }
}

impl<T> Missing for *mut T {
    fn missing(_function: &str) -> Self {
        ptr::null_mut()
    }
}
