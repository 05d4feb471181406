//! Resources: sets of SMs, and workqueues, as values.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr::null_mut;

use crate::call::written;
use crate::error::{Error, Result};
use crate::generated::{Family, WorkqueueScope};
use crate::split::{raw_requests, LocalityDomain, Plan, SmRequest, Split, SplitOptions};
use crate::sys;

/// A set of SMs of one device: a value, valid in the process that made it.
///
/// ```
/// let sms = gcx::Device::new(0)?.sms()?;
/// let ([small, more], rest) = sms.split_array([24, 32])?;
/// let large = small.union(&more)?;
/// assert_eq!((large.sm_count(), rest.sm_count()), (56, 76));
/// assert!(small.is_subset(&large)? && small.is_disjoint(&more)?);
/// assert_eq!(large.difference(&small)?, more);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SmResource {
    value: sys::gcx_resource,
    info: sys::gcx_resource_info,
}

impl SmResource {
    /// Converts the C API's value. Fails with [`InvalidResourceType`](crate::ErrorKind) if it isn't
    /// a resource of SMs, and with `InvalidResourceConfiguration` if it was changed.
    #[inline]
    pub fn from_raw(value: sys::gcx_resource) -> Result<Self> {
        let info = info_of(&value)?;
        if info.type_ != sys::GCX_RESOURCE_SM {
            return Err(wrong_type("SMs"));
        }
        Ok(SmResource { value, info })
    }

    /// Returns the resource that a function writes.
    pub(crate) fn written(
        write: impl FnOnce(&mut sys::gcx_resource) -> sys::gcx_result,
    ) -> Result<Self> {
        Self::from_raw(written(sys::gcx_resource::default(), write)?)
    }

    /// The C API's value.
    pub fn as_raw(&self) -> &sys::gcx_resource {
        &self.value
    }

    /// How many SMs it has.
    pub fn sm_count(&self) -> u32 {
        self.info.sm_count
    }

    /// Whether it has no SMs.
    pub fn is_empty(&self) -> bool {
        self.info.sm_count == 0
    }

    /// The ordinal of its device.
    pub fn device(&self) -> u32 {
        self.info.device.unsigned_abs()
    }

    /// How its SMs were split.
    pub fn family(&self) -> Family {
        self.info.family.into()
    }

    /// How many atoms it has, the smallest groups into which the driver splits the device.
    pub fn atom_count(&self) -> u32 {
        self.info.atom_count
    }

    /// The smallest group of a split of it, in SMs; all of it if it can't be split.
    pub fn min_partition_size(&self) -> u32 {
        self.info.min_partition_size
    }

    /// The step of the sizes of its groups, in SMs.
    pub fn coscheduled_alignment(&self) -> u32 {
        self.info.coscheduled_alignment
    }

    /// The `GCX_SM_REQUEST_` flags of a structured group; 0 of others.
    pub fn flags(&self) -> u32 {
        self.info.flags
    }

    /// The locality domain that a structured group was requested from.
    pub fn locality_domain(&self) -> Option<LocalityDomain> {
        if self.info.flags & sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_ID == 0 {
            return None;
        }
        Some(match self.info.locality_domain_id {
            sys::GCX_LOCALITY_DOMAIN_ID_ANY => LocalityDomain::Any,
            number => LocalityDomain::Id(number),
        })
    }

