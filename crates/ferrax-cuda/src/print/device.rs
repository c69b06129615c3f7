//! Functions of ours that kernels call, as CUDA C.
//!
//! They lie in `device/*.cu`, in paragraphs that each define one name (with all its overloads). A program's source has the
//! paragraphs whose names occur in it, and those that these need, in the order of the files.

const FILES: [&str; 6] = [
    include_str!("device/numbers.cu"),
    include_str!("device/narrow.cu"),
    include_str!("device/complex.cu"),
    include_str!("device/math.cu"),
    include_str!("device/warp.cu"),
    include_str!("device/tensor.cu"),
];

/// What every source begins with. `FX_PTX` is an instruction, or what the host has in its place.
const HEAD: &str = "#define FX static __device__ __forceinline__
#ifndef FX_PTX
#define FX_PTX(host, ...) asm volatile(__VA_ARGS__)
#endif

";

/// The names of ours in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| word.starts_with("fx_"))
}

/// The name that a paragraph defines: the last one before the first parenthesis or brace, or of the line of a type whose
/// alignment stands before its name.
fn defined(paragraph: &str) -> &str {
    let mut code = paragraph.lines().filter(|line| !line.starts_with("//"));
    let name = |line| {
        let aligned = ["__align__", "alignas"].iter().any(|word| str::contains(line, word));
        let end = if aligned { None } else { str::find(line, ['(', '{']) };
        names(end.map_or(line, |at| &line[..at])).last()
    };
    code.find_map(name).unwrap_or_default()
}

/// The functions that a text calls, to stand before it.
pub fn needed(text: &str) -> String {
    let paragraphs: Vec<&str> = FILES.iter().flat_map(|file| file.split("\n\n")).collect();
    let defines: Vec<&str> = paragraphs.iter().map(|p| defined(p)).collect();
    let mut taken = vec![false; paragraphs.len()];
    let mut open: Vec<&str> = names(text).collect();
    open.sort_unstable();
    open.dedup();
    while let Some(name) = open.pop() {
        for (k, paragraph) in paragraphs.iter().enumerate() {
            if !taken[k] && defines[k] == name {
                taken[k] = true;
                open.extend(names(paragraph));
            }
        }
    }
    // Numbers come before what uses them.
    let mut out = HEAD.to_owned();
    for (paragraph, _) in paragraphs.iter().zip(&taken).filter(|(_, taken)| **taken) {
        out.push_str(paragraph.trim_end());
        out.push_str("\n\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paragraph_defines_one_name_before_its_use() {
        let mut known: Vec<&str> = Vec::new();
        for paragraph in FILES.iter().flat_map(|file| file.split("\n\n")) {
            let name = defined(paragraph);
            assert!(name.starts_with("fx_"), "{paragraph}");
            assert!(!known.contains(&name), "{name} is defined twice");
            known.push(name);
            for used in names(paragraph) {
                assert!(known.contains(&used), "{used} stands behind {name}, which uses it");
            }
        }
    }

    #[test]
    fn a_source_has_what_it_calls() {
        let text = needed("x = fx_to_f16(y);");
        assert!(text.contains("fx_code") && text.contains("fx_fields"));
        assert!(!text.contains("fx_to_bf16") && !text.contains("fx_z_exp"));
    }
}
