//! Whole kernels: what stands around the statements of a [`Body`].
//!
//! A kernel's parameters are pointers to what it reads (`p0`, …), pointers to what it writes (`o0`, …) and integers (`a0`,
//! …). Indices are of type `I`, with 64 bits where an array has 2³⁰ elements or more; `U` is its unsigned kin. Loops over
//! elements go on by the number of all threads, so that any launch computes everything.

use super::body::Body;
use super::types::c_type;
use ferrax_base::{DType, Result};
use ferrax_loops::{Graph, ValueId};

/// Stands for the name in a kernel's text.
pub const NAME: &str = "@";
/// Threads of a block of elementwise kernels.
pub const BLOCK: u32 = 256;
/// Blocks beyond which threads take several elements one after another.
const BLOCKS: usize = 1 << 16;
/// Elements from which on threads read vectors.
const VECTORS: usize = 64;

/// A kernel without its name.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its text, with [`NAME`] for its name.
    pub text: String,
    /// The values behind its first pointers.
    pub reads: Vec<ValueId>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: u32,
}

impl Kernel {
    /// The kernel with as many registers as leave a multiprocessor 1,024 threads.
    pub fn crowded(mut self) -> Kernel {
        let bounds = format!("__global__ __launch_bounds__({}, {})", self.block, 1024 / self.block);
        self.text = self.text.replacen("__global__", &bounds, 1);
        self
    }
}

/// Blocks for so many threads.
pub fn blocks(threads: usize) -> u32 {
    threads.div_ceil(BLOCK as usize).clamp(1, BLOCKS) as u32
}

/// The head of the loop over `n` elements, one a thread.
pub fn element_loop(n: usize) -> String {
    format!("for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < {n}; i += (I)gridDim.x * blockDim.x)")
}

/// The kernel of a body that writes arrays of some dtypes and takes so many integers. `apart` says that no two of its
/// arrays overlap.
pub fn finish(body: Body<'_>, writes: &[DType], ints: usize, apart: bool, grid: [u32; 3], block: u32) -> Kernel {
    let restrict = if apart { " __restrict__" } else { "" };
    let g = body.g;
    let mut params: Vec<String> = Vec::new();
    for (k, &v) in body.reads.iter().enumerate() {
        params.push(format!("const {}*{restrict} p{k}", c_type(g.ty(v).dtype)));
    }
    for (k, &d) in writes.iter().enumerate() {
        params.push(format!("{}*{restrict} o{k}", c_type(d)));
    }
    params.extend((0..ints).map(|k| format!("long long a{k}")));
    let wide = body.largest >= 1 << 30;
    let (i, u) = if wide { ("long long", "unsigned long long") } else { ("int", "unsigned") };
    let text = format!(
        "extern \"C\" __global__ void {NAME}({}) {{\n  typedef {i} I;\n  typedef {u} U;\n{}}}\n",
        params.join(", "),
        body.text
    );
    Kernel { text, reads: body.reads, grid, block }
}

/// The elements of values of `n` elements each, which nothing but this kernel computes.
pub fn elementwise(
    g: &Graph,
    held: &dyn Fn(ValueId) -> bool,
    outputs: &[ValueId],
    apart: bool,
    aligned: &dyn Fn(ValueId) -> bool,
) -> Result<Kernel> {
    let n = g.ty(outputs[0]).size();
    // A first attempt finds out what is read, and whether vectors can be.
    let mut body = Body::new(g, held);
    let at = body.linear("i");
    body.lanes = Some((at, Vec::new()));
    stores(&mut body, outputs, "")?;
    let lanes = body.lanes.take().map(|l| l.1).unwrap_or_default();
    let vectors = lanes.iter().map(|&k| body.reads[k]).chain(outputs.iter().copied());
    let widest = vectors.clone().map(|v| g.ty(v).dtype.size()).max().unwrap_or(16);
    let step = 16 / widest;
    let short = body.text.len() < 4096;
    let fits = n >= VECTORS && step > 1 && short && !lanes.is_empty() && vectors.into_iter().all(aligned);
    let writes: Vec<DType> = outputs.iter().map(|&v| g.ty(v).dtype).collect();
    let (mut body, threads) = (Body::new(g, held), if fits { n.div_ceil(step) } else { n });
    if fits {
        vector_loop(&mut body, n, step, outputs)?;
    } else {
        body.open(&element_loop(n));
        stores(&mut body, outputs, "o")?;
        body.close();
    }
    body.largest = body.largest.max(n);
    Ok(finish(body, &writes, 0, apart, [blocks(threads), 1, 1], BLOCK))
}

