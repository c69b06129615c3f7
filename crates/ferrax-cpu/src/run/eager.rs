//! Operations called directly on buffers, with no graph: what an eager dispatcher needs.
//!
//! Elementwise operations look up one kernel and call it once, or for a part of many elements on each thread; everything else
//! goes through [`run_node`].

use super::Outputs;
use super::leaf;
use crate::elementwise::kernel::{In, Out};
use crate::elementwise::{self, Plan, convert};
use crate::pool::{self, Disjoint};
use crate::program::Program;
use ferrax_base::{Arg, Buffer, DType, Result};
use ferrax_loops::cost::TRAFFIC;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, Kind, Type, UnaryOp};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// An operand: its buffer, and whether it holds one element that stands for all.
pub type Operand<'a> = (&'a Buffer, bool);

/// Elements from which on threads may share them.
const MANY: usize = 16 << 10;
/// Elements that a thread takes at a time, at least.
const PART: usize = 4 << 10;

/// Bytes of a block on the stack, and alignment for every element type.
const BLOCK: usize = 4096;
#[repr(align(64))]
struct Block(MaybeUninit<[u8; BLOCK]>);

impl Block {
    const fn new() -> Self {
        Block(MaybeUninit::uninit())
    }

    fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// f(x) of `n` elements.
#[inline]
pub fn unary(op: UnaryOp, dtype: DType, x: &Buffer, n: usize) -> Result<Buffer> {
    let out = match op {
        UnaryOp::IsFinite => DType::Bool,
        UnaryOp::Abs | UnaryOp::Real | UnaryOp::Imag => dtype.real(),
        _ => dtype,
    };
    apply(&elementwise::unary(op, dtype, out)?, || Kind::Unary(op).cost(), [dtype], [(x, false)], out, n)
}

/// f(x, y) of `n` elements of one dtype.
#[inline]
pub fn binary(op: BinaryOp, dtype: DType, x: Operand<'_>, y: Operand<'_>, n: usize) -> Result<Buffer> {
    let out = if op == BinaryOp::Complex { dtype.to_complex() } else { dtype };
    apply(&elementwise::binary(op, dtype, out)?, || Kind::Binary(op).cost(), [dtype; 2], [x, y], out, n)
}

/// x compared with y, `n` elements of one dtype; gives `bool`.
#[inline]
pub fn compare(op: CompareOp, dtype: DType, x: Operand<'_>, y: Operand<'_>, n: usize) -> Result<Buffer> {
    apply(&elementwise::compare(op, dtype)?, || Kind::Compare(op).cost(), [dtype; 2], [x, y], DType::Bool, n)
}

/// `on_true` where `pred` (bool), else `on_false`; `n` elements.
#[inline]
pub fn select(
    dtype: DType,
    pred: Operand<'_>,
    on_false: Operand<'_>,
    on_true: Operand<'_>,
    n: usize,
) -> Result<Buffer> {
    let plan = elementwise::select(2, DType::Bool, dtype);
    apply(&plan, || Kind::Select.cost(), [DType::Bool, dtype, dtype], [pred, on_false, on_true], dtype, n)
}

/// x limited to lo..=hi, `n` elements.
pub fn clamp(dtype: DType, lo: Operand<'_>, x: Operand<'_>, hi: Operand<'_>, n: usize) -> Result<Buffer> {
    apply(&elementwise::clamp(dtype)?, || Kind::Clamp.cost(), [dtype; 3], [lo, x, hi], dtype, n)
}

/// x ** power by repeated multiplication, `n` elements.
pub fn integer_pow(dtype: DType, power: i32, x: &Buffer, n: usize) -> Result<Buffer> {
    apply(&elementwise::integer_pow(power, dtype)?, || Kind::IntegerPow(power).cost(), [dtype], [(x, false)], dtype, n)
}

/// x as another dtype, `n` elements.
#[inline]
pub fn convert(from: DType, to: DType, x: &Buffer, n: usize) -> Result<Buffer> {
    apply(&convert::plan(from, to)?, || Kind::Convert.cost(), [from], [(x, false)], to, n)
}

/// Runs a plan on whole buffers; `cost` says what an element takes, in picoseconds.
#[inline]
fn apply<const K: usize>(
    plan: &Plan,
    cost: impl Fn() -> u64,
    dtypes: [DType; K],
    xs: [Operand<'_>; K],
    out: DType,
    n: usize,
) -> Result<Buffer> {
    let mut result = Buffer::allocate(n * out.size())?;
    for (i, x) in xs.iter().enumerate() {
        let need = if x.1 { n.min(1) } else { n } * dtypes[i].size();
        assert!(x.0.len() >= need, "operand {i} has {} bytes, needs {need}", x.0.len());
    }
    let call = Call { plan, dtypes, xs, out, result: Disjoint(result.as_mut_ptr()) };
    // SAFETY: operands were checked to hold n elements of the dtypes the kernel was looked up for.
    unsafe {
        if n < MANY {
            call.part(0, n);
        } else {
            call.share(n, cost());
        }
    }
    Ok(result)
}

/// A plan with its operands, and where its result goes.
struct Call<'a, const K: usize> {
    plan: &'a Plan,
    dtypes: [DType; K],
    xs: [Operand<'a>; K],
    out: DType,
    result: Disjoint<u8>,
}

impl<const K: usize> Call<'_, K> {
    /// All elements, shared out where that is worth it.
    #[cold]
    unsafe fn share(&self, n: usize, cost: u64) {
        let arrays = (0..K).filter(|&i| !self.xs[i].1).map(|i| self.dtypes[i].size());
        let bytes = self.out.size() + arrays.sum::<usize>();
        let time = n as u64 * (cost + TRAFFIC * bytes as u64) / 1000;
        if !pool::worth(time) {
            // SAFETY: the caller's contract.
            return unsafe { self.part(0, n) };
        }
        let each = n.div_ceil(8 * pool::threads()).max(PART).next_multiple_of(64);
        pool::share(time, n.div_ceil(each), &|_, k| {
            // SAFETY: as above; no two parts have an element in common.
            unsafe { self.part(k * each, ((k + 1) * each).min(n)) };
        });
    }

    /// The elements `from..to`.
    #[inline]
    unsafe fn part(&self, from: usize, to: usize) {
        let Call { plan, dtypes, xs, out, .. } = self;
        // SAFETY: the caller's operands hold the elements.
        unsafe {
            if plan.widen.is_none() && plan.narrow.is_none() && xs.iter().all(|x| !x.1) {
                let ptrs: [*const u8; K] = std::array::from_fn(|i| xs[i].0.as_ptr().add(from * dtypes[i].size()));
                (plan.kernel)(ptrs.as_ptr(), self.result.at(from * out.size()), to - from, plan.imm);
            } else {
                apply_blocks(plan, *dtypes, *xs, *out, (from, to), self.result.at(0));
            }
        }
    }
}

/// The elements `from..to` in blocks, through the stack: scalars are spread there and narrow formats widened.
unsafe fn apply_blocks<const K: usize>(
    plan: &Plan,
    dtypes: [DType; K],
    xs: [Operand<'_>; K],
    out: DType,
    (from, to): (usize, usize),
    result: *mut u8,
) {
    let n = to - from;
    let widest = dtypes.iter().map(|d| d.size()).max().unwrap_or(1);
    let block = (BLOCK / widest.max(plan.wide_size).max(plan.raw_size).max(out.size())).min(n.max(1));
    let mut wide = [const { Block::new() }; K];
    let mut raw = Block::new();
    let mut fixed: [Option<*const u8>; K] = [None; K];
    // SAFETY: the caller's operands hold the elements (or one); blocks hold `block` of the widest type.
    unsafe {
        for (i, x) in xs.iter().enumerate().filter(|x| x.1.1) {
            let ptr = wide[i].ptr();
            crate::library::movement::splat(dtypes[i], x.0.as_ptr(), ptr, block);
            if let Some(widen) = plan.widen.filter(|_| i >= plan.first_wide) {
                let spread = raw.ptr();
                std::ptr::copy_nonoverlapping(ptr, spread, block * dtypes[i].size());
                widen((&raw const spread).cast::<*const u8>(), ptr, block, 0);
            }
            fixed[i] = Some(ptr);
        }
        for start in (from..to).step_by(block) {
            let len = (to - start).min(block);
            let mut ptrs = [std::ptr::null(); K];
            for i in 0..K {
                ptrs[i] = match (fixed[i], plan.widen) {
                    (Some(p), _) => p,
                    (None, Some(widen)) if i >= plan.first_wide => {
                        let src = xs[i].0.as_ptr().add(start * dtypes[i].size());
                        widen(&raw const src, wide[i].ptr(), len, 0);
                        wide[i].ptr()
                    }
                    _ => xs[i].0.as_ptr().add(start * dtypes[i].size()),
                };
            }
            let dst = result.add(start * out.size());
            match plan.narrow {
                None => (plan.kernel)(ptrs.as_ptr(), dst, len, plan.imm),
                Some(narrow) => {
                    (plan.kernel)(ptrs.as_ptr(), raw.ptr(), len, plan.imm);
                    let src = raw.ptr().cast_const();
                    narrow(&raw const src, dst, len, 0);
                }
            }
        }
    }
}

/// Computes one node of any kind on whole buffers.
pub fn run_node(kind: &Kind, inputs: &[(&Type, &Buffer)], results: &[Type]) -> Result<Outputs> {
    let subgraphs = matches!(
        kind,
        Kind::While { .. } | Kind::Scan { .. } | Kind::Switch(_) | Kind::Call(_) | Kind::ReduceWith { .. }
    );
    if subgraphs || kind.is_elementwise() {
        return through_program(kind, inputs, results);
    }
    let mut buffers: Outputs = SmallVec::new();
    for ty in results {
        buffers.push(Buffer::allocate(ty.bytes())?);
    }
    let ins: SmallVec<[In<'_>; 4]> = inputs
        .iter()
        .map(|(ty, b)| {
            assert!(b.len() >= ty.bytes(), "an operand of type {ty} has {} bytes", b.len());
            // SAFETY: the buffer was checked to hold the type.
            unsafe { In::new(b.as_ptr(), ty) }
        })
        .collect();
    let mut outs: SmallVec<[Out<'_>; 2]> =
        // SAFETY: the buffers were allocated for the types.
        buffers.iter_mut().zip(results).map(|(b, ty)| unsafe { Out::new(b.as_mut_ptr(), ty) }).collect();
    leaf::run(kind, &ins, &mut outs)?;
    drop(outs);
    Ok(buffers)
}

fn through_program(kind: &Kind, inputs: &[(&Type, &Buffer)], results: &[Type]) -> Result<Outputs> {
    let mut b = Builder::new(inputs.iter().map(|(ty, _)| (*ty).clone()));
    let params: SmallVec<[_; 4]> = b.params().collect();
    let outs = b.push_many(kind.clone(), &params, results);
    let program = Program::compile(Arc::new(b.finish(&outs)))?;
    let mut args: SmallVec<[Arg<'_>; 4]> = inputs.iter().map(|(_, b)| Arg::Host(b)).collect();
    program.run(&mut args)
}
