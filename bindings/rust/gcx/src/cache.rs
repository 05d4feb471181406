//! The green contexts that gcx keeps: made ahead of time, limited, trimmed.
//!
//! ```
//! let sms = gcx::Device::new(0)?.sms()?;
//! let layouts = [24, 32, 64].map(|count| sms.split([count]).map(|split| split[0]));
//! let layouts = layouts.into_iter().collect::<gcx::Result<Vec<_>>>()?;
//! gcx::cache::prepare(&layouts)?; // before the work starts
//! // SAFETY: no other library names a stream of gcx's that was given up.
//! unsafe { gcx::cache::set_limit(100) }?; // of each device
//!
//! let made = gcx::cache::stats()?.misses;
//! gcx::Context::new(&layouts[2])?; // takes microseconds
//! assert_eq!(gcx::cache::stats()?.misses, made);
//! # Ok::<(), gcx::Error>(())
//! ```
//!
//! Tested on the simulated driver alone so far.

use crate::error::{check, Result};
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::{CacheStats, CacheTrimmed as Trimmed};
pub use crate::prepare::{prepare, prepare_with, PrepareOptions};

/// What is kept, and how often that helped.
///
/// # Errors
///
/// None that is known.
pub fn stats() -> Result<CacheStats> {
    let mut stats = sys::GCX_CACHE_STATS_INIT;
    // SAFETY: the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_cache_get_stats(&mut stats) })?;
    Ok(CacheStats::from(&stats))
}

/// Sets how many green contexts without context or stream are kept on each device; 64 at first. Each
/// holds about 5 MiB of device memory. Those beyond are destroyed, the longest unused first. The
/// driver gives little of their memory back and loses the rest permanently, so that a limit which is
/// too small costs more memory than it saves.
///
/// Prepared contexts count towards the limit, but only this function and [`trim`] destroy them: a
/// limit below their number destroys the others first.
///
/// # Safety
///
/// As for [`trim`]: destroying a context destroys its given-up streams, and no library names one of them
/// any more, as `PyTorch`'s allocator does.
///
/// # Errors
///
/// What the driver says.
pub unsafe fn set_limit(kept_contexts: u32) -> Result<()> {
    check(sys::gcx_cache_set_limit(kept_contexts))
}

/// Destroys the kept contexts beyond that number now, the longest unused first, and the given-up
/// streams of all that stay, but those at work. The limit stays as it is.
///
/// # Safety
///
/// No library names a stream any more that was given up, as `PyTorch`'s allocator does.
///
/// # Errors
///
/// What the driver says if it refuses to destroy something. The rest was trimmed then, and the
/// message has the numbers.
pub unsafe fn trim(kept_contexts: u32) -> Result<Trimmed> {
    let mut trimmed = sys::GCX_CACHE_TRIMMED_INIT;
    check(sys::gcx_cache_trim(kept_contexts, &mut trimmed))?;
    Ok(Trimmed::from(&trimmed))
}
