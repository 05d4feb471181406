//! Resources of SMs, as values.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

use crate::atoms::Atoms;
use crate::error::{check, Error, Result};
use crate::generated::Family;
use crate::request::{raw_requests, LocalityDomain, SmRequest, SplitOptions};
use crate::split::{Plan, Split};
use crate::sys;

/// A set of SMs of one device: a value that is copied and thrown away at will. It is valid in the
/// process that made it.
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
    /// Of what the C API calls a resource; it refuses what isn't one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidResourceType`](crate::ErrorKind) it isn't a resource of SMs;
    /// `InvalidResourceConfiguration` it was changed.
    #[inline]
    pub fn from_raw(value: sys::gcx_resource) -> Result<Self> {
        let info = info_of(&value)?;
        if info.type_ != sys::GCX_RESOURCE_SM {
            return Err(wrong_type("SMs"));
        }
        Ok(SmResource { value, info })
    }

    /// The C API's value.
    #[must_use]
    pub fn as_raw(&self) -> &sys::gcx_resource {
        &self.value
    }

    /// How many SMs it has.
    #[must_use]
    pub fn sm_count(&self) -> u32 {
        self.info.sm_count
    }

    /// Whether it has no SMs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.info.sm_count == 0
    }

    /// The ordinal of its device.
    #[must_use]
    pub fn device(&self) -> u32 {
        self.info.device.unsigned_abs()
    }

    /// How its SMs were split off.
    #[must_use]
    pub fn family(&self) -> Family {
        // A family that a newer library has is nothing that this crate can split.
        self.info.family.into()
    }

    /// How many atoms it is made of, the smallest groups into which the driver splits the device.
    #[must_use]
    pub fn atom_count(&self) -> u32 {
        self.info.atom_count
    }

    /// The least SMs that splitting this can give; all of it, where it can't be split.
    #[must_use]
    pub fn min_partition_size(&self) -> u32 {
        self.info.min_partition_size
    }

    /// The step of the sizes that splitting this can give, in SMs.
    #[must_use]
    pub fn coscheduled_alignment(&self) -> u32 {
        self.info.coscheduled_alignment
    }

    /// Of a structured group: its `GCX_SM_REQUEST_` flags; else 0.
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.info.flags
    }

    /// Of a structured group that was asked from one: its locality domain.
    #[must_use]
    pub fn locality_domain(&self) -> Option<LocalityDomain> {
        if self.info.flags & sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_ID == 0 {
            return None;
        }
        Some(match self.info.locality_domain_id {
            sys::GCX_LOCALITY_DOMAIN_ID_ANY => LocalityDomain::Any,
            number => LocalityDomain::Id(number),
        })
    }

    /// Divides it into a group for each request, disjoint, and what is left over. Counts are rounded
    /// up to what the device can give. Nothing is made on the device.
    ///
    /// A request is a count, `None` for what the others leave, or a [`SmRequest`].
    ///
    /// ```
    /// let sms = gcx::Device::new(0)?.sms()?;
    /// let split = sms.split([Some(24), None])?;
    /// let counts: Vec<u32> = split.iter().map(|group| group.sm_count()).collect();
    /// assert_eq!(counts, [24, 108]);
    /// assert!(split.remainder().is_empty());
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The groups don't fit: [`ErrorKind::InvalidResourceConfiguration`](crate::ErrorKind). No
    /// requests, or a count of 0: `InvalidValue`. The driver lacks what was asked: `NotSupported`.
    pub fn split<I>(&self, requests: I) -> Result<Split>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.split_with(requests, &SplitOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split); with [`SplitOptions::exact`] also a count that can't be met.
    pub fn split_with<I>(&self, requests: I, options: &SplitOptions) -> Result<Split>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        let (requests, count) = raw_requests(requests)?;
        let flags = options.flags(self.family())?;
        let mut groups = vec![sys::gcx_resource::default(); requests.len()];
        let mut rest = sys::gcx_resource::default();
        // SAFETY: the arrays have `count` elements each.
        check(unsafe {
            sys::gcx_sm_split(
                &self.value,
                requests.as_ptr(),
                count,
                flags,
                groups.as_mut_ptr(),
                &mut rest,
            )
        })?;
        let groups = groups.into_iter().map(SmResource::from_raw).collect::<Result<_>>()?;
        Ok(Split::new(groups, SmResource::from_raw(rest)?))
    }

    /// The same for a number of groups that is known, to be taken apart by a pattern; the second is
    /// what is left over.
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    pub fn split_array<R: Into<SmRequest>, const N: usize>(
        &self,
        requests: [R; N],
    ) -> Result<([SmResource; N], SmResource)> {
        let split = self.split(requests)?;
        let rest = *split.remainder();
        let groups: Box<[SmResource; N]> = match split.into_groups().into_boxed_slice().try_into() {
            Ok(groups) => groups,
            Err(_) => unreachable!("a split has a group for each request"),
        };
        Ok((*groups, rest))
    }

    /// What [`split`](Self::split) would give, in SMs. Makes nothing.
    ///
    /// ```
    /// let sms = gcx::Device::new(0)?.sms()?;
    /// let plan = sms.plan([Some(10), None])?;
    /// assert_eq!((plan.sm_counts(), plan.remainder()), (&[12, 120][..], 0));
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    pub fn plan<I>(&self, requests: I) -> Result<Plan>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.plan_with(requests, &SplitOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`split_with`](Self::split_with).
    pub fn plan_with<I>(&self, requests: I, options: &SplitOptions) -> Result<Plan>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        let (requests, count) = raw_requests(requests)?;
        let flags = options.flags(self.family())?;
        let mut counts = vec![0; requests.len()];
        let mut rest = 0;
        // SAFETY: the arrays have `count` elements each.
        check(unsafe {
            sys::gcx_sm_plan(
                &self.value,
                requests.as_ptr(),
                count,
                flags,
                counts.as_mut_ptr(),
                &mut rest,
            )
        })?;
        Ok(Plan::new(counts, rest))
    }

    /// The SMs of both together.
    ///
    /// # Errors
    ///
    /// They are of two devices or families.
    pub fn union(&self, other: &SmResource) -> Result<SmResource> {
        self.combined(other, sys::gcx_resource_union)
    }

    /// The SMs of this without those of the other.
    ///
    /// # Errors
    ///
    /// They are of two devices or families.
    pub fn difference(&self, other: &SmResource) -> Result<SmResource> {
        self.combined(other, sys::gcx_resource_subtract)
    }

    /// The SMs that are in both.
    ///
    /// # Errors
    ///
    /// They are of two devices or families.
    pub fn intersection(&self, other: &SmResource) -> Result<SmResource> {
        self.combined(other, sys::gcx_resource_intersect)
    }

    fn combined(&self, other: &SmResource, combine: Combine) -> Result<SmResource> {
        let mut result = sys::gcx_resource::default();
        // SAFETY: `combine` is one of the three functions that read two values and write one.
        check(unsafe { combine(&self.value, &other.value, &mut result) })?;
        SmResource::from_raw(result)
    }

    /// How many SMs they share: 0 for two devices.
    ///
    /// # Errors
    ///
    /// Across families it is known once [`Device::map_sms`](crate::Device::map_sms) was called for
    /// both: [`ErrorKind::NotReady`](crate::ErrorKind) before; `NotSupported` of a structured one.
    pub fn overlap(&self, other: &SmResource) -> Result<u32> {
        let mut sm_count = 0;
        // SAFETY: two values are read, and a number is written.
        check(unsafe { sys::gcx_resource_get_overlap(&self.value, &other.value, &mut sm_count) })?;
        Ok(sm_count)
    }

    /// Whether they share no SM.
    ///
    /// # Errors
    ///
    /// As [`overlap`](Self::overlap).
    pub fn is_disjoint(&self, other: &SmResource) -> Result<bool> {
        Ok(self.overlap(other)? == 0)
    }

    /// Whether all SMs of this are the other's.
    ///
    /// # Errors
    ///
    /// As [`overlap`](Self::overlap).
    pub fn is_subset(&self, other: &SmResource) -> Result<bool> {
        Ok(self.overlap(other)? == self.sm_count())
    }

    /// How many of its SMs are held by contexts in use, those that
    /// [`live_contexts`](crate::live_contexts) lists.
    ///
    /// # Errors
    ///
    /// As [`overlap`](Self::overlap), beside contexts of other families.
    pub fn live_overlap(&self) -> Result<u32> {
        let mut sm_count = 0;
        // SAFETY: a value is read, and a number is written.
        check(unsafe { sys::gcx_resource_get_live_overlap(&self.value, &mut sm_count) })?;
        Ok(sm_count)
    }

    /// The most blocks that a thread block cluster of a kernel on these SMs can have; 1 on a device
    /// without clusters. The first call makes a context of them, and keeps it.
    ///
    /// # Errors
    ///
    /// As making a context.
    pub fn max_cluster_size(&self) -> Result<u32> {
        let mut blocks = 0;
        // SAFETY: a value is read, and a number is written.
        check(unsafe { sys::gcx_resource_get_max_cluster_size(&self.value, &mut blocks) })?;
        Ok(blocks)
    }

    /// The numbers of its SMs, ascending, as [`Device::map_sms`](crate::Device::map_sms) found them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotReady`](crate::ErrorKind) the family isn't mapped; `NotSupported` it is of a
    /// structured split: ask a stream of it.
    pub fn sm_ids(&self) -> Result<Vec<u32>> {
        sm_ids(|ids, room, count| {
            // SAFETY: `ids` has `room` elements.
            unsafe { sys::gcx_resource_get_sm_ids(&self.value, ids, room, count) }
        })
    }

    /// Its atoms, each as a resource of its own.
    #[must_use]
    pub fn atoms(&self) -> Atoms<'_> {
        Atoms::new(self)
    }
}

