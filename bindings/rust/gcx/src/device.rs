//! Devices.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use crate::call::{check, listed, sm_ids, text, written};
use crate::convert::some;
use crate::error::{Error, Result};
use crate::generated::{Family, LiveContext, LiveLease, MpsState};
use crate::lease::LeaseBuilder;
use crate::partition::{PartitionOptions, Partitions};
use crate::reservation::ReservationBuilder;
use crate::resource::{SmResource, WorkqueueResource};
use crate::split::SmRequest;
use crate::sys;

/// A GPU. Devices are equal if their ordinals are.
///
/// ```
/// let device = gcx::Device::new(0)?;
/// println!("{}: {} SMs", device.name(), device.sm_count());
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    ordinal: i32,
    name: String,
    info: sys::gcx_device_info,
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.ordinal == other.ordinal
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ordinal.hash(state);
    }
}

impl Device {
    /// Returns the device with CUDA's ordinal, which counts those of `CUDA_VISIBLE_DEVICES`. Opens
    /// the driver, see [`open_driver`](crate::open_driver).
    pub fn new(ordinal: u32) -> Result<Self> {
        let ordinal = ordinal_of(ordinal)?;
        let info = written(sys::GCX_DEVICE_INFO_INIT, |info| {
            // SAFETY: C fills in the struct.
            unsafe { sys::gcx_device_get_info(ordinal, info) }
        })?;
        // SAFETY: the name ends with a zero byte.
        let name = unsafe { text(info.name.as_ptr()) };
        Ok(Device { ordinal, name, info })
    }

    /// CUDA's ordinal.
    pub fn ordinal(&self) -> u32 {
        self.ordinal.unsigned_abs()
    }

    /// The driver's name of it; begins with "SIMULATED" on the simulated driver.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Major and minor.
    pub fn compute_capability(&self) -> (u32, u32) {
        let info = &self.info;
        (info.compute_capability_major.unsigned_abs(), info.compute_capability_minor.unsigned_abs())
    }

    /// How many SMs it has.
    pub fn sm_count(&self) -> u32 {
        self.info.sm_count
    }

    /// The smallest coscheduled partition, in SMs.
    pub fn min_partition_size(&self) -> u32 {
        self.info.min_partition_size
    }

    /// The step of the sizes of coscheduled partitions, in SMs.
    pub fn coscheduled_alignment(&self) -> u32 {
        self.info.coscheduled_alignment
    }

    /// How many locality domains it has; 1 if the driver doesn't report them.
    pub fn locality_domain_count(&self) -> u32 {
        self.info.locality_domain_count
    }

    /// Its UUID.
    pub fn uuid(&self) -> [u8; 16] {
        self.info.uuid
    }

    /// All its SMs. Creates no context.
    pub fn sms(&self) -> Result<SmResource> {
        SmResource::from_raw(self.resource(sys::GCX_RESOURCE_SM)?)
    }

    /// Its default workqueue configuration (CUDA 13.1).
    pub fn workqueue(&self) -> Result<WorkqueueResource> {
        WorkqueueResource::from_raw(self.resource(sys::GCX_RESOURCE_WORKQUEUE_CONFIG)?)
    }

    fn resource(&self, kind: sys::gcx_resource_type) -> Result<sys::gcx_resource> {
        written(sys::gcx_resource::default(), |to| {
            // SAFETY: a value is written.
            unsafe { sys::gcx_device_get_resource(self.ordinal, kind, to) }
        })
    }

