//! The bindings that are kept are those of the header. Only with the feature `bindgen`.
#![cfg(feature = "bindgen")]

#[test]
fn kept_bindings_are_those_of_the_header() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    let kept = include_str!("../src/generated/bindings.rs");
    let differs = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "src/generated/bindings.rs isn't what bindgen makes of include/gcx.h, first {differs:?}; replace it:\n  \
         cp {}/bindings.rs {}/src/generated/bindings.rs",
        env!("OUT_DIR"),
        env!("CARGO_MANIFEST_DIR")
    );
}
