//! Devices, splits, sets of SMs: what needs no context. Runs on whatever simulated driver the
//! environment's `GCX_DRIVER` names.

use std::collections::HashSet;

use gcx::{
    Capability, Device, ErrorKind, Family, LocalityDomain, Result, SmRequest, SmResource,
    SplitOptions, WorkqueueResource, WorkqueueScope,
};

fn sms() -> Result<SmResource> {
    Device::new(0)?.sms()
}

fn has(capability: Capability) -> bool {
    capability.info().unwrap().available
}

#[test]
fn devices_are_what_the_driver_has() -> Result<()> {
    let mut devices = gcx::devices()?;
    assert_eq!(devices.len(), 1);
    let device = devices.next().unwrap()?;
    assert!(devices.next().is_none());
    assert_eq!(device, Device::new(0)?);
    assert!(device.name().starts_with("SIMULATED"), "{}", device.name());
    assert_eq!((device.ordinal(), device.sm_count()), (0, 132));
    assert_eq!(device.compute_capability(), (9, 0));
    assert_eq!((device.min_partition_size(), device.coscheduled_alignment()), (8, 8));
    assert!(device.locality_domain_count() >= 1);
    assert_ne!(device.uuid(), [0; 16]);
    assert_eq!(device.stream_priority_range()?, -5..=0);
    Ok(())
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    for ordinal in [1, 17, i32::MAX.unsigned_abs(), i32::MAX.unsigned_abs() + 1, u32::MAX] {
        let error = Device::new(ordinal).unwrap_err();
        assert_eq!((error.kind(), error.result()), (ErrorKind::InvalidDevice, 101));
        assert!(error.message().contains(&ordinal.to_string()), "{error}");
    }
}

#[test]
fn resources_are_sets_and_values() -> Result<()> {
    let ([a, b], rest) = sms()?.split_array([24, 32])?;
    let both = a.union(&b)?;
    assert_eq!(both.sm_count(), 56);
    assert_eq!(both.difference(&a)?, b);
    assert_eq!(both.intersection(&b)?, b);
    assert_eq!(both.overlap(&a)?, 24);
    assert_eq!(both.union(&rest)?, sms()?);
    let none = a.intersection(&b)?;
    assert!(none.is_empty() && !a.is_empty());
    let distinct: HashSet<SmResource> = [a, b, both, both, a].into_iter().collect();
    assert_eq!(distinct.len(), 3);
    assert_eq!(SmResource::from_raw(*a.as_raw())?, a);
    assert_eq!(format!("{a:?}"), "SmResource(24 SMs of device 0, Coscheduled)");
    Ok(())
}

#[test]
fn atoms_make_the_whole() -> Result<()> {
    let whole = sms()?;
    let mut atoms = whole.atoms();
    assert_eq!(atoms.len(), 16);
    let first = atoms.next().unwrap()?;
    assert_eq!((first.sm_count(), first.atom_count(), atoms.len()), (8, 1, 15));
    let together = atoms.try_fold(first, |all, atom| all.union(&atom?))?;
    assert_eq!(together, whole);
    Ok(())
}

#[test]
fn wrong_requests_are_errors() -> Result<()> {
    let whole = sms()?;
    let kind = |result: Result<gcx::Split>| result.unwrap_err().kind();
    assert_eq!(kind(whole.split([140])), ErrorKind::InvalidResourceConfiguration);
    assert_eq!(kind(whole.split([u32::MAX - 1])), ErrorKind::InvalidResourceConfiguration);
    // GCX_REST is no count.
    assert_eq!(kind(whole.split([u32::MAX])), ErrorKind::InvalidValue);
    assert_eq!(kind(whole.split(Vec::<u32>::new())), ErrorKind::InvalidValue);
    assert_eq!(kind(whole.split(vec![8u32; 17])), ErrorKind::InvalidResourceConfiguration);
    let zero = whole.split([0]).unwrap_err();
    assert!(zero.message().contains("SmRequest::rest()"), "{zero}");
    let zero = whole.plan([Some(0)]).unwrap_err();
    assert_eq!((zero.kind(), zero.name()), (ErrorKind::InvalidValue, "GCX_ERROR_INVALID_VALUE"));

    let exact = SplitOptions::new().exact();
    assert_eq!(kind(whole.split_with([10], &exact)), ErrorKind::InvalidResourceConfiguration);
    assert_eq!(whole.split_with([24], &exact)?[0].sm_count(), 24);
    for family in [Family::Structured, Family::Foreign] {
        let options = SplitOptions::new().family(family);
        assert_eq!(kind(whole.split_with([8], &options)), ErrorKind::InvalidResourceConfiguration);
    }
    let group = whole.split([24])?[0];
    for family in [Family::Fine, Family::MaxCluster] {
        let options = SplitOptions::new().family(family);
        assert_eq!(kind(group.split_with([8], &options)), ErrorKind::InvalidResourceConfiguration);
    }
    let none = group.difference(&group)?;
    assert_eq!(kind(none.split([8])), ErrorKind::InvalidResourceConfiguration);
    Ok(())
}

