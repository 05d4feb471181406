//! Contexts, streams, events and partitions: owners, native handles, and what is current in a
//! thread.

use gcx::{
    Context, Device, ErrorKind, Event, Family, Partition, PartitionOptions, Result, SmResource,
    SplitOptions, Stream,
};

/// Each test uses separate SMs, since contexts over equal ones are shared.
fn group(index: usize) -> Result<SmResource> {
    Ok(Device::new(0)?.sms()?.split([8u32; 15])?[index])
}

#[test]
fn stream_keeps_its_context() -> Result<()> {
    let sms = group(0)?;
    let context = Context::new(&sms)?;
    let id = context.info()?.id;
    let stream = context.stream()?;
    drop(context);
    assert_eq!(stream.info()?.context_id, Some(id));
    let live = gcx::live_contexts()?.into_iter().find(|live| live.id == id).unwrap();
    assert_eq!((live.handle_count, live.stream_count, live.sms), (0, 1, sms));
    assert_eq!((stream.sms()?, stream.sm_count()?), (sms, 8));
    assert_eq!(stream.sm_ids()?.len(), 8);
    assert_eq!(sms.max_cluster_size()?, 8);
    assert_eq!(format!("{stream:?}"), "Stream(8 SMs of device 0, priority 0)");
    let again = Context::new(&sms)?;
    assert_eq!(format!("{again:?}"), format!("Context({id}: 8 SMs of device 0)"));
    Ok(())
}

#[test]
fn wait_takes_whatever_has_work() -> Result<()> {
    let (a, b) = (Partition::new(&group(5)?)?, Partition::new(&group(6)?)?);
    let event = a.stream().record()?;
    b.wait(&event)?;
    b.wait(&a)?;
    b.stream().wait(a.stream())?;
    b.context().wait(a.context())?;
    b.synchronize()?;
    assert!(event.query()? && b.stream().query()?);
    assert_eq!(format!("{event:?}"), "Event(finished)");
    Ok(())
}

#[test]
fn current_context_is_nested_and_of_the_thread() -> Result<()> {
    let (outer, inner) = (Context::new(&group(8)?)?, Context::new(&group(9)?)?);
    let id = || gcx::current_context().unwrap().map(|context| context.id);
    assert_eq!(id(), None);
    outer.with_current(|| {
        assert_eq!(id(), Some(outer.info().unwrap().id));
        inner.with_current(|| assert_eq!(id(), Some(inner.info().unwrap().id))).unwrap();
        assert_eq!(id(), Some(outer.info().unwrap().id));
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(id(), None)).join().unwrap());
    })?;
    assert_eq!(id(), None);
    let panicked = std::panic::catch_unwind(|| outer.with_current(|| panic!("intended")));
    assert!(panicked.is_err());
    assert_eq!(id(), None);
    Ok(())
}

#[test]
fn native_handles_go_out_and_in() -> Result<()> {
    let part = Partition::new(&group(10)?)?;
    assert!(!part.context().native_green()?.is_null());
    // SAFETY: the native handles are those of live objects, or are refused.
    unsafe {
        let external = Stream::from_native(part.stream().native()?)?;
        assert_eq!(external.sms()?, *part.sms());
        let event = part.stream().record()?;
        external.wait(&Event::from_native(event.native()?)?)?;
        for default in 0usize..=2 {
            let error = Stream::from_native(default as *mut _).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidValue);
        }
        let null = Event::from_native(std::ptr::null_mut()).unwrap_err();
        assert_eq!(null.kind(), ErrorKind::InvalidValue);
    }
    Ok(())
}

#[test]
fn close_gives_back_a_current_context() -> Result<()> {
    let context = Context::new(&group(11)?)?;
    let other = Context::new(&group(11)?)?;
    context.close()?;
    // Other code makes the context current.
    // SAFETY: the handle is alive.
    assert_eq!(unsafe { gcx::sys::gcx_context_push(other.as_raw()) }, gcx::sys::GCX_SUCCESS);
    let not_closed = other.close().unwrap_err();
    assert_eq!(not_closed.error.kind(), ErrorKind::ContextInUse);
    let context = not_closed.context;
    assert!(context.info().is_ok());
    // SAFETY: no handle is asked for.
    unsafe { gcx::sys::gcx_context_pop(std::ptr::null_mut()) };
    context.close()?;
    Ok(())
}

#[test]
fn partition_options_reach_c() -> Result<()> {
    let device = Device::new(0)?;
    let fine = SplitOptions::new().family(Family::Fine).exact();
    let options = PartitionOptions::new().split(fine).priority(-2).private();
    let parts = device.partition_with([30, 6], &options)?;
    assert_eq!((parts.len(), parts.remainder().sm_count()), (2, 96));
    assert_eq!((parts[0].sm_count(), parts[1].stream().info()?.priority), (30, -2));
    let private = gcx::live_contexts()?.into_iter().find(|live| live.sms == *parts[0].sms());
    assert!(private.unwrap().private);
    let error = device.partition_with([31], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResourceConfiguration);
    let proof = gcx::verify(&parts)?;
    assert!(proof.is_ok() && proof.is_simulated(), "{proof}");
    assert_eq!(proof.groups()[1].seen, parts[1].stream().sm_ids()?);
    assert_eq!((proof.groups()[0].sm_count, proof.device), (30, 0));
    assert!(proof.to_string().contains("ok:"), "{proof}");
    Ok(())
}

#[test]
fn verification_reports_an_overlap() -> Result<()> {
    let whole = Device::new(0)?.sms()?;
    let (a, b) = (Partition::new(&whole)?, Partition::new(&group(12)?)?);
    let proof = gcx::verify([a.stream(), b.stream()])?;
    assert!(!proof.is_ok());
    assert_eq!(proof.overlap, b.stream().sm_ids()?);
    assert_eq!(proof.problem_count, 1);
    assert!(proof.groups().iter().all(|group| !group.ok && !group.shared_lease));
    assert!(proof.to_string().contains("partitions A and B share 8 SMs"), "{proof}");
    Ok(())
}
