//! Changes of element type: `convert_element_type`, `bitcast_convert_type`, `reduce_precision`.
//!
//! Read next: `identity.rs`.

use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, one, unary_batch, unary_shape, zero_jvp};
use crate::elementwise::binary::is_choice_by_mask;
use crate::elementwise::unary::real;
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::Rewriter;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Atom, Avals, Def, Lit, OpRef, Slot, Special, Value};
use ferrax_loops::{Kind, Type};
use smallvec::{SmallVec, smallvec};

// ---- convert_element_type ------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `convert_element_type`.
    pub struct ConvertElementType {
        /// The result's dtype.
        new_dtype: DType,
        /// The result's weak type.
        weak_type: bool,
    }
}

/// Another dtype.
pub static CONVERT_ELEMENT_TYPE: Def<ConvertElementType> = Def {
    name: "convert_element_type",
    doc: "Elementwise conversion to another dtype.",
    arity: Some(1),
    shape: |p, args| {
        let from = args[0].dtype;
        if (from.is_key() || p.new_dtype.is_key()) && from != p.new_dtype {
            bail!(Value, "Cannot convert_element_type from {from} to {}", p.new_dtype);
        }
        Ok(smallvec![args[0].with_dtype(p.new_dtype).with_weak(p.weak_type)])
    },
    jvp: Slot::Rule(|op, p, primals, tangents| {
        let out = bind1(op, primals)?;
        let tangent = match &tangents[0] {
            Some(t) if p.new_dtype.is_inexact() => Some(bind1(op, std::slice::from_ref(t))?),
            _ => None,
        };
        Ok(one(out, tangent))
    }),
    transpose: Slot::Rule(|_, _, cts, args| {
        let (Some(ct), x) = (&cts[0], args[0].aval()) else { return Ok(smallvec![None]) };
        let back = ConvertElementType { new_dtype: x.dtype, weak_type: x.weak };
        Ok(smallvec![if x.dtype.is_inexact() { Some(convert(ct, back)?) } else { None }])
    }),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::Rule(convert_simplify),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![b.convert(args[0], p.new_dtype)])),
    reference: Slot::Rule(|p, args, outs| Ok(vec![RefTensor::map(&outs[0], args, |r| r[0].convert(p.new_dtype))])),
    special: Special::ELEMENTWISE,
};

/// Number of bits of the significand of a float, or of the magnitude of an integer, that a dtype holds exactly.
fn exact_bits(d: DType) -> usize {
    match d {
        DType::F64 | DType::C128 => 53,
        DType::F32 | DType::C64 => 24,
        DType::F16 => 11,
        DType::BF16 => 8,
        d if d.is_signed() => d.bits() - 1,
        d if d.is_unsigned() => d.bits(),
        DType::Bool => 1,
        _ => 0,
    }
}

/// Whether every value of `from` is a value of `to`.
pub fn is_lossless(from: DType, to: DType) -> bool {
    if from == to || from.is_bool() && to.is_number() {
        return true;
    }
    let wide = |d: DType| matches!(d.real(), DType::F32 | DType::F64);
    match (from, to) {
        (f, t) if f.is_integer() && t.is_integer() => {
            exact_bits(f) <= exact_bits(t) && (f.is_unsigned() || t.is_signed())
        }
        (f, t) if f.is_integer() && t.is_inexact() => wide(t) && exact_bits(f) <= exact_bits(t),
        (f, t) if f.is_complex() => t.is_complex() && exact_bits(f) <= exact_bits(t),
        (f, t) if f.is_float() && t.is_inexact() => exact_bits(f) > 0 && wide(t) && exact_bits(f) <= exact_bits(t),
        _ => false,
    }
}

/// A conversion to the operand's own type is nothing; two in a row are one where the first loses nothing and the
/// kind of number does not turn from integer to float to integer. No bits change.
fn convert_simplify(
    _: &OpRef,
    p: &ConvertElementType,
    cx: &mut dyn Rewriter,
    inputs: &[Atom],
) -> Result<Option<SmallVec<[Atom; 1]>>> {
    let x = cx.aval(&inputs[0]);
    if x.dtype == p.new_dtype && x.weak == p.weak_type {
        return Ok(Some(smallvec![inputs[0]]));
    }
    let Some((inner, args)) = cx.producer(&inputs[0]) else { return Ok(None) };
    let Some(first) = inner.of(&CONVERT_ELEMENT_TYPE) else { return Ok(None) };
    let origin = cx.aval(&args[0]).dtype;
    let same_kind = first.new_dtype.is_inexact() == origin.is_inexact();
    if !is_lossless(origin, first.new_dtype) || !(same_kind || p.new_dtype.is_inexact() || origin.is_bool()) {
        return Ok(None);
    }
    if origin.is_bool() && first.new_dtype != p.new_dtype && is_choice_by_mask(p.new_dtype) {
        return Ok(None); // products with a mask choose, those with its number do not
    }
    if origin == p.new_dtype && cx.aval(&args[0]).weak == p.weak_type {
        return Ok(Some(smallvec![args[0]]));
    }
    Ok(Some(smallvec![cx.emit(OpRef::new(&CONVERT_ELEMENT_TYPE, p.clone()), &args)?]))
}

