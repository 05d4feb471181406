//! Devices.

use std::ops::{Range, RangeInclusive};

use crate::acquire::LeaseBuilder;
use crate::error::{check, text, Error, Result};
use crate::generated::{Family, LiveContext, LiveLease, MpsInfo};
use crate::live::{leases_of, live_contexts_of};
use crate::partition::{PartitionOptions, Partitions};
use crate::request::SmRequest;
use crate::reservation::ReservationBuilder;
use crate::resource::{sm_ids, SmResource};
use crate::sys;
use crate::workqueue::WorkqueueResource;

/// A GPU.
///
/// ```
/// let device = gcx::Device::new(0)?;
/// println!("{}: {} SMs", device.name(), device.sm_count());
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    ordinal: i32,
    name: String,
    info: sys::gcx_device_info,
}

impl Device {
    /// The device of this number: CUDA's, after `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`](crate::ErrorKind) there is no such device; and what opening the
    /// driver says, see [`open_driver`](crate::open_driver).
    pub fn new(ordinal: u32) -> Result<Self> {
        let ordinal = ordinal_of(ordinal)?;
        let mut info = sys::GCX_DEVICE_INFO_INIT;
        // SAFETY: the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_device_get_info(ordinal, &mut info) })?;
        // SAFETY: the name ends with a zero byte.
        let name = unsafe { text(info.name.as_ptr()) };
        Ok(Device { ordinal, name, info })
    }