/// Stores the element `i` of each output.
fn stores(body: &mut Body<'_>, outputs: &[ValueId], to: &str) -> Result<()> {
    let at = body.linear("i");
    let mut names = Vec::new();
    for &v in outputs {
        names.push(body.element(v, at)?);
    }
    for (k, name) in names.iter().enumerate() {
        body.line(&if to == "o" { format!("o{k}[i] = {name};") } else { format!("w{k}.x[u] = {name};") });
    }
    Ok(())
}

/// The loop over vectors of `step` elements, of which the last one may be cut short.
fn vector_loop(body: &mut Body<'_>, n: usize, step: usize, outputs: &[ValueId]) -> Result<()> {
    let g = body.g;
    // Lanes beyond the last element compute that one: without branches between lanes, their statements are interleaved.
    let inside = |i: &str| if n.is_multiple_of(step) { i.to_owned() } else { format!("({i} < {n} ? {i} : {n} - 1)") };
    let each = |array: &str, vector: &str, k: usize, reads: bool| {
        let (all, one) = (format!("*(fx_pack<@T, {step}>*)({array}{k} + b)"), format!("{array}{k}[b + u]"));
        let (all, one) = (all.replace("(fx_pack", if reads { "(const fx_pack" } else { "(fx_pack" }), one);
        if reads {
            let one = one.replace("b + u", &inside("b + u"));
            let rest = format!("for (int u = 0; u < {step}; ++u) {vector}{k}.x[u] = {one};");
            format!("if (whole) {vector}{k} = {all}; else {rest}")
        } else {
            let rest = format!("for (int u = 0; u < {step}; ++u) if (b + u < {n}) {one} = {vector}{k}.x[u];");
            format!("if (whole) {all} = {vector}{k}; else {rest}")
        }
    };
    let head = format!("(I)gridDim.x * blockDim.x * {step}");
    body.open(&format!("for (I b = ((I)blockIdx.x * blockDim.x + threadIdx.x) * {step}; b < {n}; b += {head})"));
    let whole = if n.is_multiple_of(step) { "true".to_owned() } else { format!("b + {step} <= {n}") };
    body.line(&format!("const bool whole = {whole};"));
    // What is read is known when the statements inside are written, and stands before them.
    let before = std::mem::take(&mut body.text);
    let at = body.linear("i");
    body.lanes = Some((at, Vec::new()));
    body.line("#pragma unroll");
    body.open(&format!("for (int u = 0; u < {step}; ++u)"));
    body.line(&format!("const I i = {};", inside("b + u")));
    stores(body, outputs, "w")?;
    body.close();
    let inside = std::mem::replace(&mut body.text, before);
    for k in body.lanes.take().map(|l| l.1).unwrap_or_default() {
        let t = c_type(g.ty(body.reads[k]).dtype);
        body.line(&format!("fx_pack<{t}, {step}> v{k};"));
        body.line(&each("p", "v", k, true).replace("@T", t));
    }
    for (k, &v) in outputs.iter().enumerate() {
        body.line(&format!("fx_pack<{}, {step}> w{k};", c_type(g.ty(v).dtype)));
    }
    body.text.push_str(&inside);
    for (k, &v) in outputs.iter().enumerate() {
        body.line(&each("o", "w", k, false).replace("@T", c_type(g.ty(v).dtype)));
    }
    body.close();
    Ok(())
}
