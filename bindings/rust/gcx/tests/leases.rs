//! Leases: their values, owners, waits and errors. The tests take turns, since leases are the process's.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::Work;
use gcx::{
    Cancel, Device, ErrorKind, EventOptions, Family, Lease, PartitionOptions, Resize, Result, Sms,
    SplitOptions,
};

/// A turn, at whose end nobody has anything.
struct Turn {
    _guard: MutexGuard<'static, ()>,
}

fn turn() -> Turn {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    Turn { _guard: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner) }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(gcx::leases().unwrap(), []);
        }
    }
}

fn device() -> Device {
    Device::new(0).unwrap()
}

fn named(sms: impl Into<Sms>, name: &str) -> Result<Lease> {
    device().lease().sm_count(sms).name(name).acquire()
}

#[test]
fn nobody_else_has_them() -> Result<()> {
    let _turn = turn();
    let (one, two) = (named(24, "one")?, named(20, "two")?);
    let info = two.info()?;
    assert_eq!((info.sm_count, info.exclusive_sm_count, info.changes), (20, 20, 0));
    assert_eq!((info.device, info.family, info.shared), (0, Family::Coscheduled, false));
    assert_eq!((info.name.as_str(), info.stream_count), ("two", 0));
    assert_eq!(format!("{two:?}"), format!("Lease({} \"two\": 20 SMs of device 0)", info.id));
    assert!(one.sms()?.is_disjoint(&two.sms()?)?);
    let streams = [one.stream()?, two.stream_with_priority(-1)?];
    assert_eq!(streams[1].info()?.priority, -1);
    assert!(gcx::verify(&streams)?.is_ok());
    let refused = named(100, "three").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyAcquired);
    for part in ["88 are free", "\"one\" has 24", "\"two\" has 20"] {
        assert!(refused.message().contains(part), "{refused}");
    }
    let live = gcx::leases()?;
    assert_eq!(live, device().leases()?);
    let told: Vec<_> = live.iter().map(|live| (live.name.as_str(), live.sm_count)).collect();
    assert_eq!(told, [("one", Some(24)), ("two", Some(20))]);
    assert_eq!((live[0].id, live[0].sms), (one.info()?.id, one.sms()?));
    assert_eq!((live[0].stream_count, live[0].exclusive_sm_count, live[0].waiting), (1, 24, false));
    // What explicit splits are to keep clear of.
    let clear = device().sms()?.split_with([24], &SplitOptions::new().exclude_leased())?;
    assert!(clear[0].is_disjoint(&one.sms()?)? && clear[0].is_disjoint(&two.sms()?)?);
    assert_eq!(device().sms()?.split([24])?[0].overlap(&one.sms()?)?, 24);
    let parts = device().partition_with([None], &PartitionOptions::new().exclude_leased())?;
    assert_eq!(parts[0].sm_count(), 88);
    assert_eq!(device().sms()?.live_overlap()?, 132);
    Ok(())
}

#[test]
fn shared_ones() -> Result<()> {
    let _turn = turn();
    let shared = device().lease().shared();
    let one = shared.clone().sm_count(64).acquire()?;
    let two = shared.sm_count(88).exclusive_sm_count(24).acquire()?;
    assert_eq!((two.info()?.exclusive_sm_count, two.info()?.shared), (24, true));
    assert_eq!(one.sms()?.overlap(&two.sms()?)?, 64);
    assert!(gcx::leases()?.iter().all(|live| live.shared));
    let single = Lease::acquire(&device(), 8)?;
    // What others share is nothing for who shares nothing.
    let refused = one.hand_over(&single).unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::InvalidResourceConfiguration);
    assert_eq!(refused.lease.sm_count()?, 64);
    Ok(())
}

/// Waits for all that the stream was given, and asks that it ended so long after the first event's
/// work. A GPU's clock, by which kernels spin, has coarser steps than its events: it may be less by a
/// hundredth.
fn took(stream: &gcx::Stream, start: &gcx::Event, milliseconds: f32) -> Result<()> {
    let end = EventOptions::new().timing().create(0)?;
    stream.record_into(&end)?;
    end.synchronize()?;
    let elapsed = end.milliseconds_since(start)?;
    assert!(elapsed >= 0.99 * milliseconds, "{elapsed} ms");
    Ok(())
}

fn started_on(stream: &gcx::Stream) -> Result<gcx::Event> {
    let start = EventOptions::new().timing().create(0)?;
    stream.record_into(&start)?;
    Ok(start)
}

#[test]
fn sms_change_hands() -> Result<()> {
    let _turn = turn();
    let work = Work::new();
    let (decode, prefill) = (named(32, "decode")?, named(None, "prefill")?);
    let (fast, heavy) = (decode.stream()?, prefill.stream()?);
    let layout = [(&decode, Sms::Count(64)), (&prefill, Sms::Rest)];
    gcx::prepare(&layout)?;
    assert_eq!((decode.sm_count()?, prefill.info()?.changes), (32, 0));
    let made = gcx::cache_stats()?.misses;
    let start = started_on(&heavy)?;
    work.spin(&heavy, 9)?;
    work.spin(&fast, 1)?;
    gcx::resize(&layout, Resize::default())?;
    assert_eq!(gcx::cache_stats()?.misses, made);
    assert_eq!((decode.sm_count()?, prefill.sm_count()?), (64, 68));
    assert!(decode.sms()?.is_disjoint(&prefill.sms()?)?);
    // On the device: decode's next waits for prefill's last on the SMs that it got.
    took(&fast, &start, 9.0)?;
    Ok(())
}