#[test]
fn values_that_are_none_are_refused() -> Result<()> {
    let zero = gcx::sys::gcx_resource::default();
    assert_eq!(SmResource::from_raw(zero).unwrap_err().kind(), ErrorKind::InvalidResourceType);
    let mut changed = *sms()?.as_raw();
    for word in 0..changed.opaque.len() {
        changed.opaque[word] ^= 1;
        assert!(SmResource::from_raw(changed).is_err(), "word {word}");
        assert!(WorkqueueResource::from_raw(changed).is_err(), "word {word}");
        changed.opaque[word] ^= 1;
    }
    let error = WorkqueueResource::from_raw(changed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResourceType);
    Ok(())
}

#[test]
fn structured_requests_ask_for_drivers_that_have_them() -> Result<()> {
    let request = SmRequest::new(16).coscheduled(8);
    let split = sms()?.split([request]);
    if !has(Capability::StructuredSplit) {
        assert_eq!(split.unwrap_err().kind(), ErrorKind::NotSupported);
        return Ok(());
    }
    let group = split?[0];
    assert_eq!((group.family(), group.sm_count()), (Family::Structured, 16));
    assert_eq!(group.locality_domain(), None);
    let backfilled = sms()?.split([SmRequest::new(10).coscheduled(2).backfill()])?[0];
    assert_eq!(backfilled.flags(), gcx::sys::GCX_SM_REQUEST_BACKFILL);
    let preferred = SmRequest::new(16).coscheduled(8).preferred_coscheduled(16);
    assert_eq!(sms()?.split([preferred])?[0].sm_count(), 16);
    Ok(())
}

#[test]
fn locality_domains_ask_for_drivers_that_have_them() -> Result<()> {
    let any = SmRequest::new(16).locality_domain(LocalityDomain::Any).supplemental_sms();
    if !has(Capability::LocalityDomains) {
        assert_eq!(sms()?.split([any]).unwrap_err().kind(), ErrorKind::NotSupported);
        return Ok(());
    }
    let domain = SmRequest::new(16).locality_domain(LocalityDomain::Id(0));
    let group = sms()?.split([domain])?[0];
    assert_eq!(group.locality_domain(), Some(LocalityDomain::Id(0)));
    Ok(())
}

#[test]
fn workqueues_ask_for_drivers_that_have_them() -> Result<()> {
    let queue = Device::new(0)?.workqueue();
    if !has(Capability::Workqueues) {
        assert_eq!(queue.unwrap_err().kind(), ErrorKind::NotSupported);
        return Ok(());
    }
    let queue = queue?;
    assert_eq!((queue.scope()?, queue.device()?), (Some(WorkqueueScope::DeviceCtx), 0));
    let balanced = queue.configured(WorkqueueScope::GreenCtxBalanced, Some(4))?;
    assert_eq!(balanced.scope()?, Some(WorkqueueScope::GreenCtxBalanced));
    assert_eq!(balanced.concurrency_limit()?, 4);
    assert_eq!(balanced.configured(WorkqueueScope::DeviceCtx, None)?.concurrency_limit()?, 4);
    assert!(queue.configured(WorkqueueScope::DeviceCtx, Some(0)).is_err());
    assert_eq!(WorkqueueResource::from_raw(*balanced.as_raw())?, balanced);
    assert!(SmResource::from_raw(*balanced.as_raw()).is_err());
    Ok(())
}

#[test]
fn the_driver_tells_about_itself() -> Result<()> {
    let info = gcx::driver_info()?;
    assert!(info.simulated && info.version >= (12, 4), "{info:?}");
    let available = Capability::ALL.map(|capability| capability.info().unwrap());
    for capability in &available {
        assert_eq!(capability.available, info.version >= capability.required_version);
        assert!(!capability.name.is_empty());
    }
    assert!(available[0].available);
    assert_eq!(gcx::simulator_path()?, info.library);
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let (major, minor, _) = gcx::library_version();
    assert_eq!(format!("{major}.{minor}"), version);
    Ok(())
}

#[test]
fn errors_say_everything() {
    let error = sms().unwrap().split([140]).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("140") && said.ends_with("CONFIGURATION, 915]"), "{said}");
    assert!(!error.meaning().is_empty());
    assert_eq!(error.clone(), error);
    let boxed: Box<dyn std::error::Error + Send + Sync> = error.into();
    assert_eq!(boxed.to_string(), said);
}
