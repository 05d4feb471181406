//! Many threads use the same objects and private ones, for `GCX_RUST_LOAD_SECONDS`, by default 2.

use std::time::{Duration, Instant};

use gcx::{Context, Device, Lease, Partition, Result};

const THREADS: u32 = 16;

/// Everything is `Send` and `Sync`, or this doesn't compile.
#[test]
fn everything_is_send_and_sync() {
    fn is<T: Send + Sync>() {}
    is::<(Device, gcx::SmResource, Context, gcx::Stream, gcx::Event)>();
    is::<(Partition, gcx::Partitions, gcx::Split, gcx::Error)>();
    is::<(Lease, gcx::LeaseBuilder<'_>, gcx::Cancel)>();
    is::<(gcx::Reservation, gcx::ReservationBuilder<'_>)>();
    is::<(gcx::Graph, gcx::GraphNode, gcx::KernelParams<'_>, gcx::KernelShape)>();
    is::<(gcx::publish::PublishedLease, gcx::publish::PublishedProcess)>();
}

#[test]
fn threads_share_objects() -> Result<()> {
    let seconds = std::env::var("GCX_RUST_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(2.0, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let device = Device::new(0)?;
    let shared = device.partition([24])?;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, shared) = (&device, &shared[0]);
            scope.spawn(move || {
                for number in (thread..).take_while(|_| Instant::now() < end) {
                    round(device, shared, number).unwrap();
                }
            });
        }
    });
    drop(shared);
    assert!(gcx::live_contexts()?.is_empty());
    Ok(())
}

/// One of the things that programs do.
fn round(device: &Device, shared: &Partition, number: u32) -> Result<()> {
    match number % 5 {
        0 => {
            let parts = device.partition([Some(8 + 8 * (number % 8)), None])?;
            parts[1].wait(&parts[0])?;
            parts[1].synchronize()
        }
        1 => {
            let stream = shared.context().stream_with_priority(-1)?;
            shared.wait(&stream)?;
            stream.synchronize()
        }
        2 => {
            let context = shared.context();
            let current = context.with_current(gcx::current_context)??;
            assert_eq!(current.expect("it is current").id, context.info()?.id);
            Ok(())
        }
        3 => {
            let error = device.sms()?.split([1000 + number]).unwrap_err();
            assert!(error.message().contains(&(1000 + number).to_string()), "another's: {error}");
            Ok(())
        }
        _ => {
            let lease = Lease::acquire(device, 8)?;
            let stream = lease.stream()?;
            stream.wait(shared.stream())?;
            lease.resize(8)?;
            stream.query().map(|_| ())
        }
    }
}
