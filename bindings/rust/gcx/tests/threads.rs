//! Under load: many threads in all of gcx at once, on the same objects and on their own, for
//! `GCX_RUST_LOAD_SECONDS` (2 if it isn't set).

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use common::duration;
use gcx::{
    Context, Device, Event, EventOptions, Family, Partition, PartitionOptions, Result, SmResource,
    SplitOptions, Stream,
};

const THREADS: u32 = 16;

/// Everything may go from thread to thread and be used by several; what this doesn't hold for
/// wouldn't compile.
#[test]
fn everything_is_send_and_sync() {
    fn is<T: Send + Sync>() {}
    is::<Device>();
    is::<SmResource>();
    is::<Context>();
    is::<Stream>();
    is::<Event>();
    is::<Partition>();
    is::<gcx::Lease>();
    is::<gcx::LeaseBuilder<'_>>();
    is::<gcx::Cancel>();
    is::<gcx::Graph>();
    is::<gcx::GraphOptions>();
    is::<gcx::GraphNode>();
    is::<gcx::KernelParams<'_>>();
    is::<gcx::KernelShape>();
    is::<gcx::KernelFit>();
    is::<gcx::QueueInfo>();
    is::<gcx::cache::CacheStats>();
    is::<gcx::publish::PublishedLease>();
    is::<gcx::publish::PublishedProcess>();
    is::<gcx::Partitions>();
    is::<gcx::Split>();
    is::<gcx::Error>();
}

/// Options with a function for progress stay in their thread, as that may: what the function borrows
/// need be neither Send nor Sync. Were they Send, which of the two is meant would be ambiguous.
#[test]
fn progress_need_not_be_send() {
    trait Ambiguous<Which> {
        fn holds() -> bool {
            true
        }
    }
    struct IfSend;
    impl<T: ?Sized> Ambiguous<()> for T {}
    impl<T: ?Sized + Send> Ambiguous<IfSend> for T {}
    assert!(<gcx::cache::PrepareOptions<'_> as Ambiguous<_>>::holds());
}

#[test]
fn load() -> Result<()> {
    let device = Device::new(0)?;
    device.map_sms(Family::Coscheduled)?;
    let shared = device.partition([24])?;
    let (rounds, end) = (AtomicU64::new(0), Instant::now() + duration());
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (rounds, shared, device) = (&rounds, &shared[0], &device);
                scope.spawn(move || {
                    let mut seed = u64::from(number) + 1;
                    while Instant::now() < end {
                        round(device, shared, &mut seed)?;
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        joined.filter_map(|ended: Result<()>| ended.err().map(|error| error.to_string())).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
    assert!(rounds.into_inner() >= u64::from(THREADS));
    drop(shared);
    assert!(gcx::live_contexts()?.is_empty());
    Ok(())
}

/// One of the things that programs do, by chance.
fn round(device: &Device, shared: &Partition, seed: &mut u64) -> Result<()> {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let chance = *seed >> 33;
    let sms = 8 + 8 * u32::try_from(chance / 16 % 8).unwrap();
    match chance % 9 {
        0 => {
            let parts = device.partition([Some(sms), None])?;
            assert_eq!(parts[0].sm_count() + parts[1].sm_count(), device.sm_count());
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
            assert_eq!(current.expect("it is current").info()?.id, context.info()?.id);
            Ok(())
        }
        3 => {
            let options = SplitOptions::new().family(Family::Fine);
            let split = device.sms()?.split_with([sms, sms], &options)?;
            assert!(split[0].is_disjoint(&split[1])?);
            Context::new(&split[1])?.stream()?.query().map(|_| ())
        }
        4 => {
            let event = EventOptions::new().timing().create(0)?;
            shared.stream().record_into(&event)?;
            event.synchronize()?;
            event.milliseconds_since(&event).map(|_| ())
        }
        5 => {
            let error = device.sms()?.split([1000 + sms]).unwrap_err();
            assert!(error.message().contains(&(1000 + sms).to_string()), "another's: {error}");
            Ok(())
        }
        6 => {
            let options = PartitionOptions::new().private();
            let part = Partition::with(shared.sms(), &options)?;
            assert_ne!(part.context().info()?.id, shared.context().info()?.id);
            Ok(())
        }
        7 => {
            let lease = gcx::Lease::acquire(device, 8)?;
            let stream = lease.stream()?;
            stream.wait(shared.stream())?;
            lease.resize(8)?;
            stream.query().map(|_| ())
        }
        _ => {
            assert!(gcx::live_contexts()?.iter().any(|live| live.sms == *shared.sms()));
            assert_eq!(shared.sms().sm_ids()?.len(), 24);
            Ok(())
        }
    }
}
