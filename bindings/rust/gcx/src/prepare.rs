//! Contexts that are made ahead of time.

use std::any::Any;
use std::fmt;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;

use crate::acquire::Cancel;
use crate::error::{check, Error, Result};
use crate::resource::SmResource;
use crate::sys;

/// Makes the contexts of these SMs beforehand, one for each resource, and keeps them, so that
/// [`Context::new`](crate::Context::new) and, with [`PrepareOptions::for_leases`], leases over the
/// same SMs take microseconds later.
///
/// In the calling thread: making one takes milliseconds and waits for every kernel that runs on the
/// device. So call it before the work starts, or from a thread that has nothing else to do. Where
/// there is one already none is made. After a failure what was made stays kept. What leases that live
/// are to be changed to is made by [`gcx::prepare`](crate::prepare()).
///
/// # Errors
///
/// Those of [`Context::new`](crate::Context::new).
/// [`ErrorKind::InvalidValue`](crate::ErrorKind) there are none, or the limits are too small to keep
/// them all beside each other, which is said before the first is made, and again once the first ones
/// were measured.
pub fn prepare<'a>(sms: impl IntoIterator<Item = &'a SmResource>) -> Result<()> {
    prepare_with(sms, PrepareOptions::new())
}

/// The same with options.
///
/// ```
/// use gcx::cache::{prepare_with, PrepareOptions};
///
/// let ([small, large], _) = gcx::Device::new(0)?.sms()?.split_array([24, 64])?;
/// let mut steps = Vec::new();
/// let noted = PrepareOptions::new().for_leases().progress(|done, count| steps.push((done, count)));
/// prepare_with([&small, &large], noted)?;
/// assert_eq!(steps, [(1, 2), (2, 2)]);
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// As [`prepare`]. [`ErrorKind::NotPermitted`](crate::ErrorKind) it was
/// [given up](crate::Cancel::signal). `InvalidResourceType` with [`PrepareOptions::for_leases`] SMs of
/// a structured split, which has no leases.
///
/// # Panics
///
/// With what the function for progress panicked with, see [`PrepareOptions::progress`].
pub fn prepare_with<'a>(
    sms: impl IntoIterator<Item = &'a SmResource>,
    options: PrepareOptions<'_>,
) -> Result<()> {
    let (resources, count) = raw_of(sms)?;
    let PrepareOptions { flags, cancel, progress } = options;
    // What a panic of `progress` gives the rest up with. A cancel of the caller's isn't signalled for
    // that, for others may wait with it.
    let own = match (cancel, &progress) {
        (None, Some(_)) => Some(Cancel::new()?),
        _ => None,
    };
    let given = cancel.or(own.as_ref()).map_or(ptr::null_mut(), Cancel::as_raw);
    let callback: sys::gcx_progress_callback = progress.as_ref().map(|_| told as _);
    let mut telling = Telling { progress, own: own.as_ref(), panic: None };
    let params = sys::gcx_prepare_params {
        flags,
        cancel: given,
        progress: callback,
        user_data: ptr::addr_of_mut!(telling).cast(),
        ..sys::GCX_PREPARE_PARAMS_INIT
    };
    // SAFETY: the array has `count` elements; `telling`, which only `told` uses meanwhile, and the
    // cancel outlive the call.
    let result = check(unsafe { sys::gcx_cache_prepare(resources.as_ptr(), count, &params) });
    match telling.panic {
        Some(panic) => resume_unwind(panic),
        None => result,
    }
}

/// How contexts are to be made ahead of time.
#[derive(Default)]
#[must_use]
pub struct PrepareOptions<'a> {
    flags: u32,
    cancel: Option<&'a Cancel>,
    progress: Option<Progress<'a>>,
}

type Progress<'a> = Box<dyn FnMut(u32, u32) + 'a>;

impl<'a> PrepareOptions<'a> {
    /// For contexts; silent, and not to be given up.
    pub fn new() -> Self {
        Self::default()
    }

    /// As leases over these SMs have them: with balanced workqueues from CUDA 13.1 on, and before the
    /// same as without.
    pub fn for_leases(mut self) -> Self {
        self.flags |= sys::GCX_PREPARE_FOR_LEASES;
        self
    }

    /// Gives the rest up, from another thread or from the function for progress. It is looked at
    /// before each resource.
    pub fn cancel(mut self, cancel: &'a Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Is called after each resource with how many are done, and of how many, in the thread that
    /// prepares. It may call gcx.
    ///
    /// If it panics the rest is given up and the panic goes on in the caller; with a
    /// [`cancel`](Self::cancel) the rest is made first, without telling of it.
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

/// What C hands to [`told`].
struct Telling<'a> {
    progress: Option<Progress<'a>>,
    own: Option<&'a Cancel>,
    panic: Option<Box<dyn Any + Send>>,
}

/// What C calls. A panic can't go on through C: it is kept until C has returned.
unsafe extern "C" fn told(done: u32, count: u32, telling: *mut c_void) {
    let telling = &mut *telling.cast::<Telling<'_>>();
    let progress = match &mut telling.progress {
        Some(progress) if telling.panic.is_none() => progress,
        _ => return,
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| progress(done, count))) {
        telling.panic = Some(panic);
        if let Some(own) = telling.own {
            // It fails in the child of a fork alone, where nothing is prepared.
            let _ = own.signal();
        }
    }
}

/// The values as C takes them, and how many they are.
pub(crate) fn raw_of<'a>(
    sms: impl IntoIterator<Item = &'a SmResource>,
) -> Result<(Vec<sys::gcx_resource>, u32)> {
    let raw: Vec<_> = sms.into_iter().map(|sms| *sms.as_raw()).collect();
    let count = u32::try_from(raw.len())
        .map_err(|_| Error::of(sys::GCX_ERROR_INVALID_VALUE, "more resources than a u32 counts"))?;
    Ok((raw, count))
}
