//! The stored bindings are those of the header. Only with the feature `bindgen`.
#![cfg(feature = "bindgen")]

#[test]
fn stored_bindings_match_the_header() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    let stored = include_str!("../src/generated/bindings.rs");
    let differs = made.lines().zip(stored.lines()).find(|(made, stored)| made != stored);
    assert!(
        made == stored,
        "src/generated/bindings.rs isn't what bindgen makes of include/gcx.h, first {differs:?}; replace it:\n  \
         cp {}/bindings.rs {}/src/generated/bindings.rs",
        env!("OUT_DIR"),
        env!("CARGO_MANIFEST_DIR")
    );
}
