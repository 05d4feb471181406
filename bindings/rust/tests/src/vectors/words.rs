//! The words of vectors, read and written.

use gcx::{
    EventOptions, Family, LocalityDomain, SmRequest, SmResource, SplitOptions, WorkqueueScope,
};

/// The items of a list.
pub fn list(text: &str) -> Vec<&str> {
    split(text, ',')
}

fn split(text: &str, separator: char) -> Vec<&str> {
    if text == "-" {
        Vec::new()
    } else {
        text.split(separator).collect()
    }
}

/// Items as a list.
pub fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() {
        "-".to_owned()
    } else {
        items.join(",")
    }
}

pub fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number that fits here"))
}

const FAMILIES: [(&str, Family); 5] = [
    ("coscheduled", Family::Coscheduled),
    ("fine", Family::Fine),
    ("max-cluster", Family::MaxCluster),
    ("structured", Family::Structured),
    ("external", Family::External),
];
const SCOPES: [(&str, WorkqueueScope); 2] = [
    ("device_ctx", WorkqueueScope::DeviceCtx),
    ("green_ctx_balanced", WorkqueueScope::GreenCtxBalanced),
];

fn named<T: Copy>(values: &[(&str, T)], text: &str) -> T {
    let found = values.iter().find(|(name, _)| *name == text);
    found.unwrap_or_else(|| panic!("{text:?} has no value in this crate")).1
}

fn name<T: PartialEq>(values: &[(&'static str, T)], value: &T) -> &'static str {
    values.iter().find(|(_, other)| other == value).map_or("?", |(name, _)| name)
}

pub fn family(text: &str) -> Family {
    named(&FAMILIES, text)
}

pub fn scope(text: &str) -> WorkqueueScope {
    named(&SCOPES, text)
}

pub fn scope_name(scope: Option<WorkqueueScope>) -> &'static str {
    scope.map_or("?", |scope| name(&SCOPES, &scope))
}

pub fn split_options(text: &str) -> SplitOptions {
    split(text, '+').iter().fold(SplitOptions::new(), |options, word| match *word {
        "exact" => options.exact(),
        "exclude_leased" => options.exclude_leased(),
        word => options.family(family(word)),
    })
}

pub fn event_options(text: &str) -> EventOptions {
    split(text, '+').iter().fold(EventOptions::new(), |options, word| match *word {
        "timing" => options.timing(),
        "blocking" => options.blocking_sync(),
        _ => panic!("{word:?} is no flag of an event"),
    })
}

/// A request: COUNT, or COUNT/COSCHEDULED/PREFERRED/FLAGS/DOMAIN.
pub fn request(text: &str) -> SmRequest {
    let (count, more) = text.split_once('/').unwrap_or((text, ""));
    let counted = match count {
        "rest" => SmRequest::rest(),
        count => SmRequest::new(number(count)),
    };
    if more.is_empty() {
        return counted;
    }
    let mut numbers: Vec<u32> = more.split('/').map(number).collect();
    numbers.resize(4, 0);
    let mut request = counted.coscheduled(numbers[0]).preferred_coscheduled(numbers[1]);
    if numbers[2] & gcx::sys::GCX_SM_REQUEST_BACKFILL != 0 {
        request = request.backfill();
    }
    if numbers[2] & gcx::sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_ID != 0 {
        request = request.locality_domain(match numbers[3] {
            gcx::sys::GCX_LOCALITY_DOMAIN_ID_ANY => LocalityDomain::Any,
            domain => LocalityDomain::Id(domain),
        });
    }
    if numbers[2] & gcx::sys::GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS != 0 {
        request = request.supplemental_sms();
    }
    request
}

/// The outputs of `info` of SMs.
pub fn info(sms: &SmResource) -> Vec<String> {
    let domain = match sms.locality_domain() {
        None => "-".to_owned(),
        Some(LocalityDomain::Id(domain)) => domain.to_string(),
        Some(_) => gcx::sys::GCX_LOCALITY_DOMAIN_ID_ANY.to_string(),
    };
    vec![
        sms.device().to_string(),
        name(&FAMILIES, &sms.family()).to_owned(),
        sms.sm_count().to_string(),
        sms.atom_count().to_string(),
        sms.min_partition_size().to_string(),
        sms.coscheduled_alignment().to_string(),
        sms.flags().to_string(),
        domain,
    ]
}