fn convert(x: &Value, params: ConvertElementType) -> Result<Value> {
    if x.dtype() == params.new_dtype && x.weak() == params.weak_type {
        return Ok(x.clone());
    }
    if let Some(l) = x.literal()
        && !l.scalar.dtype.is_key()
    {
        return Ok(Value::Lit(Lit { scalar: l.scalar.convert(params.new_dtype), weak: params.weak_type }));
    }
    bind1(&OpRef::new(&CONVERT_ELEMENT_TYPE, params), std::slice::from_ref(x))
}

/// Elementwise conversion to a strongly typed dtype; complex numbers give their real part. The same value when
/// nothing changes.
pub fn convert_element_type(x: &Value, dtype: DType) -> Result<Value> {
    convert_weak(x, dtype, false)
}

/// As [`convert_element_type`], to a dtype with this weak type.
pub fn convert_weak(x: &Value, dtype: DType, weak: bool) -> Result<Value> {
    let params = ConvertElementType { new_dtype: dtype, weak_type: weak };
    if x.dtype().is_complex() && !dtype.is_complex() {
        return convert(&real(x)?, params);
    }
    convert(x, params)
}

// ---- bitcast_convert_type ------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `bitcast_convert_type`.
    pub struct BitcastConvertType {
        /// The result's dtype.
        new_dtype: DType,
    }
}

/// The same bits as another dtype.
pub static BITCAST_CONVERT_TYPE: Def<BitcastConvertType> = Def {
    name: "bitcast_convert_type",
    doc: "The bits of every element read as another dtype; a change of width adds or removes a minor axis.",
    arity: Some(1),
    shape: bitcast_shape,
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|op, p, axis, args, dims| {
        // The batch axis must not be the minor one that a change of width adds or takes.
        let x = ferrax_transform::structural::broadcast_batch(&args[0], dims[0], axis.size, 0)?;
        unary_batch(op, p, axis, &[x], &[Some(0)])
    }),
    simplify: Slot::Rule(|_, p, cx, inputs| {
        let x = cx.aval(&inputs[0]);
        if x.dtype == p.new_dtype && !x.weak {
            return Ok(Some(smallvec![inputs[0]]));
        }
        Ok(None)
    }),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| {
        let (from, to) = (b.ty(args[0]).dtype, outs[0].dtype);
        if from == to {
            return Ok(smallvec![args[0]]);
        }
        // A signed number below a byte fills its byte with its sign, which is none of the other dtype's bits.
        let x = b.convert(args[0], unsigned(from));
        let mut ty = Type::from(&outs[0]);
        ty.dtype = unsigned(to);
        let bits = if b.ty(x).dtype == ty.dtype { x } else { b.push(Kind::Bitcast, &[x], ty) };
        Ok(smallvec![b.convert(bits, to)])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let (to, width) = (p.new_dtype, p.new_dtype.bits());
        let mask = |n: usize| u128::MAX >> (128 - n);
        let signed = |bits: u128| {
            let negative = to.is_signed() && width < 8 && bits >> (width - 1) == 1;
            if negative { Scalar::from_i64(to, bits as i64 - (1 << width)) } else { Scalar { dtype: to, bits } }
        };
        let (mut data, mut held, mut count) = (Vec::new(), 0u128, 0);
        for s in &args[0].data {
            held |= (s.bits & mask(s.dtype.bits())) << count;
            count += s.dtype.bits();
            while count >= width {
                data.push(signed(held & mask(width)));
                held = held.checked_shr(width as u32).unwrap_or(0);
                count -= width;
            }
        }
        Ok(vec![RefTensor { aval: outs[0].clone(), data }])
    }),
    special: Special::NONE,
};

/// The unsigned integers of as many bits, of signed ones below a byte; another dtype itself.
fn unsigned(d: DType) -> DType {
    match d {
        DType::I2 => DType::U2,
        DType::I4 => DType::U4,
        other => other,
    }
}

