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

use std::time::Duration;

use crate::error::{check, Result};
use crate::sys;

pub use crate::prepare::{prepare, prepare_with, PrepareOptions};

/// Counters of green contexts, since the driver was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CacheStats {
    /// How many are kept without context or stream on each device, see [`set_limit`].
    pub limit: u32,
    /// Those with a context or stream.
    pub in_use: u32,
    /// Those without.
    pub kept: u32,
    /// Contexts given from kept ones or from ones in use.
    pub hits: u64,
    /// Green contexts made.
    pub misses: u64,
    /// Destroyed by the limit and by [`trim`].
    pub evicted: u64,
    /// Dead by a reset of the device.
    pub lost: u64,
    /// Made ahead of time, of those made.
    pub prepared: u64,
    /// The time in the driver making them, all together.
    pub making: Duration,
    /// That of the one that took longest.
    pub longest_making: Duration,
    /// Streams that were given up, of all contexts.
    pub kept_streams: u32,
}

/// What is kept, and how often that helped.
///
/// # Errors
///
/// None that is known.
pub fn stats() -> Result<CacheStats> {
    let mut stats = sys::GCX_CACHE_STATS_INIT;
    // SAFETY: the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_cache_get_stats(&mut stats) })?;
    Ok(CacheStats {
        limit: stats.limit,
        in_use: stats.in_use,
        kept: stats.kept,
        hits: stats.hits,
        misses: stats.misses,
        evicted: stats.evicted,
        lost: stats.lost,
        prepared: stats.prepared,
        making: Duration::from_nanos(stats.making_ns),
        longest_making: Duration::from_nanos(stats.longest_making_ns),
        kept_streams: stats.kept_streams,
    })
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

/// What a [`trim`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Trimmed {
    /// Green contexts that were destroyed.
    pub contexts: u32,
    /// Streams that were given up and destroyed: with their contexts, and beside.
    pub streams: u32,
    /// Contexts beyond the number in which a stream that was given up captures a graph.
    pub contexts_left: u32,
    /// Streams that were given up, but are at work or capture a graph still.
    pub streams_left: u32,
    /// Device memory that is free now and was not before, all devices together; what others did
    /// meanwhile is in it.
    pub bytes: u64,
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
    let sys::gcx_cache_trimmed { contexts, streams, contexts_left, streams_left, bytes, .. } =
        trimmed;
    Ok(Trimmed { contexts, streams, contexts_left, streams_left, bytes })
}
