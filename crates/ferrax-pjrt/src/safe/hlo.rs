//! Programs as the compiler left them, as text.
//!
//! Plugins give them as protocol buffers (`HloModuleProto`); XLA's own text is made by its library alone. This is the
//! same form for people: every instruction with its shape, operands, called computations, and the attributes that say
//! most (dimensions, parameters, scalar constants, targets, names in the source). Other attributes are left out, so the
//! text is not for parsing. Source: the numbers of `hlo.proto` and `xla_data.proto`. Read next: `proto.rs`.

use super::proto::{Content, Message, number};
use ferrax_base::{Result, bail};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Names of XLA's element types, by number.
const TYPES: [&str; 34] = [
    "invalid",
    "pred",
    "s8",
    "s16",
    "s32",
    "s64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "f32",
    "f64",
    "tuple",
    "opaque",
    "c64",
    "bf16",
    "token",
    "c128",
    "f8e5m2",
    "f8e4m3fn",
    "s4",
    "u4",
    "f8e4m3b11fnuz",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
    "s2",
    "u2",
    "f8e4m3",
    "f8e3m4",
    "s1",
    "u1",
    "f4e2m1fn",
    "f8e8m0fnu",
];

/// The text of a program in a format that plugins give (`"hlo"`, `"hlo_with_config"`, or text as it is).
pub(crate) fn text(format: &str, bytes: &[u8]) -> Result<String> {
    match format {
        "hlo" => module(Message(bytes)),
        // the module is the first field, its configuration the second
        "hlo_with_config" => match find(Message(bytes), 1)? {
            Some(Content::Bytes(inner)) => module(Message(inner)),
            _ => bail!(Value, "the plugin's program has no module"),
        },
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => bail!(NotImplemented, "the plugin gives its program as {format:?}, which ferrax cannot print"),
        },
    }
}

