//! Diagnostics: lost memory, created contexts, failed calls.
//!
//! ```
//! use gcx::log::Level;
//!
//! gcx::log::set(Level::Info, |level, message| eprintln!("gcx {level:?}: {message}"))?;
//! gcx::Context::new(&gcx::Device::new(0)?.sms()?)?;
//! gcx::log::reset()?;
//! # Ok::<(), gcx::Error>(())
//! ```

use std::cell::Cell;
use std::mem;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::call::{check, text};
use crate::error::{Error, Result};
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::LogLevel as Level;

type Callback = Box<dyn Fn(Level, &str) + Send + Sync>;

/// The callback that C has: a box of a box, since C takes one word.
static CURRENT: Mutex<Option<Box<Callback>>> = Mutex::new(None);

thread_local! {
    /// Whether this thread runs a callback.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Sets the function that receives diagnostics up to a level. It is called in the threads that log,
/// also concurrently, and must not call gcx. A panic in it ends its message only.
///
/// When this returns, the previous function no longer runs and is dropped: don't call this with a
/// lock that the function takes. Fails with [`InCallback`](crate::ErrorKind) inside such a
/// function.
pub fn set(level: Level, callback: impl Fn(Level, &str) + Send + Sync + 'static) -> Result<()> {
    change(level.into(), Some(Box::new(Box::new(callback))))
}

/// Restores the default: `GCX_LOG` of the environment selects what is printed to standard error.
pub fn reset() -> Result<()> {
    change(sys::GCX_LOG_NONE, None)
}

fn change(level: sys::gcx_log_level, callback: Option<Box<Callback>>) -> Result<()> {
    if INSIDE.with(Cell::get) {
        // Another thread may hold the lock and wait for the end of this callback.
        let message = "a log callback can't set the log callback; set it outside of one";
        return Err(Error::of(sys::GCX_ERROR_IN_CALLBACK, message));
    }
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    let (function, data): (sys::gcx_log_callback, *mut c_void) = match &callback {
        Some(boxed) => (Some(call), ptr::addr_of!(**boxed) as *mut c_void),
        None => (None, ptr::null_mut()),
    };
    // SAFETY: `data` is what `call` takes, and is kept until C has dropped it.
    check(unsafe { sys::gcx_log_set_callback(level, function, data) })?;
    // C has stopped calling the previous one.
    let before = mem::replace(&mut *current, callback);
    drop(current);
    // Without the lock: what the callback owns may call this in its drop.
    drop(before);
    Ok(())
}

/// The callback of C. A panic can't unwind through C: its hook has printed it, and it ends here.
unsafe extern "C" fn call(level: sys::gcx_log_level, message: *const c_char, data: *mut c_void) {
    if INSIDE.with(Cell::get) {
        // The callback called gcx, against the rule; reporting that to it would not end.
        return;
    }
    let callback = &*data.cast::<Callback>();
    INSIDE.with(|inside| inside.set(true));
    let message = text(message);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(Level::from(level), &message))) {
        // Its payload may panic too while it is dropped, and is leaked then.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            mem::forget(again);
        }
    }
    INSIDE.with(|inside| inside.set(false));
}
