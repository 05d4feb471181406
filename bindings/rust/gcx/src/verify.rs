//! Verification: which SMs streams run on.

use std::fmt;
use std::ops::Deref;

use crate::call::{array, check};
use crate::driver::driver_info;
use crate::error::Result;
use crate::generated::{Verification as Found, VerifiedStream};
use crate::stream::Stream;
use crate::sys;

/// Probes which SMs the partitions or streams of one device use: a kernel that fills the SMs of
/// each stream notes their numbers.
///
/// ```
/// let parts = gcx::Device::new(0)?.partition([108, 24])?;
/// let proof = gcx::verify(&parts)?;
/// assert!(proof.is_ok(), "{proof}");
/// assert!(proof.overlap.is_empty());
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn verify<'a, I, S>(streams: I) -> Result<Verification>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<Stream> + 'a,
{
    let (streams, count) = array(streams.into_iter().map(|s| Ok(s.as_ref().as_raw())))?;
    let mut seen = vec![sys::gcx_verified_stream::default(); streams.len()];
    let mut found = sys::GCX_VERIFICATION_INIT;
    // SAFETY: the streams are borrowed and so alive; there is a result for each.
    let result = unsafe { sys::gcx_verify(streams.as_ptr(), count, seen.as_mut_ptr(), &mut found) };
    check(result)?;
    Ok(Verification {
        found: Found::from(&found),
        groups: seen.iter().map(VerifiedStream::from).collect(),
        simulated: driver_info()?.simulated,
    })
}

/// What [`verify`] found of all streams, in its fields, and of each; it displays as a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verification {
    found: Found,
    groups: Vec<VerifiedStream>,
    simulated: bool,
}

impl Verification {
    /// Whether each stream ran on as many SMs as it has, and no SM is in two groups, unless both
    /// are of shared leases.
    pub fn is_ok(&self) -> bool {
        self.found.ok
    }

    /// Whether the driver is the simulated one, which proves nothing.
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// What was found of each stream, in the order given.
    pub fn groups(&self) -> &[VerifiedStream] {
        &self.groups
    }
}

impl Deref for Verification {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.found
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.simulated {
            writeln!(out, "SIMULATED: no GPU is involved")?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            let (letters, ids) = (letters(index), ranges(&group.seen));
            writeln!(out, "{letters}  {} SMs, seen on {ids}", group.sm_count)?;
        }
        if !self.found.ok {
            return write!(out, "FAILED: {}", self.found.problems.replace('\n', "\n  "));
        }
        write!(out, "ok: each ran on as many SMs as promised")
    }
}

/// A to Z, then AA, AB: what the problems call the groups.
fn letters(index: usize) -> String {
    let last = char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[index % 26]);
    if index < 26 {
        last.to_string()
    } else {
        letters(index / 26 - 1) + &last.to_string()
    }
}

/// 0 1 2 5 as "0-2 5".
fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let word = |&(first, last): &(u32, u32)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    runs.iter().map(word).collect::<Vec<_>>().join(" ")
}
