//! The cache of green contexts: contexts created ahead of time, its limit, and trimming.
//!
//! ```
//! let sms = gcx::Device::new(0)?.sms()?;
//! let layouts = [24, 32, 64].map(|count| sms.split([count]).map(|split| split[0]));
//! let layouts = layouts.into_iter().collect::<gcx::Result<Vec<_>>>()?;
//! gcx::cache::prepare(&layouts)?; // before the work starts
//! // SAFETY: no other library names a released stream of gcx.
//! unsafe { gcx::cache::set_limit(100) }?; // of each device
//!
//! let made = gcx::cache::stats()?.misses;
//! gcx::Context::new(&layouts[2])?; // takes microseconds
//! assert_eq!(gcx::cache::stats()?.misses, made);
//! # Ok::<(), gcx::Error>(())
//! ```
//!
//! Tested on the simulated driver only so far.

use std::any::Any;
use std::fmt;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;

use crate::call::{array, check, filled};
use crate::error::Result;
use crate::lease::Cancel;
use crate::resource::SmResource;
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::{CacheStats, CacheTrimmed as Trimmed};

/// Returns what is cached, and how often that helped.
pub fn stats() -> Result<CacheStats> {
    // SAFETY: C fills in the struct.
    filled(sys::GCX_CACHE_STATS_INIT, |stats| unsafe { sys::gcx_cache_get_stats(stats) })
}

/// Sets how many green contexts without context or stream each device caches; 64 at first. Each has
/// about 5 MiB of device memory. Evicts those beyond, the least recently used first and prepared
/// ones last.
///
/// The driver loses most of the memory of a destroyed context permanently, so a limit that is too
/// small costs more than it saves.
///
/// # Safety
///
/// As for [`trim`].
pub unsafe fn set_limit(contexts: u32) -> Result<()> {
    check(sys::gcx_cache_set_limit(contexts))
}

/// Destroys the cached contexts beyond this number, the least recently used first, and the released
/// streams of the others unless they work. Keeps the limit. An error reports what the driver
/// refused to destroy; the rest was trimmed.
///
/// # Safety
///
/// No library still names a released stream, as `PyTorch`'s allocator does.
pub unsafe fn trim(contexts: u32) -> Result<Trimmed> {
    filled(sys::GCX_CACHE_TRIMMED_INIT, |trimmed| sys::gcx_cache_trim(contexts, trimmed))
}

/// Creates and caches the contexts of these SMs, one for each resource, so that
/// [`Context::new`](crate::Context::new) takes microseconds later.
///
/// Creating a context takes milliseconds and waits for every kernel on the device: call it before
/// the work starts, or from a separate thread. Fails with
/// [`CacheLimitExceeded`](crate::ErrorKind) if the limits are too small to cache all. After a
/// failure, what was created stays cached.
pub fn prepare<'a>(sms: impl IntoIterator<Item = &'a SmResource>) -> Result<()> {
    prepare_with(sms, PrepareOptions::new())
}

/// As [`prepare`], with options. Fails with [`Cancelled`](crate::ErrorKind) if it was
/// [cancelled](Cancel::signal).
///
/// ```
/// use gcx::cache::{prepare_with, PrepareOptions};
///
/// let ([small, large], _) = gcx::Device::new(0)?.sms()?.split_array([24, 64])?;
/// let mut steps = Vec::new();
/// let options = PrepareOptions::new().for_leases();
/// prepare_with([&small, &large], options.progress(|done, all| steps.push((done, all))))?;
/// assert_eq!(steps, [(1, 2), (2, 2)]);
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Panics
///
/// If the function for progress does, see [`PrepareOptions::progress`].
pub fn prepare_with<'a>(
    sms: impl IntoIterator<Item = &'a SmResource>,
    options: PrepareOptions<'_>,
) -> Result<()> {
    let (resources, count) = raw_of(sms)?;
    let PrepareOptions { flags, cancel, progress } = options;
    // Cancels the rest after a panic of `progress`. The caller's cancel isn't signalled for that,
    // since other waits may use it.
    let private = match (cancel, &progress) {
        (None, Some(_)) => Some(Cancel::new()?),
        _ => None,
    };
    let callback: sys::gcx_progress_callback = progress.as_ref().map(|_| report as _);
    let mut reporter = Reporter { progress, cancel: private.as_ref(), panic: None };
    let params = sys::gcx_prepare_params {
        flags,
        cancel: cancel.or(private.as_ref()).map_or(ptr::null_mut(), Cancel::as_raw),
        progress: callback,
        user_data: ptr::addr_of_mut!(reporter).cast(),
        ..sys::GCX_PREPARE_PARAMS_INIT
    };
    // SAFETY: the array has `count` elements; the cancel and `reporter`, which only `report` uses
    // during the call, outlive it.
    let result = check(unsafe { sys::gcx_cache_prepare(resources.as_ptr(), count, &params) });
    match reporter.panic {
        Some(panic) => resume_unwind(panic),
        None => result,
    }
}

/// How contexts are created ahead of time.
#[derive(Default)]
#[must_use]
pub struct PrepareOptions<'a> {
    flags: u32,
    cancel: Option<&'a Cancel>,
    progress: Option<Progress<'a>>,
}

type Progress<'a> = Box<dyn FnMut(u32, u32) + 'a>;

impl<'a> PrepareOptions<'a> {
    /// For contexts, without progress and cancel.
    pub fn new() -> Self {
        Self::default()
    }

    /// For leases over these SMs: with balanced workqueues from CUDA 13.1 on.
    pub fn for_leases(mut self) -> Self {
        self.flags |= sys::GCX_PREPARE_FOR_LEASES;
        self
    }

    /// Sets what cancels the rest, from another thread or from the function for progress.
    pub fn cancel(mut self, cancel: &'a Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets a function that is called after each resource, in the preparing thread, with the number
    /// done and the number of all. It may call gcx.
    ///
    /// A panic of it continues in the caller and cancels the rest; with a [`cancel`](Self::cancel)
    /// the rest is prepared first, without calling it.
    pub fn progress(mut self, progress: impl FnMut(u32, u32) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }
}

impl fmt::Debug for PrepareOptions<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases = self.flags & sys::GCX_PREPARE_FOR_LEASES != 0;
        out.debug_struct("PrepareOptions")
            .field("for_leases", &leases)
            .field("cancel", &self.cancel)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What C passes to [`report`].
struct Reporter<'a> {
    progress: Option<Progress<'a>>,
    cancel: Option<&'a Cancel>,
    panic: Option<Box<dyn Any + Send>>,
}

/// The callback of C. A panic can't unwind through C: it is stored until C has returned.
unsafe extern "C" fn report(done: u32, count: u32, reporter: *mut c_void) {
    let reporter = &mut *reporter.cast::<Reporter<'_>>();
    let progress = match &mut reporter.progress {
        Some(progress) if reporter.panic.is_none() => progress,
        _ => return,
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| progress(done, count))) {
        reporter.panic = Some(panic);
        if let Some(cancel) = reporter.cancel {
            // Fails only in the child of a fork, where nothing is prepared.
            let _ = cancel.signal();
        }
    }
}

/// The values as C takes them, and their number.
pub(crate) fn raw_of<'a>(
    sms: impl IntoIterator<Item = &'a SmResource>,
) -> Result<(Vec<sys::gcx_resource>, u32)> {
    array(sms.into_iter().map(|sms| Ok(*sms.as_raw())))
}
