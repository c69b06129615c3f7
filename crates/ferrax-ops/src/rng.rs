//! Random bits: the Threefry-2x32 block cipher and typed keys.
//!
//! A typed key is one element of dtype `key<fry>`: two uint32 words. Splitting, folding and drawing bits encrypt
//! 64-bit counters under the key, so every word of a result depends on its place alone and streams are the same
//! however an array is divided. Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011);
//! JAX's `jax_threefry_partitionable` streams, which are reproduced bit for bit.
//! Read next: `python/ferrax/random`, the distributions.

use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, unary_batch, zero_jvp};
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Param, ParamValue, Params, Slot, Special, Value, Values, bind, params};
use ferrax_loops::{BinaryOp, Builder, Kind, SliceDims, Type, ValueId};
use ferrax_transform::structural::broadcast_batch;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::Arc;

// ---- the cipher ----------------------------------------------------------------------------------------------------

/// One block of Threefry-2x32 with 20 rounds.
pub fn threefry_block(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let schedule = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let mut x = [counter[0].wrapping_add(schedule[0]), counter[1].wrapping_add(schedule[1])];
    for round in 0..5 {
        for r in ROTATIONS[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(r) ^ x[0];
        }
        x[0] = x[0].wrapping_add(schedule[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(schedule[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    x
}

fn word(v: u32) -> Scalar {
    Scalar::from_u64(DType::U32, u64::from(v))
}

fn words(key: Scalar) -> [u32; 2] {
    [key.bits as u32, (key.bits >> 32) as u32]
}

fn key_of(w: [u32; 2]) -> Scalar {
    Scalar { dtype: DType::KeyFry, bits: u128::from(w[0]) | u128::from(w[1]) << 32 }
}

/// Encrypts a 64-bit counter.
fn at_counter(key: Scalar, n: u64) -> [u32; 2] {
    threefry_block(words(key), [(n >> 32) as u32, n as u32])
}

/// Threefry-2x32 of counters under keys.
pub static THREEFRY2X32: Def<()> = Def {
    name: "threefry2x32",
    doc: "The Threefry-2x32 block cipher (20 rounds): two key words and two counter words to two words.",
    arity: Some(4),
    shape: |(), args| {
        if args.len() != 4 || args.iter().any(|a| a.dtype != DType::U32) {
            let types: Vec<String> = args.iter().map(ToString::to_string).collect();
            bail!(Type, "Arguments to threefry2x32 must be four uint32 arrays, got {}", types.join(", "));
        }
        let shape = crate::common::nary_result_shape("threefry2x32", args)?;
        Ok(smallvec![Aval::new(DType::U32, &shape), Aval::new(DType::U32, &shape)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|op, p, axis, args, dims| {
        let (outs, at) = crate::common::nary_batch(op, p, axis, args, dims)?;
        let at = smallvec![at[0]; outs.len()];
        Ok((outs, at))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let n = outs[0].size();
        let full = crate::common::aligned(b, args, &outs[0].shape);
        let flat =
            full.iter().map(|&v| if b.ty(v).shape.is_empty() { b.broadcast(v, &[n], &[]) } else { b.reshape(v, &[n]) });
        let flat: SmallVec<[ValueId; 4]> = flat.collect();
        let (x, y) = cipher(b, &flat, n);
        Ok(smallvec![b.reshape(x, &outs[0].shape), b.reshape(y, &outs[0].shape)])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        let half = |n: usize| {
            RefTensor::map(&outs[n], &args, |row| {
                let w: Vec<u32> = row.iter().map(|s| s.bits as u32).collect();
                word(threefry_block([w[0], w[1]], [w[2], w[3]])[n])
            })
        };
        Ok(vec![half(0), half(1)])
    }),
    special: Special::NONE,
};

/// The cipher's node: keys of rank 0 or of the counters' length.
fn cipher(b: &mut Builder, args: &[ValueId], n: usize) -> (ValueId, ValueId) {
    let ty = Type::new(DType::U32, &[n]);
    let outs = b.push_many(Kind::Threefry2x32, args, &[ty.clone(), ty]);
    (outs[0], outs[1])
}

/// The two words of keys, one array each, in the keys' shape.
fn key_words(b: &mut Builder, keys: ValueId) -> (ValueId, ValueId) {
    let shape = b.ty(keys).shape.clone();
    let mut pairs = shape.clone();
    pairs.push(2);
    let pairs = b.push(Kind::Bitcast, &[keys], Type::new(DType::U32, &pairs));
    let mut half = |n: usize| {
        let mut start: Shape = smallvec![0; shape.len() + 1];
        let mut limit = shape.clone();
        limit.push(n + 1);
        start[shape.len()] = n;
        let mut ty = shape.clone();
        ty.push(1);
        let stride = smallvec![1; ty.len()];
        let part =
            b.push(Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[pairs], Type::new(DType::U32, &ty));
        b.reshape(part, &shape)
    };
    (half(0), half(1))
}

/// Two word arrays of one shape as keys.
fn join_words(b: &mut Builder, x: ValueId, y: ValueId, shape: &[usize]) -> ValueId {
    let mut unit = Shape::from_slice(shape);
    unit.push(1);
    let (x, y) = (b.reshape(x, &unit), b.reshape(y, &unit));
    unit[shape.len()] = 2;
    let pairs = b.push(Kind::Concat(shape.len()), &[x, y], Type::new(DType::U32, &unit));
    b.push(Kind::Bitcast, &[pairs], Type::new(DType::KeyFry, shape))
}

/// Each key's stream of `count` encrypted counters, flat: two arrays of `keys × count` words.
fn streams(b: &mut Builder, keys: ValueId, count: usize) -> (ValueId, ValueId) {
    let key_count = b.ty(keys).size();
    let n = key_count * count;
    let (k0, k1) = key_words(b, keys);
    let single = key_count == 1;
    let mut spread = |k: ValueId| {
        if single {
            return b.reshape(k, &[]);
        }
        let line = b.reshape(k, &[key_count]);
        let table = b.broadcast(line, &[key_count, count], &[0]);
        b.reshape(table, &[n])
    };
    let (k0, k1) = (spread(k0), spread(k1));
    let (high, low) = counters(b, key_count, count);
    cipher(b, &[k0, k1, high, low], n)
}

/// The counters 0..count, once for each key, as high and low words.
fn counters(b: &mut Builder, key_count: usize, count: usize) -> (ValueId, ValueId) {
    let n = key_count * count;
    if u32::try_from(count).is_ok() {
        let table = b.iota(DType::U32, &[key_count, count], 1);
        let low = b.reshape(table, &[n]);
        let zero = b.scalar(word(0));
        return (b.broadcast(zero, &[n], &[]), low);
    }
    let table = b.iota(DType::U64, &[key_count, count], 1);
    let wide = b.reshape(table, &[n]);
    let shift = b.scalar(Scalar::from_u64(DType::U64, 32));
    let high = b.binary(BinaryOp::ShiftRightLogical, wide, shift);
    (b.convert(high, DType::U32), b.convert(wide, DType::U32))
}

// ---- keys ----------------------------------------------------------------------------------------------------------

/// Parameters of `random_seed` and `random_wrap`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyImpl {
    /// The generator's tag: `fry`.
    pub tag: Arc<str>,
}

impl Params for KeyImpl {
    fn print(&self) -> Vec<(&'static str, Param)> {
        vec![("impl", self.tag.print())]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(KeyImpl { tag: ParamValue::parse(fields.get("impl")?)? })
    }
}

fn check_key(name: &str, a: &Aval) -> Result<()> {
    if !a.dtype.is_key() {
        bail!(Type, "{name} requires PRNG key array arguments, got {a}");
    }
    Ok(())
}

/// A key from an integer.
pub static RANDOM_SEED: Def<KeyImpl> = Def {
    name: "random_seed",
    doc: "A key from an integer seed: its high and low 32 bits.",
    arity: Some(1),
    shape: |_, args| {
        if !args[0].dtype.is_integer() {
            bail!(Type, "PRNG key seed must be an integer; got {}", args[0]);
        }
        Ok(smallvec![Aval::new(DType::KeyFry, &args[0].shape)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| {
        let seed = args[0];
        let shape = outs[0].shape.clone();
        let dtype = b.ty(seed).dtype;
        let zero = b.scalar(word(0));
        let high = if dtype.bits() == 64 {
            let shift = b.scalar(Scalar::from_u64(dtype, 32));
            let high = b.binary(BinaryOp::ShiftRightLogical, seed, shift);
            low_word(b, high)
        } else {
            b.broadcast(zero, &shape, &[])
        };
        let low = low_word(b, seed);
        Ok(smallvec![join_words(b, high, low, &shape)])
    }),
    reference: Slot::Rule(|_, args, outs| {
        Ok(vec![RefTensor::map(&outs[0], args, |row| {
            let n = row[0].to_i64() as u64;
            let high = if row[0].dtype.bits() == 64 { (n >> 32) as u32 } else { 0 };
            key_of([high, n as u32])
        })])
    }),
    special: Special::NONE,
};

/// The low 32 bits of an integer, as convert would wrap them.
fn low_word(b: &mut Builder, x: ValueId) -> ValueId {
    b.convert(x, DType::U32)
}

/// Keys from their words.
pub static RANDOM_WRAP: Def<KeyImpl> = Def {
    name: "random_wrap",
    doc: "Keys from pairs of uint32 words along the last axis.",
    arity: Some(1),
    shape: |_, args| {
        let x = args[0];
        if x.dtype != DType::U32 {
            bail!(
                Type,
                "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={}",
                x.dtype
            );
        }
        match x.shape.split_last() {
            Some((2, rest)) => Ok(smallvec![Aval::new(DType::KeyFry, rest)]),
            _ => bail!(
                Type,
                "JAX encountered invalid PRNG key data: expected key_data.shape to end with (2,); got shape={} for \
                 impl=threefry2x32",
                Tuple(&x.shape)
            ),
        }
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|op, _, axis, args, dims| {
        let x = broadcast_batch(&args[0], dims[0], axis.size, 0)?;
        Ok((smallvec![bind1(op, &[x])?], smallvec![Some(0)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| Ok(smallvec![b.push(Kind::Bitcast, args, Type::from(&outs[0]))])),
    reference: Slot::Rule(|_, args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let half = |n: usize| {
                let mut at = i.to_vec();
                at.push(n);
                args[0].at(&at).bits as u32
            };
            key_of([half(0), half(1)])
        })])
    }),
    special: Special::NONE,
};

/// The words of keys.
pub static RANDOM_UNWRAP: Def<()> = Def {
    name: "random_unwrap",
    doc: "The uint32 words of keys, along a new last axis.",
    arity: Some(1),
    shape: |(), args| {
        check_key("random_unwrap", args[0])?;
        let mut shape = args[0].shape.clone();
        shape.push(2);
        Ok(smallvec![Aval::new(DType::U32, &shape)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(smallvec![b.push(Kind::Bitcast, args, Type::from(&outs[0]))])),
    reference: Slot::Rule(|(), args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| match i.split_last() {
            Some((&half, key)) => word(words(args[0].at(key))[half]),
            None => word(0),
        })])
    }),
    special: Special::NONE,
};

/// A key marked as fresh for reuse checking; the same bits.
pub static RANDOM_CLONE: Def<()> = Def {
    name: "random_clone",
    doc: "The same key, counted as new by key-reuse checking.",
    arity: Some(1),
    shape: |(), args| {
        check_key("random_clone", args[0])?;
        Ok(smallvec![args[0].clone()])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), _, args, _| Ok(smallvec![args[0]])),
    reference: Slot::Rule(|(), args, _| Ok(vec![args[0].clone()])),
    special: Special::NONE,
};

// ---- draws ---------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `random_bits`.
    pub struct BitsParams {
        /// 8, 16, 32 or 64.
        bit_width: usize,
        /// The shape drawn for each key.
        shape: Shape,
    }
}

params! {
    /// Parameters of `random_split`.
    pub struct SplitKeys {
        /// The shape of new keys made of each key.
        shape: Shape,
    }
}

fn joined(keys: &Aval, shape: &[usize]) -> Shape {
    keys.shape.iter().chain(shape).copied().collect()
}

/// Batching of an operation that appends axes to the keys' own: the keys' batch axis stays where it is.
fn key_batch<P>(
    op: &OpRef,
    _: &P,
    _: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    Ok((bind(op, args)?, smallvec![dims[0]]))
}

fn bits_dtype(width: usize) -> Option<DType> {
    match width {
        8 => Some(DType::U8),
        16 => Some(DType::U16),
        32 => Some(DType::U32),
        64 => Some(DType::U64),
        _ => None,
    }
}

/// Uniform random bits.
pub static RANDOM_BITS: Def<BitsParams> = Def {
    name: "random_bits",
    doc: "Uniform random unsigned integers, an array of them for each key.",
    arity: Some(1),
    shape: |p, args| {
        check_key("random_bits", args[0])?;
        let Some(dtype) = bits_dtype(p.bit_width) else {
            bail!(Type, "requires 8-, 16-, 32- or 64-bit field width, got {}", p.bit_width)
        };
        Ok(smallvec![Aval::new(dtype, &joined(args[0], &p.shape))])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(key_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let count = ferrax_base::shape::size(&p.shape);
        let (x, y) = streams(b, args[0], count);
        let bits = if p.bit_width == 64 {
            let (high, low) = (b.convert(x, DType::U64), b.convert(y, DType::U64));
            let shift = b.scalar(Scalar::from_u64(DType::U64, 32));
            let high = b.binary(BinaryOp::ShiftLeft, high, shift);
            b.binary(BinaryOp::Or, high, low)
        } else {
            let mixed = b.binary(BinaryOp::Xor, x, y);
            b.convert(mixed, outs[0].dtype)
        };
        Ok(smallvec![b.reshape(bits, &outs[0].shape)])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let count = ferrax_base::shape::size(&p.shape);
        let dtype = outs[0].dtype;
        let draw = |i: usize| {
            let [x, y] = at_counter(args[0].data[i / count], (i % count) as u64);
            let wide = u64::from(x) << 32 | u64::from(y);
            Scalar::from_u64(dtype, if p.bit_width == 64 { wide } else { u64::from(x ^ y) })
        };
        Ok(vec![RefTensor { aval: outs[0].clone(), data: (0..outs[0].size()).map(draw).collect() }])
    }),
    special: Special::NONE,
};

/// New keys from each key.
pub static RANDOM_SPLIT: Def<SplitKeys> = Def {
    name: "random_split",
    doc: "New keys, an array of them for each key.",
    arity: Some(1),
    shape: |p, args| {
        check_key("random_split", args[0])?;
        Ok(smallvec![Aval::new(DType::KeyFry, &joined(args[0], &p.shape))])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(key_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let (x, y) = streams(b, args[0], ferrax_base::shape::size(&p.shape));
        Ok(smallvec![join_words(b, x, y, &outs[0].shape)])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let count = ferrax_base::shape::size(&p.shape);
        let new = |i: usize| key_of(at_counter(args[0].data[i / count], (i % count) as u64));
        Ok(vec![RefTensor { aval: outs[0].clone(), data: (0..outs[0].size()).map(new).collect() }])
    }),
    special: Special::NONE,
};

/// A key mixed with an integer.
pub static RANDOM_FOLD_IN: Def<()> = Def {
    name: "random_fold_in",
    doc: "Keys mixed with uint32 integers; keys and integers have one shape, or rank 0.",
    arity: Some(2),
    shape: |(), args| {
        check_key("random_fold_in", args[0])?;
        if args[1].dtype != DType::U32 {
            bail!(Type, "random_fold_in message must have type uint32, got {}", args[1].dtype);
        }
        let shape = crate::common::nary_result_shape("random_fold_in", args)?;
        Ok(smallvec![Aval::new(DType::KeyFry, &shape)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(crate::common::nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let shape = &outs[0].shape;
        let n = outs[0].size();
        let (k0, k1) = key_words(b, args[0]);
        let zero = b.scalar(word(0));
        let operands = crate::common::aligned(b, &[k0, k1, zero, args[1]], shape);
        let flat = operands
            .iter()
            .map(|&v| if b.ty(v).shape.is_empty() { b.broadcast(v, &[n], &[]) } else { b.reshape(v, &[n]) });
        let flat: SmallVec<[ValueId; 4]> = flat.collect();
        let (x, y) = cipher(b, &flat, n);
        Ok(smallvec![join_words(b, x, y, shape)])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        Ok(vec![RefTensor::map(&outs[0], &args, |row| key_of(threefry_block(words(row[0]), [0, row[1].bits as u32])))])
    }),
    special: Special::NONE,
};

// ---- lax-level functions -------------------------------------------------------------------------------------------

fn fry() -> KeyImpl {
    static TAG: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| "fry".into());
    KeyImpl { tag: TAG.clone() }
}

/// A key from an integer.
pub fn random_seed(seed: &Value) -> Result<Value> {
    bind1(&OpRef::new(&RANDOM_SEED, fry()), std::slice::from_ref(seed))
}

/// Keys from uint32 words of shape `[..., 2]`.
pub fn random_wrap(words: &Value) -> Result<Value> {
    bind1(&OpRef::new(&RANDOM_WRAP, fry()), std::slice::from_ref(words))
}

/// The uint32 words of keys, of shape `[..., 2]`.
pub fn random_unwrap(keys: &Value) -> Result<Value> {
    bind1(&RANDOM_UNWRAP.op(), std::slice::from_ref(keys))
}

/// The same keys, counted as new.
pub fn random_clone(keys: &Value) -> Result<Value> {
    bind1(&RANDOM_CLONE.op(), std::slice::from_ref(keys))
}

/// Random bits of `shape` for each key.
pub fn random_bits(keys: &Value, bit_width: usize, shape: &[usize]) -> Result<Value> {
    let params = BitsParams { bit_width, shape: Shape::from_slice(shape) };
    bind1(&OpRef::new(&RANDOM_BITS, params), std::slice::from_ref(keys))
}

/// New keys of `shape` for each key.
pub fn random_split(keys: &Value, shape: &[usize]) -> Result<Value> {
    bind1(&OpRef::new(&RANDOM_SPLIT, SplitKeys { shape: Shape::from_slice(shape) }), std::slice::from_ref(keys))
}

/// Keys mixed with uint32 integers.
pub fn random_fold_in(keys: &Value, data: &Value) -> Result<Value> {
    bind1(&RANDOM_FOLD_IN.op(), &[keys.clone(), data.clone()])
}

/// The block cipher on arrays of words.
pub fn threefry2x32(k0: &Value, k1: &Value, x0: &Value, x1: &Value) -> Result<Values> {
    bind(&THREEFRY2X32.op(), &[k0.clone(), k1.clone(), x0.clone(), x1.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[
    &THREEFRY2X32,
    &RANDOM_SEED,
    &RANDOM_WRAP,
    &RANDOM_UNWRAP,
    &RANDOM_CLONE,
    &RANDOM_BITS,
    &RANDOM_SPLIT,
    &RANDOM_FOLD_IN,
];
