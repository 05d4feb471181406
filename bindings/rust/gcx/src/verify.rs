//! Proof: which SMs do streams really run on?

use std::collections::BTreeMap;
use std::fmt;

use crate::driver::driver_info;
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::sys;

/// Shows on the hardware which SMs partitions or streams use, of one device: a kernel that fills
/// each stream's SMs notes their numbers.
///
/// ```
/// let parts = gcx::Device::new(0)?.partition([108, 24])?;
/// let proof = gcx::verify(&parts)?;
/// assert!(proof.is_ok(), "{proof}");
/// assert!(proof.overlap().is_empty());
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::InvalidValue`](crate::ErrorKind) there is none, or they are of two devices; and those
/// of [`Stream::sm_ids`].
pub fn verify<'a, I, S>(streams: I) -> Result<Verification>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<Stream> + 'a,
{
    let mut groups = Vec::new();
    let mut device = None;
    for stream in streams {
        let stream = stream.as_ref();
        let info = stream.info()?;
        if *device.get_or_insert(info.device) != info.device {
            let message = "the streams are of several devices; verify those of each on its own";
            return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
        }
        groups.push(VerifiedGroup { sm_count: info.sm_count, seen: stream.sm_ids()? });
    }
    let device = device.ok_or_else(|| {
        Error::of(sys::GCX_ERROR_INVALID_VALUE, "there is no stream to verify; give at least one")
    })?;
    Ok(Verification { device, groups, simulated: driver_info()?.simulated })
}

/// What one stream showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerifiedGroup {
    sm_count: u32,
    seen: Vec<u32>,
}

impl VerifiedGroup {
    /// The SMs that were promised.
    #[must_use]
    pub fn sm_count(&self) -> u32 {
        self.sm_count
    }

    /// The numbers of the SMs that its kernels ran on, ascending.
    #[must_use]
    pub fn seen(&self) -> &[u32] {
        &self.seen
    }
}

/// What [`verify`] found. Printed it is a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verification {
    device: u32,
    groups: Vec<VerifiedGroup>,
    simulated: bool,
}

impl Verification {
    /// Whether each stream ran on as many SMs as promised, and no SM is in two groups.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems().is_empty()
    }

    /// The ordinal of the device.
    #[must_use]
    pub fn device(&self) -> u32 {
        self.device
    }

    /// Whether the driver is the simulated one, which proves nothing.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// What each stream showed, in the order given.
    #[must_use]
    pub fn groups(&self) -> &[VerifiedGroup] {
        &self.groups
    }

    /// The numbers of the SMs that were seen in more than one group.
    #[must_use]
    pub fn overlap(&self) -> Vec<u32> {
        let shared = self.owners().into_iter().filter(|(_, owners)| owners.len() > 1);
        shared.map(|(id, _)| id).collect()
    }

    /// What isn't as it should be, in words; empty if all is well.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let (promised, seen) = (group.sm_count as usize, group.seen.len());
            if seen != promised {
                let hint = if seen < promised {
                    "; if other work keeps the GPU busy, stop it and verify again"
                } else {
                    ""
                };
                found.push(format!(
                    "group {index}: its kernels were to run on {promised} SMs and were seen on \
                     {seen} ({}){hint}",
                    ranges(&group.seen)
                ));
            }
        }
        let mut shared: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
        for (id, owners) in self.owners() {
            if owners.len() > 1 {
                shared.entry(owners).or_default().push(id);
            }
        }
        for (owners, ids) in shared {
            let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
            let owners = owners.join(" and ");
            found.push(format!("groups {owners} share {} SMs: {}", ids.len(), ranges(&ids)));
        }
        found
    }

    /// The groups of each SM.
    fn owners(&self) -> BTreeMap<u32, Vec<usize>> {
        let mut owners: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            for &id in &group.seen {
                owners.entry(id).or_default().push(index);
            }
        }
        owners
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.simulated {
            writeln!(out, "SIMULATED: no GPU is involved")?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            let ids = ranges(&group.seen);
            writeln!(out, "group {index}: {} SMs, seen on {ids}", group.sm_count)?;
        }
        let problems = self.problems();
        if problems.is_empty() {
            return write!(out, "ok: each ran on as many SMs as promised, and no SM is in two");
        }
        write!(out, "FAILED: {}", problems.join("\n  "))
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
    let words: Vec<String> = runs
        .iter()
        .map(
            |&(first, last)| {
                if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                }
            },
        )
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(" ")
    }
}
