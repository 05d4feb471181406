//! Diagnostics: lost memory, made contexts, failed calls.
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

use crate::error::{check, text, Error, Result};
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::LogLevel as Level;

type Callback = Box<dyn Fn(Level, &str) + Send + Sync>;

/// The callback that C has; a box of a box, since C takes one word.
static CURRENT: Mutex<Option<Box<Callback>>> = Mutex::new(None);

thread_local! {
    /// Whether this thread is in a callback.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Sends diagnostics up to a level to a function. It is called in the thread that has something to
/// say, so from several at once, and must not call gcx. When this returns, the function before is no
/// longer running and is dropped: call this with no lock held that it takes.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) it was called from such a function.
pub fn set(level: Level, callback: impl Fn(Level, &str) + Send + Sync + 'static) -> Result<()> {
    change(level.into(), Some(Box::new(Box::new(callback))))
}

/// Goes back to what the environment's `GCX_LOG` says: to print on standard error, or nothing.
///
/// # Errors
///
/// As [`set`].
pub fn reset() -> Result<()> {
    change(sys::GCX_LOG_NONE, None)
}

fn change(level: sys::gcx_log_level, callback: Option<Box<Callback>>) -> Result<()> {
    if INSIDE.with(Cell::get) {
        // Another thread may hold the lock and wait for the end of this callback.
        let message = "a log callback can't set another, whose place it would have to leave first";
        return Err(Error::of(sys::GCX_ERROR_NOT_PERMITTED, message));
    }
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    let (function, data): (sys::gcx_log_callback, *mut c_void) = match &callback {
        Some(boxed) => (Some(call), ptr::addr_of!(**boxed) as *mut c_void),
        None => (None, ptr::null_mut()),
    };
    // SAFETY: `data` is what `call` takes, and is kept until C has given it up.
    check(unsafe { sys::gcx_log_set_callback(level, function, data) })?;
    // C no longer runs the one before, and won't call it again.
    let before = mem::replace(&mut *current, callback);
    drop(current);
    // What it holds may call this in its own drop.
    drop(before);
    Ok(())
}

/// What C calls. A panic has been printed by its hook, and ends here: it can't go on through C.
unsafe extern "C" fn call(level: sys::gcx_log_level, message: *const c_char, data: *mut c_void) {
    if INSIDE.with(Cell::get) {
        // The callback called gcx, against the rule. To tell it of that would have no end.
        return;
    }
    let callback = &*data.cast::<Callback>();
    INSIDE.with(|inside| inside.set(true));
    let message = text(message);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(Level::from(level), &message))) {
        // What it carries may panic too as it is dropped; such a thing is left alone.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            mem::forget(again);
        }
    }
    INSIDE.with(|inside| inside.set(false));
}