    /// The priorities of its streams, the most urgent first: `-5..=0` on an H100.
    pub fn stream_priority_range(&self) -> Result<RangeInclusive<i32>> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: two numbers are written.
        check(unsafe {
            sys::gcx_device_get_stream_priority_range(self.ordinal, &mut least, &mut greatest)
        })?;
        Ok(greatest..=least)
    }

    /// Reads which SMs each atom of a family has, for [`SmResource::sm_ids`] and overlaps across
    /// families. The first call of a process and family costs a few contexts.
    pub fn map_sms(&self, family: Family) -> Result<()> {
        // SAFETY: numbers are passed.
        check(unsafe { sys::gcx_device_map_sms(self.ordinal, family.into()) })
    }

    /// Finds the SMs that all partitions of this process share because a module with dynamic
    /// parallelism is loaded (compute capability 9.x), see `docs/explanation/isolation.md`. While it finds
    /// none, it may create and probe two contexts. Fails with [`NotSupported`](crate::ErrorKind) on
    /// compute capability 9.x under MPS, where SM numbers are virtual.
    pub fn shared_sms(&self) -> Result<Vec<u32>> {
        sm_ids(|ids, room, count| {
            // SAFETY: `ids` has `room` elements.
            unsafe { sys::gcx_device_find_shared_sms(self.ordinal, ids, room, count) }
        })
    }

    /// Splits the device, and creates a context and a stream for each group. A request is a count,
    /// `None` for what the others leave, or a [`SmRequest`].
    ///
    /// ```
    /// let device = gcx::Device::new(0)?;
    /// let parts = device.partition([Some(24), None])?;
    /// let (decode, prefill) = (&parts[0], &parts[1]);
    /// prefill.wait(decode)?; // on the device; this thread goes on
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn partition<I>(&self, requests: I) -> Result<Partitions>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.partition_with(requests, &PartitionOptions::new())
    }

    /// As [`partition`](Self::partition), with options.
    pub fn partition_with<I>(&self, requests: I, options: &PartitionOptions) -> Result<Partitions>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        Partitions::new(&self.sms()?.split_with(requests, options.split_options())?, options)
    }

    /// Returns a builder of a lease. [`Lease::acquire`](crate::Lease::acquire) is the short form.
    pub fn lease<'a>(&self) -> LeaseBuilder<'a> {
        LeaseBuilder::of_device(self.ordinal)
    }

    /// Returns a builder of a reservation.
    /// [`Reservation::acquire`](crate::Reservation::acquire) is the short form.
    pub fn reserve<'a>(&self) -> ReservationBuilder<'a> {
        ReservationBuilder::new(self.ordinal)
    }

    /// Whether MPS shares the device between processes.
    ///
    /// ```
    /// if gcx::Device::new(0)?.mps() != gcx::MpsState::On {
    ///     eprintln!("processes take turns on the device: reservations isolate nothing");
    /// }
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn mps(&self) -> MpsState {
        self.info.mps.into()
    }

    /// `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`, the process's limit: more than 0, at most 100. `None`
    /// if it isn't set or holds something else.
    pub fn mps_thread_percentage(&self) -> Option<f32> {
        some(self.info.mps_thread_percentage, 0.0)
    }

    /// Lists its leases, see [`leases`](crate::leases).
    pub fn leases(&self) -> Result<Vec<LiveLease>> {
        leases_of(self.ordinal)
    }

    /// Lists its green contexts in use, see [`live_contexts`](crate::live_contexts).
    pub fn live_contexts(&self) -> Result<Vec<LiveContext>> {
        live_contexts_of(self.ordinal)
    }
}

/// The ordinal as C takes it.
pub(crate) fn ordinal_of(ordinal: u32) -> Result<i32> {
    i32::try_from(ordinal).map_err(|_| {
        let message = format!("there is no device {ordinal}; the first is 0");
        Error::of(sys::GCX_ERROR_INVALID_DEVICE, &message)
    })
}

pub(crate) fn live_contexts_of(device: i32) -> Result<Vec<LiveContext>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_context_list(device, list, room, count) }
    })?;
    found.iter().map(LiveContext::try_from).collect()
}

pub(crate) fn leases_of(device: i32) -> Result<Vec<LiveLease>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_lease_list(device, list, room, count) }
    })?;
    found.iter().map(LiveLease::try_from).collect()
}

/// Returns the devices in CUDA's order. Opens the driver, see [`open_driver`](crate::open_driver).
///
/// ```
/// for device in gcx::devices()? {
///     println!("{}: {}", device.ordinal(), device.name());
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn devices() -> Result<Vec<Device>> {
    // SAFETY: a number is written.
    let count = written(0, |count| unsafe { sys::gcx_device_get_count(count) })?;
    (0..count.unsigned_abs()).map(Device::new).collect()
}
