//! Partitions: SMs with a context and a stream.

use crate::call::slice_of;
use crate::context::Context;
use crate::error::Result;
use crate::event::WaitFor;
use crate::resource::{SmResource, WorkqueueResource};
use crate::split::{Split, SplitOptions};
use crate::stream::Stream;

/// SMs with a context and a stream, from [`Device::partition`](crate::Device::partition) or for a
/// resource.
#[derive(Debug)]
pub struct Partition {
    sms: SmResource,
    context: Context,
    stream: Stream,
}

impl Partition {
    /// Creates a partition of these SMs.
    pub fn new(sms: &SmResource) -> Result<Self> {
        Self::with(sms, &PartitionOptions::new())
    }

    /// As [`new`](Self::new), with options; those for splits have no effect.
    pub fn with(sms: &SmResource, options: &PartitionOptions) -> Result<Self> {
        let mut builder = Context::builder().sms(sms);
        if let Some(workqueue) = &options.workqueue {
            builder = builder.workqueue(workqueue);
        }
        if options.private {
            builder = builder.private();
        }
        let context = builder.build()?;
        let stream = context.stream_with_priority(options.priority)?;
        Ok(Partition { sms: *sms, context, stream })
    }

    /// Its SMs.
    pub fn sms(&self) -> &SmResource {
        &self.sms
    }

    /// How many SMs it has.
    pub fn sm_count(&self) -> u32 {
        self.sms.sm_count()
    }

    /// The context over them, for further streams.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Its stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes all later work of the stream wait, see [`Stream::wait`].
    pub fn wait(&self, what: &impl WaitFor) -> Result<()> {
        self.stream.wait(what)
    }

    /// Waits until the stream's work has finished, see [`Stream::synchronize`].
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize()
    }
}

impl AsRef<Stream> for Partition {
    fn as_ref(&self) -> &Stream {
        &self.stream
    }
}

/// How partitions are created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct PartitionOptions {
    split: SplitOptions,
    priority: i32,
    private: bool,
    workqueue: Option<WorkqueueResource>,
}

impl PartitionOptions {
    /// Rounds counts up; streams have priority 0, contexts may be shared.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the device is split.
    pub fn split(mut self, options: SplitOptions) -> Self {
        self.split = options;
        self
    }

    /// See [`Context::stream_with_priority`].
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// See [`ContextBuilder::private`](crate::ContextBuilder::private).
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// See [`ContextBuilder::workqueue`](crate::ContextBuilder::workqueue).
    pub fn workqueue(mut self, workqueue: &WorkqueueResource) -> Self {
        self.workqueue = Some(*workqueue);
        self
    }

    pub(crate) fn split_options(&self) -> &SplitOptions {
        &self.split
    }
}

/// The partitions of a device, as a slice of [`Partition`], and the remainder.
#[derive(Debug)]
pub struct Partitions {
    partitions: Vec<Partition>,
    remainder: SmResource,
}

impl Partitions {
    pub(crate) fn new(split: &Split, options: &PartitionOptions) -> Result<Self> {
        let partitions =
            split.iter().map(|group| Partition::with(group, options)).collect::<Result<_>>()?;
        Ok(Partitions { partitions, remainder: *split.remainder() })
    }

    /// The SMs in no partition.
    pub fn remainder(&self) -> &SmResource {
        &self.remainder
    }
}

slice_of!(Partitions, partitions: Partition);