    /// CUDA's number of it.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.ordinal.unsigned_abs()
    }

    /// As the driver reports it; begins with "SIMULATED" on the simulated driver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Major and minor.
    #[must_use]
    pub fn compute_capability(&self) -> (u32, u32) {
        let (major, minor) =
            (self.info.compute_capability_major, self.info.compute_capability_minor);
        (major.unsigned_abs(), minor.unsigned_abs())
    }

    /// How many SMs it has.
    #[must_use]
    pub fn sm_count(&self) -> u32 {
        self.info.sm_count
    }

    /// The least SMs that a coscheduled partition has.
    #[must_use]
    pub fn min_partition_size(&self) -> u32 {
        self.info.min_partition_size
    }

    /// Coscheduled partitions come in multiples of this many SMs.
    #[must_use]
    pub fn coscheduled_alignment(&self) -> u32 {
        self.info.coscheduled_alignment
    }

    /// 1 where the driver doesn't tell.
    #[must_use]
    pub fn locality_domain_count(&self) -> u32 {
        self.info.locality_domain_count
    }

    /// Its 16 bytes.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.info.uuid
    }

    /// All its SMs. Makes no context.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn sms(&self) -> Result<SmResource> {
        SmResource::from_raw(self.resource(sys::GCX_RESOURCE_SM)?)
    }

    /// Its default workqueue configuration.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSupported`](crate::ErrorKind) the driver is older than CUDA 13.1.
    pub fn workqueue(&self) -> Result<WorkqueueResource> {
        WorkqueueResource::from_raw(self.resource(sys::GCX_RESOURCE_WORKQUEUE_CONFIG)?)
    }

    fn resource(&self, kind: sys::gcx_resource_type) -> Result<sys::gcx_resource> {
        let mut resource = sys::gcx_resource::default();
        // SAFETY: a value is written.
        check(unsafe { sys::gcx_device_get_resource(self.ordinal, kind, &mut resource) })?;
        Ok(resource)
    }

    /// The priorities that its streams can have, the most urgent first: `-5..=0` on an H100.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn stream_priority_range(&self) -> Result<RangeInclusive<i32>> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: two numbers are written.
        check(unsafe {
            sys::gcx_device_get_stream_priority_range(self.ordinal, &mut least, &mut greatest)
        })?;
        Ok(greatest..=least)
    }

    /// Reads which SMs each atom of a family holds, for [`SmResource::sm_ids`] and for overlaps
    /// across families: once a process and family, with the cost of a few contexts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind) the family can't be mapped.
    pub fn map_sms(&self, family: Family) -> Result<()> {
        // SAFETY: numbers are passed.
        check(unsafe { sys::gcx_device_map_sms(self.ordinal, family.into()) })
    }

    /// Finds the SMs that all partitions of this process share, ascending: on compute capability 9.x
    /// two, as soon as a module with dynamic parallelism is loaded. Kernels of every partition also
    /// run there.
    ///
    /// Returns what [`Stream::sm_ids`](crate::Stream::sm_ids) has shown; if that is nothing, makes
    /// and probes two contexts, each with the cost of a first one, and keeps them. Once found, the
    /// SMs stay known. Modules load lazily: while none are found, call it again after a kernel of
    /// the module was launched.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSupported`](crate::ErrorKind) compute capability 9.x under MPS, where the
    /// numbers are virtual.
    pub fn shared_sms(&self) -> Result<Vec<u32>> {
        sm_ids(|ids, room, count| {
            // SAFETY: `ids` has `room` elements.
            unsafe { sys::gcx_device_get_shared_sms(self.ordinal, ids, room, count) }
        })
    }

    /// The short way: splits the device and makes a context and a stream of each group. A request is
    /// a count, `None` for what the others leave, or a [`SmRequest`].
    ///
    /// ```
    /// let device = gcx::Device::new(0)?;
    /// let parts = device.partition([Some(24), None])?;
    /// let (decode, prefill) = (&parts[0], &parts[1]);
    /// prefill.wait(decode)?; // on the device; this thread goes on
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SmResource::split`] and [`Context::new`](crate::Context::new).
    pub fn partition<I>(&self, requests: I) -> Result<Partitions>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        self.partition_with(requests, &PartitionOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`partition`](Self::partition).
    pub fn partition_with<I>(&self, requests: I, options: &PartitionOptions) -> Result<Partitions>
    where
        I: IntoIterator,
        I::Item: Into<SmRequest>,
    {
        Partitions::new(&self.sms()?.split_with(requests, options.split_options())?, options)
    }

    /// For a lease of its SMs, with a name, a time-out and all else;
    /// [`Lease::acquire`](crate::Lease::acquire) is the short way.
    pub fn lease<'a>(&self) -> LeaseBuilder<'a> {
        LeaseBuilder::of_device(self.ordinal)
    }

    /// For a reservation of its SMs, with a name, a time-out and all else; [`Reservation::acquire`](crate::Reservation::acquire) is
    /// the short way.
    pub fn reserve<'a>(&self) -> ReservationBuilder<'a> {
        ReservationBuilder::new(self.ordinal)
    }

    /// Whether contexts of this process on the device are shared by way of MPS, as the driver tells it.
    /// Makes none.
    ///
    /// ```
    /// if gcx::Device::new(0)?.mps()?.state != gcx::MpsState::On {
    ///     eprintln!("processes take turns on the device: reservations isolate nothing");
    /// }
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn mps(&self) -> Result<MpsInfo> {
        let mut info = sys::GCX_MPS_INFO_INIT;
        // SAFETY: the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_mps_get_info(self.ordinal, &mut info) })?;
        Ok(MpsInfo::from(&info))
    }

    /// The leases of it, see [`leases`](crate::leases).
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn leases(&self) -> Result<Vec<LiveLease>> {
        leases_of(self.ordinal)
    }

    /// The contexts in use on it, whoever in this process made them by gcx.
    ///
    /// # Errors
    ///
    /// What the driver says.
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

/// The devices, in CUDA's order.
///
/// ```
/// for device in gcx::devices()? {
///     let device = device?;
///     println!("{}: {}", device.ordinal(), device.name());
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// What opening the driver says, see [`open_driver`](crate::open_driver).
pub fn devices() -> Result<Devices> {
    let mut count = 0;
    // SAFETY: a number is written.
    check(unsafe { sys::gcx_device_get_count(&mut count) })?;
    Ok(Devices(0..count.unsigned_abs()))
}

/// What [`devices`] gives.
#[derive(Clone, Debug)]
pub struct Devices(Range<u32>);

impl Iterator for Devices {
    type Item = Result<Device>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Device::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Devices {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(Device::new)
    }
}

impl ExactSizeIterator for Devices {}
