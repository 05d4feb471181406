//! Values without contexts: devices, resources, requests and errors. Runs on the driver that the
//! environment's `GCX_DRIVER` names.

use std::collections::HashSet;

use gcx::{
    Capability, Device, ErrorKind, Family, Result, SmResource, SplitOptions, WorkqueueResource,
    WorkqueueScope,
};

fn sms() -> Result<SmResource> {
    Device::new(0)?.sms()
}

#[test]
fn device_values_are_converted() -> Result<()> {
    let devices = gcx::devices()?;
    assert_eq!(devices, [Device::new(0)?]);
    let device = &devices[0];
    assert!(device.name().starts_with("SIMULATED"), "{}", device.name());
    assert_eq!((device.ordinal(), device.sm_count()), (0, 132));
    assert_eq!(device.compute_capability(), (9, 0));
    assert_eq!((device.min_partition_size(), device.coscheduled_alignment()), (8, 8));
    assert!(device.locality_domain_count() >= 1);
    assert_ne!(device.uuid(), [0; 16]);
    assert_eq!(device.stream_priority_range()?, -5..=0);
    for ordinal in [1, i32::MAX.unsigned_abs() + 1, u32::MAX] {
        let error = Device::new(ordinal).unwrap_err();
        assert_eq!((error.kind(), error.result()), (ErrorKind::InvalidDevice, 101));
        assert!(error.message().contains(&ordinal.to_string()), "{error}");
    }
    Ok(())
}

#[test]
fn resources_are_values() -> Result<()> {
    let ([a, b], rest) = sms()?.split_array([24, 32])?;
    let both = a.union(&b)?;
    assert_eq!((both.difference(&a)?, both.intersection(&b)?), (b, b));
    assert_eq!((both.overlap(&a)?, both.union(&rest)?), (24, sms()?));
    assert!(a.intersection(&b)?.is_empty() && !a.is_empty());
    let distinct: HashSet<SmResource> = [a, b, both, both, a].into_iter().collect();
    assert_eq!(distinct.len(), 3);
    assert_eq!(SmResource::from_raw(*a.as_raw())?, a);
    assert_eq!(format!("{a:?}"), "SmResource(24 SMs of device 0, Coscheduled)");
    let whole = sms()?;
    let atoms = whole.atoms()?;
    assert_eq!((atoms[0].sm_count(), atoms[0].atom_count(), atoms.len()), (8, 1, 16));
    assert_eq!(atoms.iter().try_fold(atoms[0], |all, atom| all.union(atom))?, whole);
    Ok(())
}

#[test]
fn invalid_requests_are_refused() -> Result<()> {
    let whole = sms()?;
    let kind = |result: Result<gcx::Split>| result.unwrap_err().kind();
    // GCX_REST is no count.
    assert_eq!(kind(whole.split([u32::MAX])), ErrorKind::InvalidValue);
    assert_eq!(kind(whole.split(Vec::<u32>::new())), ErrorKind::InvalidValue);
    let zero = whole.plan([Some(0)]).unwrap_err();
    assert_eq!((zero.kind(), zero.name()), (ErrorKind::InvalidValue, "GCX_ERROR_INVALID_VALUE"));
    assert!(zero.message().contains("SmRequest::rest()"), "{zero}");
    for family in [Family::Structured, Family::External] {
        let options = SplitOptions::new().family(family);
        assert_eq!(kind(whole.split_with([8], &options)), ErrorKind::InvalidResourceConfiguration);
    }
    let fine = whole.split_with([8], &SplitOptions::new().family(Family::Fine))?[0];
    let coscheduled = SplitOptions::new().family(Family::Coscheduled);
    assert_eq!(kind(fine.split_with([8], &coscheduled)), ErrorKind::InvalidResourceConfiguration);
    Ok(())
}

#[test]
fn values_of_another_type_are_refused() -> Result<()> {
    let zero = gcx::sys::gcx_resource::default();
    assert_eq!(SmResource::from_raw(zero).unwrap_err().kind(), ErrorKind::InvalidResourceType);
    let error = WorkqueueResource::from_raw(*sms()?.as_raw()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResourceType);
    Ok(())
}

#[test]
fn workqueue_limit_of_0_is_refused() -> Result<()> {
    if gcx::driver_info()?.capabilities.contains(&Capability::Workqueues) {
        let queue = Device::new(0)?.workqueue()?;
        assert_eq!(WorkqueueResource::from_raw(*queue.as_raw())?, queue);
        assert!(SmResource::from_raw(*queue.as_raw()).is_err());
        let refused = queue.configured(WorkqueueScope::DeviceCtx, Some(0)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidValue);
    }
    Ok(())
}

#[test]
fn driver_values_are_converted() -> Result<()> {
    let info = gcx::driver_info()?;
    assert!(info.simulated && info.version >= (12, 4), "{info:?}");
    for (capability, since) in [
        (Capability::GreenContexts, (12, 4)),
        (Capability::Workqueues, (13, 1)),
        (Capability::LocalityDomains, (13, 4)),
    ] {
        assert_eq!(info.capabilities.contains(&capability), info.version >= since);
    }
    assert_eq!(gcx::simulator_path()?, info.library);
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let (major, minor, _) = gcx::library_version();
    assert_eq!(format!("{major}.{minor}"), version);
    Ok(())
}

#[test]
fn errors_display_message_name_and_number() {
    let error = sms().unwrap().split([140]).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("140") && said.ends_with("CONFIGURATION, 915]"), "{said}");
    assert!(!error.meaning().is_empty());
    assert_eq!(error.clone(), error);
    let boxed: Box<dyn std::error::Error + Send + Sync> = error.into();
    assert_eq!(boxed.to_string(), said);
}