    /// Divides it into a disjoint group for each request, and a remainder. A request is a count,
    /// which is rounded up to what the device can give, `None` for what the others leave, or a
    /// [`SmRequest`].
    ///
    /// ```
    /// let sms = gcx::Device::new(0)?.sms()?;
    /// let split = sms.split([Some(24), None])?;
    /// let counts: Vec<u32> = split.iter().map(|group| group.sm_count()).collect();
    /// assert_eq!(counts, [24, 108]);
    /// assert!(split.remainder().is_empty());
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn split<I>(&self, requests: I) -> Result<Split>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.split_with(requests, &SplitOptions::new())
    }

    /// As [`split`](Self::split), with options.
    pub fn split_with<I>(&self, requests: I, options: &SplitOptions) -> Result<Split>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        let (requests, count) = raw_requests(requests)?;
        let flags = options.flags(self.family())?;
        let mut groups = vec![sys::gcx_resource::default(); requests.len()];
        let (asked, to, none) = (requests.as_ptr(), groups.as_mut_ptr(), null_mut());
        let remainder = SmResource::written(|rest| {
            // SAFETY: a value and `count` requests are read, and as many values and one written.
            unsafe { sys::gcx_sm_split(&self.value, asked, count, flags, to, rest, none, none) }
        })?;
        let groups = groups.into_iter().map(SmResource::from_raw).collect::<Result<_>>()?;
        Ok(Split { groups, remainder })
    }

    /// As [`split`](Self::split), for a constant number of groups; the second is the remainder.
    pub fn split_array<R: Into<SmRequest>, const N: usize>(
        &self,
        requests: [R; N],
    ) -> Result<([SmResource; N], SmResource)> {
        let split = self.split(requests)?;
        let rest = *split.remainder();
        let groups: Vec<SmResource> = split.into_iter().collect();
        match groups.try_into() {
            Ok(groups) => Ok((groups, rest)),
            Err(_) => unreachable!("a split has a group for each request"),
        }
    }

    /// Returns the SM counts that [`split`](Self::split) would give.
    ///
    /// ```
    /// let sms = gcx::Device::new(0)?.sms()?;
    /// let plan = sms.plan([Some(10), None])?;
    /// assert_eq!((plan.sm_counts(), plan.remainder()), (&[12, 120][..], 0));
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn plan<I>(&self, requests: I) -> Result<Plan>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.plan_with(requests, &SplitOptions::new())
    }

    /// As [`plan`](Self::plan), with options.
    pub fn plan_with<I>(&self, requests: I, options: &SplitOptions) -> Result<Plan>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        let (requests, count) = raw_requests(requests)?;
        let flags = options.flags(self.family())?;
        let mut sm_counts = vec![0; requests.len()];
        let (asked, to, none) = (requests.as_ptr(), sm_counts.as_mut_ptr(), null_mut());
        let remainder = written(0, |rest| {
            // SAFETY: a value and `count` requests are read, and as many numbers and one written.
            unsafe { sys::gcx_sm_split(&self.value, asked, count, flags, none, none, to, rest) }
        })?;
        Ok(Plan { sm_counts, remainder })
    }

    /// The SMs of both.
    pub fn intersection(&self, other: &SmResource) -> Result<SmResource> {
        self.difference(&self.difference(other)?)
    }

    /// Whether they share no SM, by [`overlap`](Self::overlap).
    pub fn is_disjoint(&self, other: &SmResource) -> Result<bool> {
        Ok(self.overlap(other)? == 0)
    }

    /// Whether the other has all SMs of this, by [`overlap`](Self::overlap).
    pub fn is_subset(&self, other: &SmResource) -> Result<bool> {
        Ok(self.overlap(other)? == self.sm_count())
    }

    /// Returns its atoms, each as a resource.
    pub fn atoms(&self) -> Result<Vec<SmResource>> {
        let atom = |index| {
            SmResource::written(|to| {
                // SAFETY: a value is read, and one is written.
                unsafe { sys::gcx_resource_get_atom(&self.value, index, to) }
            })
        };
        (0..self.atom_count()).map(atom).collect()
    }
}

impl PartialEq for SmResource {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for SmResource {}

impl Hash for SmResource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl fmt::Debug for SmResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family();
        write!(out, "SmResource({} SMs of device {}, {family:?})", self.sm_count(), self.device())
    }
}

#[inline]
fn info_of(value: &sys::gcx_resource) -> Result<sys::gcx_resource_info> {
    // SAFETY: a value is read, and C fills in the struct.
    written(sys::GCX_RESOURCE_INFO_INIT, |info| unsafe { sys::gcx_resource_get_info(value, info) })
}

fn wrong_type(expected: &str) -> Error {
    let message = format!("the resource isn't one of {expected}");
    Error::of(sys::GCX_ERROR_INVALID_RESOURCE_TYPE, &message)
}

/// A workqueue configuration, or a context's workqueue: a value (CUDA 13.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkqueueResource(sys::gcx_resource);

impl WorkqueueResource {
    /// Converts the C API's value, as [`SmResource::from_raw`] does.
    pub fn from_raw(value: sys::gcx_resource) -> Result<Self> {
        match info_of(&value)?.type_ {
            sys::GCX_RESOURCE_WORKQUEUE_CONFIG | sys::GCX_RESOURCE_WORKQUEUE => Ok(Self(value)),
            _ => Err(wrong_type("a workqueue")),
        }
    }

    /// The C API's value.
    pub fn as_raw(&self) -> &sys::gcx_resource {
        &self.0
    }

    /// The ordinal of its device.
    pub fn device(&self) -> Result<u32> {
        Ok(info_of(&self.0)?.device.unsigned_abs())
    }

    /// How its contexts share queues; `None` of a context's workqueue.
    pub fn scope(&self) -> Result<Option<WorkqueueScope>> {
        let info = info_of(&self.0)?;
        Ok(match (info.type_, info.workqueue_scope) {
            (sys::GCX_RESOURCE_WORKQUEUE, _) => None,
            (_, scope) => Some(scope.into()),
        })
    }

    /// How many workloads are expected at once.
    pub fn concurrency_limit(&self) -> Result<u32> {
        Ok(info_of(&self.0)?.workqueue_concurrency_limit)
    }

    /// Returns the configuration with another scope, and with another limit unless that is `None`.
    /// Fails with [`InvalidResourceType`](crate::ErrorKind) on a context's workqueue.
    pub fn configured(&self, scope: WorkqueueScope, limit: Option<u32>) -> Result<Self> {
        if limit == Some(0) {
            let message = "a concurrency limit is at least 1; None keeps the present one";
            return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
        }
        let (scope, limit) = (scope.into(), limit.unwrap_or(0));
        written(sys::gcx_resource::default(), |to| {
            // SAFETY: a value is read, and one is written.
            unsafe { sys::gcx_workqueue_configure(&self.0, scope, limit, to) }
        })
        .map(Self)
    }
}

impl fmt::Debug for WorkqueueResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scope(), self.concurrency_limit()) {
            (Ok(Some(scope)), Ok(limit)) => write!(out, "WorkqueueResource({scope:?}, {limit})"),
            _ => write!(out, "WorkqueueResource"),
        }
    }
}
