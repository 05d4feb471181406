//! What people ask for: groups, families, locality domains.

use crate::error::{Error, Result};
use crate::generated::Family;
use crate::sys;

/// Where the SMs of a group are to come from (drivers of CUDA 13.4 and newer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocalityDomain {
    /// One domain, whichever.
    Any,
    /// The domain of this number.
    Id(u32),
}

/// What one group of a split is to be: built up from a count.
///
/// Counts alone work on every driver and are rounded up to what the device can give. Anything
/// else makes the whole split a structured one, for drivers of CUDA 13.1 and newer, with CUDA's own
/// rules, which round nothing.
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
    /// A group of this many SMs, of at least 1.
    pub fn new(sm_count: u32) -> Self {
        let raw = sys::gcx_sm_request { sm_count, ..Default::default() };
        SmRequest { raw, rest: false }
    }

    /// A group of what the others leave; several share it.
    pub fn rest() -> Self {
        let raw = sys::gcx_sm_request { sm_count: sys::GCX_REST, ..Default::default() };
        SmRequest { raw, rest: true }
    }

    /// SMs that are guaranteed to run a cluster together (CUDA 13.1).
    pub fn coscheduled(mut self, sm_count: u32) -> Self {
        self.raw.coscheduled_sm_count = sm_count;
        self
    }

    /// The same, where possible (CUDA 13.1).
    pub fn preferred_coscheduled(mut self, sm_count: u32) -> Self {
        self.raw.preferred_coscheduled_sm_count = sm_count;
        self
    }

    /// Allows SMs that can't be coscheduled, to reach the count (CUDA 13.1).
    pub fn backfill(mut self) -> Self {
        self.raw.flags |= sys::GCX_SM_REQUEST_BACKFILL;
        self
    }

    /// The locality domain that the SMs are to come from (CUDA 13.4).
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
            0 => "a group of 0 SMs was asked for",
            sys::GCX_REST if !self.rest => "4294967295 is no count of SMs",
            _ => return Ok(self.raw),
        };
        let message = format!("{wrong}; SmRequest::rest() takes what the others leave");
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

/// The requests as C takes them, and how many they are.
pub(crate) fn raw_requests<I>(requests: I) -> Result<(Vec<sys::gcx_sm_request>, u32)>
where
    I: IntoIterator,
    I::Item: Into<SmRequest>,
{
    let raw =
        requests.into_iter().map(|request| request.into().checked()).collect::<Result<Vec<_>>>()?;
    let count = u32::try_from(raw.len())
        .map_err(|_| Error::of(sys::GCX_ERROR_INVALID_VALUE, "more groups than a u32 counts"))?;
    Ok((raw, count))
}

/// How a split is to be made.
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
    exact: bool,
    exclude_leased: bool,
    exclude_shared: bool,
}

impl SplitOptions {
    /// The family of what is split, counts rounded up.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another family, which a whole device can be split in: [`Family::Fine`] or
    /// [`Family::MaxCluster`]. Others are an error of the split.
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// Refuses a count that would be rounded.
    pub fn exact(mut self) -> Self {
        self.exact = true;
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
        self.exclude_leased = true;
        self
    }

    /// Leaves out the atom with the SMs of [`Device::shared_sms`](crate::Device::shared_sms), which
    /// has to have found them; after [`Device::map_sms`](crate::Device::map_sms). Until both are
    /// known the split is an error, [`ErrorKind::NotReady`](crate::ErrorKind).
    pub fn exclude_shared(mut self) -> Self {
        self.exclude_shared = true;
        self
    }

    /// The flags for C. The coscheduled family has none of its own, so that something else than a
    /// whole device or its groups must be refused here.
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
        let exact = if self.exact { sys::GCX_SPLIT_EXACT } else { 0 };
        let exclude_leased = if self.exclude_leased { sys::GCX_SPLIT_EXCLUDE_LEASED } else { 0 };
        let shared = if self.exclude_shared { sys::GCX_SPLIT_EXCLUDE_SHARED } else { 0 };
        Ok(family | exact | exclude_leased | shared)
    }
}