/// What combines two values to one in the C API.
type Combine = unsafe extern "C" fn(
    *const sys::gcx_resource,
    *const sys::gcx_resource,
    *mut sys::gcx_resource,
) -> sys::gcx_result;

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

/// What C tells of a value.
#[inline]
pub(crate) fn info_of(value: &sys::gcx_resource) -> Result<sys::gcx_resource_info> {
    let mut info = sys::GCX_RESOURCE_INFO_INIT;
    // SAFETY: a value is read, and the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_resource_get_info(value, &mut info) })?;
    Ok(info)
}

/// The error for a resource of another kind than one of these.
pub(crate) fn wrong_type(wanted: &str) -> Error {
    let message = format!("the resource isn't one of {wanted}");
    Error::of(sys::GCX_ERROR_INVALID_RESOURCE_TYPE, &message)
}

/// The SM numbers that a function of the C API writes.
pub(crate) fn sm_ids(
    read: impl FnOnce(*mut u32, u32, *mut u32) -> sys::gcx_result,
) -> Result<Vec<u32>> {
    let mut ids = vec![0; sys::GCX_MAX_SMS as usize];
    let mut count = 0;
    check(read(ids.as_mut_ptr(), sys::GCX_MAX_SMS, ptr::addr_of_mut!(count)))?;
    ids.truncate(count as usize);
    Ok(ids)
}