fn bitcast_shape(p: &BitcastConvertType, args: &[&Aval]) -> Result<Avals> {
    let (x, to) = (args[0], p.new_dtype);
    if let Some(key) = [x.dtype, to].into_iter().find(|d| d.is_key() && x.dtype != to) {
        bail!(Value, "unexpected input: dtype={key}");
    }
    let opaque = |d: DType| d.is_bool() || d.is_complex();
    if x.dtype != to && (opaque(x.dtype) || opaque(to)) {
        bail!(
            Type,
            "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination types \
             match. Got operand dtype={}, new_dtype={to}. Consider using the arr.view() method instead.",
            x.dtype
        );
    }
    let (old, new) = (x.dtype.bits(), to.bits());
    let mut shape: Shape = x.shape.clone();
    if old > new {
        shape.push(old / new);
    } else if old < new {
        let minor = shape.pop().unwrap_or(1);
        if minor * old != new {
            bail!(
                Value,
                "Attempting to convert array of shape {} from {} of size {old} bits to {to} of size {new} bits, but \
                 {minor} * {old} != {new}",
                Tuple(&x.shape),
                x.dtype
            );
        }
    }
    Ok(smallvec![Aval { shape, dtype: to, weak: false, vary: 0, spread: 0 }])
}

/// The bits of every element read as another dtype; a change of width adds or removes a minor axis.
pub fn bitcast_convert_type(x: &Value, dtype: DType) -> Result<Value> {
    bind1(&OpRef::new(&BITCAST_CONVERT_TYPE, BitcastConvertType { new_dtype: dtype }), std::slice::from_ref(x))
}

// ---- reduce_precision ----------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `reduce_precision`.
    pub struct ReducePrecision {
        /// Bits of the exponent.
        exponent_bits: u32,
        /// Bits of the significand, without the hidden one.
        mantissa_bits: u32,
    }
}

/// Rounds to a narrower float format.
pub static REDUCE_PRECISION: Def<ReducePrecision> = Def {
    name: "reduce_precision",
    doc: "Elementwise rounding to a float format with fewer bits; the dtype stays.",
    arity: Some(1),
    shape: |p, args| {
        if p.exponent_bits == 0 {
            bail!(Value, "reduce_precision exponent_bits must be positive, got 0");
        }
        unary_shape("reduce_precision", Accept::FLOAT, args)
    },
    jvp: Slot::Rule(ferrax_transform::structural::linear_jvp),
    transpose: Slot::Rule(|op, _, cts, _| {
        Ok(smallvec![cts[0].as_ref().map(|ct| bind1(op, std::slice::from_ref(ct))).transpose()?])
    }),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let kind = Kind::ReducePrecision { exponent_bits: p.exponent_bits, mantissa_bits: p.mantissa_bits };
        Ok(smallvec![b.push(kind, args, (&outs[0]).into())])
    }),
    reference: Slot::Rule(|p, args, outs| {
        Ok(vec![RefTensor::map(&outs[0], args, |r| reduced_precision(r[0], p.exponent_bits, p.mantissa_bits))])
    }),
    special: Special::ELEMENTWISE,
};

/// Exponent and significand bits of a float dtype.
pub fn float_format(dtype: DType) -> Option<(u32, u32)> {
    match dtype {
        DType::F64 => Some((11, 52)),
        DType::F32 => Some((8, 23)),
        DType::F16 => Some((5, 10)),
        DType::BF16 => Some((8, 7)),
        _ => None,
    }
}

/// Rounds to even on the bits; what is too large becomes infinite, what is too small zero.
fn reduced_precision(x: Scalar, exponent_bits: u32, mantissa_bits: u32) -> Scalar {
    let Some((exponent, mantissa)) = float_format(x.dtype) else { return x };
    if x.to_f64().is_nan() {
        return x;
    }
    let mut bits = x.bits;
    if mantissa_bits < mantissa {
        let last = 1u128 << (mantissa - mantissa_bits);
        let odd = u128::from(bits & last != 0);
        bits = (bits + (last >> 1) - 1 + odd) & !(last - 1);
    }
    if exponent_bits < exponent {
        let sign = bits & (1 << (exponent + mantissa));
        let all_ones = ((1u128 << exponent) - 1) << mantissa;
        let (bias, reduced) = ((1i64 << (exponent - 1)) - 1, (1i64 << (exponent_bits - 1)) - 1);
        let own = ((bits & all_ones) >> mantissa) as i64;
        if own > bias + reduced {
            bits = sign | all_ones;
        } else if own <= bias - reduced {
            bits = sign;
        }
    }
    Scalar { dtype: x.dtype, bits }
}

/// Elementwise rounding to a float format with fewer bits; the dtype stays.
pub fn reduce_precision(x: &Value, exponent_bits: u32, mantissa_bits: u32) -> Result<Value> {
    let params = ReducePrecision { exponent_bits, mantissa_bits };
    bind1(&OpRef::new(&REDUCE_PRECISION, params), std::slice::from_ref(x))
}

/// The primitives of this file.
pub(super) static PRIMITIVES: &[&dyn Primitive] = &[&CONVERT_ELEMENT_TYPE, &BITCAST_CONVERT_TYPE, &REDUCE_PRECISION];
