//! Splits: what is requested of a group, how the split is made, and what it gives.

use crate::call::{array, slice_of};
use crate::error::{Error, Result};
use crate::generated::Family;
use crate::resource::SmResource;
use crate::sys;

/// Where the SMs of a group are to come from (CUDA 13.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocalityDomain {
    /// Any one domain.
    Any,
    /// The domain with this number.
    Id(u32),
}

/// A request for one group of a split, which starts from a count.
///
/// A count works on every driver and is rounded up to what the device can give. Anything else makes
/// the whole split a structured one, whose rules are CUDA's and round nothing (CUDA 13.1).
///
/// ```
/// use gcx::SmRequest;
///
/// let decode = SmRequest::new(24).coscheduled(8).backfill();
/// let prefill = SmRequest::rest();
/// assert_ne!(decode, prefill);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct SmRequest {
    raw: sys::gcx_sm_request,
    rest: bool,
}

impl SmRequest {
    /// Requests this many SMs, at least 1.
    pub fn new(sm_count: u32) -> Self {
        let raw = sys::gcx_sm_request { sm_count, ..Default::default() };
        SmRequest { raw, rest: false }
    }

    /// Requests what the other groups leave; several such groups share it.
    pub fn rest() -> Self {
        SmRequest { rest: true, ..Self::new(sys::GCX_REST) }
    }

    /// Requires this many SMs to run a cluster together (CUDA 13.1).
    pub fn coscheduled(mut self, sm_count: u32) -> Self {
        self.raw.coscheduled_sm_count = sm_count;
        self
    }

    /// Prefers this many SMs to run a cluster together (CUDA 13.1).
    pub fn preferred_coscheduled(mut self, sm_count: u32) -> Self {
        self.raw.preferred_coscheduled_sm_count = sm_count;
        self
    }

    /// Allows SMs that can't be coscheduled, to reach the count (CUDA 13.1).
    pub fn backfill(mut self) -> Self {
        self.raw.flags |= sys::GCX_SM_REQUEST_BACKFILL;
        self
    }

    /// Requests SMs of a locality domain (CUDA 13.4).
    pub fn locality_domain(mut self, domain: LocalityDomain) -> Self {
        self.raw.flags |= sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_ID;
        self.raw.locality_domain_id = match domain {
            LocalityDomain::Any => sys::GCX_LOCALITY_DOMAIN_ID_ANY,
            LocalityDomain::Id(number) => number,
        };
        self
    }

    /// Allows SMs of no locality domain, to reach the count (CUDA 13.4).
    pub fn supplemental_sms(mut self) -> Self {
        self.raw.flags |= sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS;
        self
    }

    fn checked(self) -> Result<sys::gcx_sm_request> {
        let wrong = match self.raw.sm_count {
            0 => "a group of 0 SMs was requested",
            sys::GCX_REST if !self.rest => "4294967295 is no count of SMs",
            _ => return Ok(self.raw),
        };
        let message = format!("{wrong}; SmRequest::rest() takes what the other groups leave");
        Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, &message))
    }
}

impl From<u32> for SmRequest {
    fn from(sm_count: u32) -> Self {
        SmRequest::new(sm_count)
    }
}

/// `None` is what the other groups leave.
impl From<Option<u32>> for SmRequest {
    fn from(sm_count: Option<u32>) -> Self {
        sm_count.map_or_else(SmRequest::rest, SmRequest::new)
    }
}

impl From<&SmRequest> for SmRequest {
    fn from(request: &SmRequest) -> Self {
        *request
    }
}

/// The requests as C takes them, and their number.
pub(crate) fn raw_requests<I>(requests: I) -> Result<(Vec<sys::gcx_sm_request>, u32)>
where
    I: IntoIterator,
    I::Item: Into<SmRequest>,
{
    array(requests.into_iter().map(|request| request.into().checked()))
}

/// How a split is made.
///
/// ```
/// use gcx::{Family, SplitOptions};
///
/// let sms = gcx::Device::new(0)?.sms()?;
/// let options = SplitOptions::new().family(Family::Fine).exact();
/// assert_eq!(sms.split_with([30], &options)?[0].sm_count(), 30);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct SplitOptions {
    family: Option<Family>,
    flags: u32,
}

impl SplitOptions {
    /// Keeps the family of the resource, and rounds counts up.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits a whole device in another family, [`Family::Fine`] or [`Family::MaxCluster`].
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// Refuses a count that would be rounded.
    pub fn exact(mut self) -> Self {
        self.flags |= sys::GCX_SPLIT_EXACT;
        self
    }

    /// Takes only SMs that no [`Lease`](crate::Lease) has.
    ///
    /// ```
    /// use gcx::SplitOptions;
    ///
    /// let device = gcx::Device::new(0)?;
    /// let lease = gcx::Lease::acquire(&device, 32)?;
    /// let clear = device.sms()?.split_with([24], &SplitOptions::new().exclude_leased())?;
    /// assert!(clear[0].is_disjoint(&lease.sms()?)?);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn exclude_leased(mut self) -> Self {
        self.flags |= sys::GCX_SPLIT_EXCLUDE_LEASED;
        self
    }

    /// Excludes the atom with the SMs of [`Device::shared_sms`](crate::Device::shared_sms). The
    /// split fails with [`SharedSmsUnknown`](crate::ErrorKind) until that has found them, and with
    /// `SmsNotMapped` until [`Device::map_sms`](crate::Device::map_sms) was called.
    pub fn exclude_shared(mut self) -> Self {
        self.flags |= sys::GCX_SPLIT_EXCLUDE_SHARED;
        self
    }

    /// The flags for C, which has none for the coscheduled family: it is refused here for a
    /// resource of another family.
    pub(crate) fn flags(self, input: Family) -> Result<u32> {
        let family = match self.family {
            None => sys::GCX_SPLIT_DEFAULT,
            Some(Family::Fine) => sys::GCX_SPLIT_IGNORE_SM_COSCHEDULING,
            Some(Family::MaxCluster) => sys::GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
            Some(Family::Coscheduled) if input == Family::Coscheduled => sys::GCX_SPLIT_DEFAULT,
            Some(other) => {
                let message = format!(
                    "SMs of the family {input:?} can't be split in the family {other:?}; split a \
                     whole device, in Coscheduled, Fine or MaxCluster"
                );
                let result = sys::GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
                return Err(Error::of(result, &message));
            }
        };
        Ok(family | self.flags)
    }
}

/// The groups of a split, as a slice of [`SmResource`], and the remainder.
///
/// ```
/// let sms = gcx::Device::new(0)?.sms()?;
/// let split = sms.split([24, 32])?;
/// for group in &split {
///     println!("{} SMs", group.sm_count());
/// }
/// let again = split.remainder().split([16])?; // a remainder can be split too
/// assert_eq!(again[0].sm_count(), 16);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    pub(crate) groups: Vec<SmResource>,
    pub(crate) remainder: SmResource,
}

impl Split {
    /// The SMs in no group; a resource of 0 SMs if there are none.
    pub fn remainder(&self) -> &SmResource {
        &self.remainder
    }
}

slice_of!(Split, groups: SmResource);

/// The SM counts that a split would give.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    pub(crate) sm_counts: Vec<u32>,
    pub(crate) remainder: u32,
}

impl Plan {
    /// The SMs of each group.
    pub fn sm_counts(&self) -> &[u32] {
        &self.sm_counts
    }

    /// The SMs in no group.
    pub fn remainder(&self) -> u32 {
        self.remainder
    }
}
