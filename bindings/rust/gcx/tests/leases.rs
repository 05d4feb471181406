//! Leases: values, owners, waits and errors. The tests take turns, since leases are the process's.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gcx::{Cancel, Device, ErrorKind, Family, Lease, Resize, Result, Sms};

/// A turn, at whose end there are no leases.
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

#[test]
fn lease_values_are_converted() -> Result<()> {
    let _turn = turn();
    let name = "\u{00e9}".repeat(31); // 62 bytes
    let one =
        device().lease().sm_count(24).shared().exclusive_sm_count(8).name(&*name).acquire()?;
    let two = Lease::acquire(&device(), 20)?;
    let info = one.info()?;
    assert_eq!((info.sm_count, info.exclusive_sm_count, info.changes), (24, 8, 0));
    assert_eq!((info.device, info.family, info.shared), (0, Family::Coscheduled, true));
    assert_eq!((&info.name, info.stream_count), (&name, 0));
    assert_eq!(format!("{one:?}"), format!("Lease({} {name:?}: 24 SMs of device 0)", info.id));
    assert_eq!(one.stream_with_priority(-1)?.info()?.priority, -1);
    let live = gcx::leases()?;
    assert_eq!(live, device().leases()?);
    assert_eq!((&live[0].name, live[0].id, live[0].sms), (&name, info.id, one.sms()?));
    assert_eq!((live[0].sm_count, live[0].exclusive_sm_count), (Some(24), 8));
    assert_eq!((live[0].shared, live[0].waiting, live[1].shared), (true, false, false));
    let refused = Lease::acquire(&device(), 120).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyAcquired);
    assert!(refused.message().contains(&name), "{refused}");
    drop(two);
    Ok(())
}

#[test]
fn resize_moves_streams() -> Result<()> {
    let _turn = turn();
    let decode = device().lease().sm_count(32).name("decode").acquire()?;
    let prefill = Lease::acquire(&device(), None)?;
    let (stream, before) = (decode.stream()?, decode.sms()?);
    let layout = [(&decode, Sms::Count(64)), (&prefill, Sms::Rest)];
    gcx::prepare(&layout)?;
    assert_eq!(decode.sms()?, before);
    gcx::resize(&layout, Resize::new().deferred())?;
    assert_eq!((stream.sm_count()?, prefill.sm_count()?), (64, 68));
    assert_eq!(stream.sm_ids()?.len(), 64);
    assert!(gcx::verify([&stream, &prefill.stream()?])?.is_ok());
    decode.synchronize()?;
    assert!(decode.query()?);
    Ok(())
}

#[test]
fn dropped_lease_ends_its_streams() -> Result<()> {
    let _turn = turn();
    let one = Lease::acquire(&device(), None)?;
    let stream = one.stream()?;
    let event = stream.record()?;
    drop(one);
    let kind = |result: Result<()>| result.unwrap_err().kind();
    let gone = ErrorKind::ContextDestroyed;
    assert_eq!(kind(stream.native().map(|_| ())), gone);
    assert_eq!(kind(stream.record().map(|_| ())), gone);
    assert_eq!(kind(stream.wait(&event)), gone);
    assert_eq!(format!("{stream:?}"), "Stream(GCX_ERROR_CONTEXT_IS_DESTROYED)");
    assert_eq!(Lease::acquire(&device(), None)?.sm_count()?, 132);
    Ok(())
}

#[test]
fn cancel_ends_present_and_later_waits() -> Result<()> {
    let _turn = turn();
    let all = Lease::acquire(&device(), None)?;
    let cancel = Cancel::new()?;
    let builder = device().lease().timeout(Duration::MAX).cancel(&cancel);
    let is_cancelled = || {
        let error = builder.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.message().contains("cancelled"), "{error}");
    };
    std::thread::scope(|scope| {
        scope.spawn(is_cancelled);
        scope.spawn(is_cancelled);
        while gcx::leases()?.len() != 3 {
            std::thread::yield_now();
        }
        let waiting = gcx::leases()?.remove(2);
        assert!(waiting.waiting && waiting.sms.is_empty() && waiting.sm_count.is_none());
        cancel.signal()
    })?;
    is_cancelled();
    drop(all);
    assert_eq!(format!("{cancel:?}"), "Cancel");
    Ok(())
}

#[test]
fn invalid_values_are_refused() {
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
    invalid(lease().sm_count(Sms::Parked), "Sms::Parked");
    invalid(lease().min_sm_count(0), "min_sm_count");
    invalid(lease().family(Family::Structured), "family");
    invalid(lease().name("a\0b"), "zero byte");
    invalid(lease().name("a".repeat(64)), "63 bytes");
}
