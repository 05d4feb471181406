//! Generates functions that call the library which was opened at run time, for the feature
//! `dlopen`.

use std::fmt::Write as _;

const BEGIN: &str = "extern \"C\" {";
const END: &str = "\n}\n";
const TAKES: &str = "a String takes everything";

/// A function as bindings.rs declares it.
struct Declared<'a> {
    name: &'a str,
    arguments: Vec<(&'a str, &'a str)>,
    result: &'a str,
}

/// Returns the bindings with a function instead of each declaration, and the list of their names.
pub fn functions(bindings: &str) -> String {
    let mut out = String::new();
    let mut names = Vec::new();
    let mut rest = bindings;
    while let Some(begin) = rest.find(BEGIN) {
        let (before, block) = (&rest[..begin], &rest[begin + BEGIN.len()..]);
        let end = block.find(END).expect("an extern block ends at a line's start");
        let (attributes, code) = block[..end]
            .split_at(block.find("pub fn ").expect("an extern block declares a function"));
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        let function = parsed(&code);
        out += before;
        write_function(&mut out, attributes, &function, names.len());
        names.push(function.name.to_owned());
        rest = &block[end + END.len()..];
    }
    out += rest;
    write!(out, "pub(crate) const FUNCTIONS: [&str; {}] = [", names.len()).expect(TAKES);
    for name in names {
        write!(out, "\"{name}\\0\", ").expect(TAKES);
    }
    out + "];\n"
}

/// Parses `pub fn NAME(ARGUMENT: TYPE, ...) -> RESULT;`.
fn parsed(code: &str) -> Declared<'_> {
    let code = code.trim_start_matches("pub fn ").trim_end_matches(';');
    let (name, rest) = code.split_once('(').expect("a function has arguments");
    let (arguments, result) = rest.rsplit_once(") -> ").expect("each function returns something");
    let arguments =
        arguments.split(',').filter_map(|argument| argument.trim().split_once(": ")).collect();
    Declared { name, arguments, result }
}

fn write_function(out: &mut String, attributes: &str, function: &Declared, index: usize) {
    let Declared { name, arguments, result } = function;
    let joined = |words: Vec<String>| words.join(", ");
    let parameters =
        joined(arguments.iter().map(|(name, kind)| format!("{name}: {kind}")).collect());
    let types = joined(arguments.iter().map(|(_, kind)| (*kind).to_owned()).collect());
    let passed = joined(arguments.iter().map(|(name, _)| (*name).to_owned()).collect());
    // No parameter of gcx.h has the names of the variables, which it would hide.
    write!(
        out,
        "{attributes}#[inline]
pub unsafe extern \"C\" fn {name}({parameters}) -> {result} {{
    match crate::dynamic::address({index}) {{
        Some(its_address) => {{
            let its_function: unsafe extern \"C\" fn({types}) -> {result} =
                core::mem::transmute(its_address);
            its_function({passed})
        }}
        None => crate::dynamic::Missing::missing(\"{name}\"),
    }}
}}
"
    )
    .expect(TAKES);
}
