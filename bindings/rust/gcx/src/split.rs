//! What a split gave, and what it would give.

use std::ops::Deref;

use crate::resource::SmResource;

/// The groups of a split, as a slice of [`SmResource`], and what is left over.
///
/// ```
/// let sms = gcx::Device::new(0)?.sms()?;
/// let split = sms.split([24, 32])?;
/// for group in &split {
///     println!("{} SMs", group.sm_count());
/// }
/// let again = split.remainder().split([16])?; // a remainder can be split on
/// assert_eq!(again[0].sm_count(), 16);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    groups: Vec<SmResource>,
    remainder: SmResource,
}

impl Split {
    pub(crate) fn new(groups: Vec<SmResource>, remainder: SmResource) -> Self {
        Split { groups, remainder }
    }

    /// The SMs in no group; a resource of 0 SMs if there are none.
    #[must_use]
    pub fn remainder(&self) -> &SmResource {
        &self.remainder
    }

    /// A group for each request, in their order.
    #[must_use]
    pub fn into_groups(self) -> Vec<SmResource> {
        self.groups
    }
}

impl Deref for Split {
    type Target = [SmResource];

    fn deref(&self) -> &[SmResource] {
        &self.groups
    }
}

impl IntoIterator for Split {
    type Item = SmResource;
    type IntoIter = std::vec::IntoIter<SmResource>;

    fn into_iter(self) -> Self::IntoIter {
        self.groups.into_iter()
    }
}

impl<'a> IntoIterator for &'a Split {
    type Item = &'a SmResource;
    type IntoIter = std::slice::Iter<'a, SmResource>;

    fn into_iter(self) -> Self::IntoIter {
        self.groups.iter()
    }
}

/// What a split would give, in SMs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    sm_counts: Vec<u32>,
    remainder: u32,
}

impl Plan {
    pub(crate) fn new(sm_counts: Vec<u32>, remainder: u32) -> Self {
        Plan { sm_counts, remainder }
    }

    /// The SMs of each group.
    #[must_use]
    pub fn sm_counts(&self) -> &[u32] {
        &self.sm_counts
    }

    /// The SMs of none.
    #[must_use]
    pub fn remainder(&self) -> u32 {
        self.remainder
    }
}