fn find(message: Message<'_>, field: u64) -> Result<Option<Content<'_>>> {
    Ok(message.fields()?.into_iter().find(|(f, _)| *f == field).map(|(_, content)| content))
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Integers of a repeated field, packed or one by one.
fn extend(list: &mut Vec<u64>, content: Content<'_>) -> Result<()> {
    match content {
        Content::Number(n) => list.push(n),
        Content::Bytes(packed) => list.extend(Message(packed).integers()?),
    }
    Ok(())
}

fn joined(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

#[derive(Default)]
struct Computation<'a> {
    name: String,
    id: u64,
    root: u64,
    instructions: Vec<Instruction<'a>>,
}

#[derive(Default)]
struct Instruction<'a> {
    id: u64,
    name: String,
    opcode: String,
    shape: String,
    operands: Vec<u64>,
    called: Vec<u64>,
    dimensions: Vec<u64>,
    parameter: u64,
    index: u64,
    literal: Option<Message<'a>>,
    /// Attributes that are strings, each with its name.
    texts: Vec<(&'static str, String)>,
}

fn module(message: Message<'_>) -> Result<String> {
    let (mut name, mut entry, mut all) = (String::new(), 0, Vec::new());
    for field in message.fields()? {
        match field {
            (1, Content::Bytes(bytes)) => name = string(bytes),
            (6, Content::Number(id)) => entry = id,
            (3, Content::Bytes(bytes)) => all.push(computation(Message(bytes))?),
            _ => {}
        }
    }
    let names = all.iter().map(|c| (c.id, c.name.clone())).collect();
    let mut out = format!("HloModule {name}\n");
    for computation in &all {
        out.push('\n');
        if computation.id == entry {
            out.push_str("ENTRY ");
        }
        print(&mut out, computation, &names)?;
    }
    Ok(out)
}

fn computation(message: Message<'_>) -> Result<Computation<'_>> {
    let mut out = Computation::default();
    for field in message.fields()? {
        match field {
            (1, Content::Bytes(bytes)) => out.name = string(bytes),
            (2, Content::Bytes(bytes)) => out.instructions.push(instruction(Message(bytes))?),
            (5, Content::Number(id)) => out.id = id,
            (6, Content::Number(id)) => out.root = id,
            _ => {}
        }
    }
    Ok(out)
}

fn instruction(message: Message<'_>) -> Result<Instruction<'_>> {
    let mut out = Instruction::default();
    for (field, content) in message.fields()? {
        match (field, content) {
            (1, Content::Bytes(bytes)) => out.name = string(bytes),
            (2, Content::Bytes(bytes)) => out.opcode = string(bytes),
            (3, Content::Bytes(bytes)) => out.shape = shape(Message(bytes))?,
            (7, Content::Bytes(bytes)) => out.texts.extend(source(Message(bytes))?),
            (8, Content::Bytes(bytes)) => out.literal = Some(Message(bytes)),
            (9, Content::Number(n)) => out.parameter = n,
            (11, Content::Bytes(bytes)) => out.texts.push(("kind", string(bytes))),
            (13, Content::Number(n)) => out.index = n,
            (14, content) => extend(&mut out.dimensions, content)?,
            (28, Content::Bytes(bytes)) => out.texts.push(("custom_call_target", format!("{:?}", string(bytes)))),
            (30, Content::Bytes(bytes)) => out.texts.extend(contracted(Message(bytes))?),
            (35, Content::Number(id)) => out.id = id,
            (36, content) => extend(&mut out.operands, content)?,
            (38, content) => extend(&mut out.called, content)?,
            (63, Content::Bytes(bytes)) => out.texts.push(("direction", string(bytes))),
            _ => {}
        }
    }
    Ok(out)
}

/// Where an instruction comes from.
fn source(message: Message<'_>) -> Result<Vec<(&'static str, String)>> {
    let name = find(message, 2)?.and_then(|name| match name {
        Content::Bytes(bytes) if !bytes.is_empty() => Some(("metadata", format!("{{op_name={:?}}}", string(bytes)))),
        _ => None,
    });
    Ok(name.into_iter().collect())
}

/// The dimensions of a product.
fn contracted(message: Message<'_>) -> Result<Vec<(&'static str, String)>> {
    const NAMES: [&str; 4] = ["lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims"];
    let mut lists: [Vec<u64>; 4] = Default::default();
    for (field, content) in message.fields()? {
        if let Some(list) = usize::try_from(field).ok().and_then(|f| lists.get_mut(f.wrapping_sub(1))) {
            extend(list, content)?;
        }
    }
    let given = NAMES.iter().zip(lists).filter(|(_, list)| !list.is_empty());
    Ok(given.map(|(name, list)| (*name, format!("{{{}}}", joined(&list)))).collect())
}

/// A shape: `f32[2,3]{1,0}`, `(f32[2], s32[])`.
fn shape(message: Message<'_>) -> Result<String> {
    let (mut ty, mut dims, mut parts, mut order) = (0, Vec::new(), Vec::new(), Vec::new());
    for (field, content) in message.fields()? {
        match (field, content) {
            (2, Content::Number(n)) => ty = n,
            (3, content) => extend(&mut dims, content)?,
            (4, Content::Bytes(bytes)) => parts.push(shape(Message(bytes))?),
            (5, Content::Bytes(bytes)) => {
                for (field, content) in Message(bytes).fields()? {
                    if field == 1 {
                        extend(&mut order, content)?;
                    }
                }
            }
            _ => {}
        }
    }
    let name = usize::try_from(ty).ok().and_then(|t| TYPES.get(t)).copied().unwrap_or("unknown");
    if name == "tuple" {
        return Ok(format!("({})", parts.join(", ")));
    }
    let layout = if order.is_empty() { String::new() } else { format!("{{{}}}", joined(&order)) };
    Ok(format!("{name}[{}]{layout}", joined(&dims)))
}

fn print(out: &mut String, computation: &Computation<'_>, computations: &FxHashMap<u64, String>) -> Result<()> {
    let names: FxHashMap<u64, &str> = computation.instructions.iter().map(|i| (i.id, i.name.as_str())).collect();
    let _ = writeln!(out, "%{} {{", computation.name);
    for instruction in &computation.instructions {
        let root = if instruction.id == computation.root { "ROOT " } else { "" };
        let inside = match instruction.opcode.as_str() {
            "parameter" => instruction.parameter.to_string(),
            "constant" => instruction.literal.map_or(Ok("...".to_owned()), literal)?,
            _ => {
                let name = |id| names.get(id).map_or_else(|| format!("%{id}"), |name| format!("%{name}"));
                instruction.operands.iter().map(name).collect::<Vec<_>>().join(", ")
            }
        };
        let Instruction { name, shape, opcode, .. } = instruction;
        let _ = write!(out, "  {root}%{name} = {shape} {opcode}({inside})");
        if opcode == "get-tuple-element" {
            let _ = write!(out, ", index={}", instruction.index);
        }
        if !instruction.dimensions.is_empty() {
            let _ = write!(out, ", dimensions={{{}}}", joined(&instruction.dimensions));
        }
        for (name, text) in &instruction.texts {
            let _ = write!(out, ", {name}={text}");
        }
        let called = instruction.called.iter().filter_map(|id| computations.get(id));
        let called: Vec<_> = called.map(|name| format!("%{name}")).collect();
        match called.as_slice() {
            [] => {}
            [one] => {
                let _ = write!(out, ", calls={one}");
            }
            several => {
                let _ = write!(out, ", calls={{{}}}", several.join(", "));
            }
        }
        out.push('\n');
    }
    out.push_str("}\n");
    Ok(())
}

/// A constant: a scalar's value where it is a number that Rust has, dots for others.
fn literal(message: Message<'_>) -> Result<String> {
    let fields = message.fields()?;
    let is_scalar = match fields.iter().find(|(f, _)| *f == 1) {
        Some((_, Content::Bytes(bytes))) => !Message(bytes).fields()?.iter().any(|(f, _)| *f == 3),
        _ => false,
    };
    let value = fields.iter().find(|(f, _)| *f != 1).filter(|_| is_scalar);
    let Some((field, Content::Bytes(bytes))) = value else { return Ok("...".into()) };
    // a list of one number, whose kind is in the field
    let first = || Message(bytes).integers().map(|list| list.first().copied().unwrap_or(0));
    Ok(match field {
        2 => if bytes.first() == Some(&1) { "true" } else { "false" }.into(),
        4 => (first()? as i32).to_string(),
        5 => (first()? as i64).to_string(),
        6 | 7 => first()?.to_string(),
        8 if bytes.len() == 4 => f32::from_bits(number(bytes) as u32).to_string(),
        9 if bytes.len() == 8 => f64::from_bits(number(bytes)).to_string(),
        _ => "...".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::proto::Proto;
    use super::*;

    fn shape_of(ty: i64, dims: &[u64]) -> Proto {
        let mut proto = Proto::default();
        proto.int(2, ty);
        proto.packed(3, dims.iter().copied());
        if !dims.is_empty() {
            let mut layout = Proto::default();
            layout.packed(1, (0..dims.len() as u64).rev());
            proto.message(5, &layout);
        }
        proto
    }

    fn instruction_of(id: i64, name: &str, opcode: &str, operands: &[u64]) -> Proto {
        let mut proto = Proto::default();
        proto.bytes(1, name.as_bytes());
        proto.bytes(2, opcode.as_bytes());
        proto.message(3, &shape_of(11, if opcode == "constant" { &[] } else { &[2, 3] }));
        proto.int(35, id);
        proto.packed(36, operands.iter().copied());
        proto
    }

    /// A module of one computation that adds a constant.
    fn sum() -> Proto {
        let mut value = Proto::default();
        value.message(1, &shape_of(11, &[]));
        value.bytes(8, &0.5f32.to_le_bytes());
        let mut constant = instruction_of(2, "half", "constant", &[]);
        constant.message(8, &value);
        let mut spread = instruction_of(3, "spread", "broadcast", &[2]);
        let mut source = Proto::default();
        source.bytes(2, b"jit(f)/add");
        spread.message(7, &source);
        let mut entry = Proto::default();
        entry.bytes(1, b"main");
        for part in
            [instruction_of(1, "x", "parameter", &[]), constant, spread, instruction_of(4, "sum", "add", &[1, 3])]
        {
            entry.message(2, &part);
        }
        entry.int(5, 7);
        entry.int(6, 4);
        let mut module = Proto::default();
        module.bytes(1, b"sums");
        module.message(3, &entry);
        module.int(6, 7);
        module
    }

    #[test]
    fn programs_read_as_xlas() {
        let want = "HloModule sums\n\nENTRY %main {\n  %x = f32[2,3]{1,0} parameter(0)\n  %half = f32[] constant(0.5)\n  \
                    %spread = f32[2,3]{1,0} broadcast(%half), metadata={op_name=\"jit(f)/add\"}\n  \
                    ROOT %sum = f32[2,3]{1,0} add(%x, %spread)\n}\n";
        assert_eq!(text("hlo", &sum().0).unwrap(), want);
        let mut config = Proto::default();
        config.message(1, &sum());
        assert_eq!(text("hlo_with_config", &config.0).unwrap(), want);
        assert_eq!(text("mlir", b"module {}").unwrap(), "module {}");
        assert!(text("mlir", b"ML\xefR\0").is_err() && text("hlo", &sum().0[..40]).is_err());
    }
}