#[test]
fn handed_over() -> Result<()> {
    let _turn = turn();
    let work = Work::new();
    let (from, to) = (Lease::acquire(&device(), 24)?, Lease::acquire(&device(), 32)?);
    let (giver, taker) = (from.stream()?, to.stream()?);
    let start = started_on(&giver)?;
    work.spin(&giver, 3)?;
    from.hand_over(&to)?;
    assert_eq!((to.sm_count()?, gcx::leases()?.len()), (56, 1));
    assert_eq!(giver.query().unwrap_err().kind(), ErrorKind::ContextDestroyed);
    took(&taker, &start, 3.0)?;
    to.synchronize()
}

#[test]
fn a_lease_that_is_dropped_ends_its_streams() -> Result<()> {
    let _turn = turn();
    let work = Work::new();
    let one = Lease::acquire(&device(), None)?;
    let stream = one.stream()?;
    let event = stream.record()?;
    let start = started_on(&stream)?;
    work.spin(&stream, 7)?;
    drop(one);
    let gone = ErrorKind::ContextDestroyed;
    assert_eq!(stream.native().unwrap_err().kind(), gone);
    assert_eq!(stream.query().unwrap_err().kind(), gone);
    assert_eq!(stream.synchronize().unwrap_err().kind(), gone);
    assert_eq!(stream.record().unwrap_err().kind(), gone);
    assert_eq!(stream.wait(&event).unwrap_err().kind(), gone);
    assert_eq!(stream.sm_ids().unwrap_err().kind(), gone);
    assert_eq!(format!("{stream:?}"), "Stream(GCX_ERROR_CONTEXT_IS_DESTROYED)");
    // Its SMs are free at once, with its last work still on them.
    let two = Lease::acquire(&device(), None)?;
    took(&two.stream()?, &start, 7.0)?;
    Ok(())
}

#[test]
fn those_who_wait() -> Result<()> {
    let _turn = turn();
    let held = named(100, "held")?;
    let forever = device().lease().sm_count(64).timeout(Duration::MAX).name("large");
    let large = std::thread::scope(|scope| {
        let waits = scope.spawn(|| forever.acquire());
        while gcx::leases()?.len() != 2 {
            std::thread::yield_now();
        }
        let waiting = gcx::leases()?.remove(1);
        assert!(waiting.waiting && waiting.sms.is_empty());
        assert_eq!((waiting.name.as_str(), waiting.sm_count), ("large", Some(64)));
        // 28 are free, but the large one is first.
        let next = Lease::acquire(&device(), 8).unwrap_err();
        assert_eq!(next.kind(), ErrorKind::AlreadyAcquired);
        let begun = Instant::now();
        let short = device().lease().timeout(Duration::from_micros(1)).acquire().unwrap_err();
        assert!(begun.elapsed() >= Duration::from_millis(1));
        assert!(short.message().contains("timed out after 1 ms"), "{short}");
        assert_eq!(held.resize(112).unwrap_err().kind(), ErrorKind::AlreadyAcquired);
        held.resize(68)?;
        waits.join().unwrap()
    })?;
    assert_eq!(large.sm_count()?, 64);
    Ok(())
}

#[test]
fn waits_are_given_up() -> Result<()> {
    let _turn = turn();
    let held = Lease::acquire(&device(), None)?;
    let cancel = Cancel::new()?;
    let builder = device().lease().timeout(Duration::MAX).cancel(&cancel);
    let given_up = || {
        let error = builder.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPermitted);
        assert!(error.message().contains("cancelled"), "{error}");
    };
    std::thread::scope(|scope| {
        scope.spawn(given_up);
        scope.spawn(given_up);
        while gcx::leases()?.len() != 3 {
            std::thread::yield_now();
        }
        assert!(gcx::leases()?[1..].iter().all(|live| live.sm_count.is_none()));
        cancel.signal()
    })?;
    given_up(); // for good
    drop(held);
    assert_eq!(format!("{cancel:?}"), "Cancel");
    Ok(())
}

#[test]
fn wrong_values() -> Result<()> {
    let _turn = turn();
    let invalid = |builder: gcx::LeaseBuilder<'_>, says: &str| {
        let error = builder.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue, "{error}");
        assert!(error.message().contains(says), "{error}");
    };
    let lease = || device().lease().sm_count(24);
    invalid(lease().sm_count(0), "0 SMs");
    invalid(lease().sm_count(Some(0)), "Sms::Rest");
    invalid(lease().sm_count(u32::MAX), "Sms::Rest");
    invalid(lease().min_sm_count(0), "min_sm_count");
    invalid(lease().min_sm_count(25), "25");
    invalid(lease().exclusive_sm_count(8), "shares nothing");
    invalid(lease().shared().exclusive_sm_count(25), "25");
    invalid(lease().family(Family::Structured), "family");
    invalid(lease().family(Family::Foreign), "family");
    invalid(lease().name("a\0b"), "zero byte");
    invalid(lease().name("a".repeat(64)), "63 bytes");
    let long = "\u{00e9}".repeat(31);
    let held = lease().name(long.as_str()).acquire()?;
    assert_eq!((held.info()?.name, gcx::leases()?.remove(0).name), (long.clone(), long));
    Ok(())
}
