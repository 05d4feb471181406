//! Generates the bindings from the header, for the feature `bindgen`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The first lines of the bindings.
const HEAD: &str = "\
// Made from include/gcx.h by bindgen: cargo test -p gcx-sys --features bindgen compares them, and
// says how to replace this file. Don't edit it.";

/// Returns the Rust declarations of everything in gcx.h.
pub fn bindings(include: &Path) -> String {
    let header = include.join("gcx.h");
    let made = bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_arg("-fparse-all-comments")
        .allowlist_item("(gcx|GCX)_.*")
        // Macros that mean nothing in Rust.
        .blocklist_item("GCX_API|GCX_ENUM_OF_INT|GCX_([A-Z]+_)?H")
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: true })
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        // Comparing callbacks is meaningless: one function may have several addresses.
        .no_partialeq("gcx_prepare_params")
        .no_hash("gcx_prepare_params")
        .use_core()
        .rust_target(bindgen::RustTarget::stable(63, 0).expect("bindgen knows Rust 1.63"))
        .rust_edition(bindgen::RustEdition::Edition2021)
        .layout_tests(true)
        .disable_header_comment()
        .raw_line(HEAD)
        .formatter(bindgen::Formatter::Prettyplease)
        .parse_callbacks(Box::new(Constants))
        .generate()
        .unwrap_or_else(|error| panic!("bindgen could not read gcx.h: {error}"));
    made.to_string() + &initializers(&parts(include))
}

/// Returns the text of the headers that gcx.h includes.
fn parts(include: &Path) -> String {
    let names = ["partition", "lease", "reservation", "graph", "diagnostics"];
    let read = |name| fs::read_to_string(include.join("gcx").join(name).with_extension("h"));
    names.into_iter().map(|name| read(name).expect("bindgen has read the header too")).collect()
}

/// Returns the constants of `#define GCX_X_INIT GCX_STRUCT_INIT(gcx_x)`, which bindgen can't see.
fn initializers(header: &str) -> String {
    let mut out = String::new();
    for line in header.lines().filter_map(|line| line.strip_prefix("#define ")) {
        if let Some((name, rest)) = line.split_once(" GCX_STRUCT_INIT(") {
            let kind = rest.trim_end_matches(')');
            write!(
                out,
                "/// The start of a {kind}: all zero but its size.
pub const {name}: {kind} = {{
    // SAFETY: every field is a number, a pointer or an array of numbers, which all may be zero.
    let zero = [0u8; core::mem::size_of::<{kind}>()];
    let mut value: {kind} = unsafe {{ core::mem::transmute(zero) }};
    value.struct_size = core::mem::size_of::<{kind}>() as u32;
    value
}};
"
            )
            .expect("a String takes everything");
        }
    }
    out
}

/// Gives the header's numbers the types that its functions take them in.
#[derive(Debug)]
struct Constants;

impl bindgen::callbacks::ParseCallbacks for Constants {
    fn int_macro(&self, _name: &str, _value: i64) -> Option<bindgen::callbacks::IntKind> {
        Some(bindgen::callbacks::IntKind::U32)
    }
}
