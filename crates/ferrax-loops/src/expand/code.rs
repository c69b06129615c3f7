//! Kernel graphs written as formulas.
//!
//! An [`X`] is a value of a graph under construction: operators append nodes. Shapes that differ meet as in NumPy where
//! the ranks are equal (axes of size 1 stretch) or where one is a scalar; plain numbers take the other operand's dtype.
//! Loops take and give arrays of values. Read next: a user, `cumulative.rs`.

use crate::{BinaryOp, Builder, CompareOp, GatherDims, Gathering, Graph, IndexMode, Kind, PadConfig, ReduceOp};
use crate::{DotDims, SliceDims, Type, UnaryOp, ValueId};
use ferrax_base::{DType, Result, Scalar, Shape};
use smallvec::smallvec;
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};
use std::sync::Arc;

/// A graph under construction.
pub(crate) struct Code {
    builder: RefCell<Builder>,
}

/// A value of it.
#[derive(Clone, Copy)]
pub(crate) struct X<'c> {
    pub(crate) code: &'c Code,
    id: ValueId,
}

/// A graph with these parameters that gives what the function makes of them.
pub(crate) fn graph(params: &[Type], f: impl for<'c> FnOnce(&[X<'c>]) -> Result<Vec<X<'c>>>) -> Result<Graph> {
    let code = Code { builder: RefCell::new(Builder::new(params.iter().cloned())) };
    let outputs = {
        let ids: Vec<ValueId> = code.builder.borrow().params().collect();
        let args: Vec<X<'_>> = ids.into_iter().map(|id| X { code: &code, id }).collect();
        f(&args)?.iter().map(|x| x.id).collect::<Vec<ValueId>>()
    };
    Ok(code.builder.into_inner().finish(&outputs))
}

/// A graph that is made without fail.
fn part_of(params: &[Type], f: impl for<'c> FnOnce(&[X<'c>]) -> Vec<X<'c>>) -> Arc<Graph> {
    Arc::new(graph(params, |args| Ok(f(args))).unwrap_or_default())
}

/// What stands beside a value in a formula: another one, or a number.
pub(crate) trait Operand<'c> {
    /// The operand as a value, of the dtype of the value that it stands beside.
    fn beside(self, x: X<'c>) -> X<'c>;
}

impl<'c> Operand<'c> for X<'c> {
    fn beside(self, _: X<'c>) -> X<'c> {
        self
    }
}

impl<'c> Operand<'c> for f64 {
    fn beside(self, x: X<'c>) -> X<'c> {
        x.code.scalar(Scalar::from_f64(x.dtype(), self))
    }
}

impl<'c> Operand<'c> for i64 {
    fn beside(self, x: X<'c>) -> X<'c> {
        x.code.scalar(Scalar::from_i64(x.dtype(), self))
    }
}

impl Code {
    /// A node with one result.
    pub(crate) fn node<'c>(&'c self, kind: Kind, inputs: &[X<'c>], result: Type) -> X<'c> {
        self.nodes(kind, inputs, &[result])[0]
    }

    /// A node with several results.
    pub(crate) fn nodes<'c>(&'c self, kind: Kind, inputs: &[X<'c>], results: &[Type]) -> Vec<X<'c>> {
        let ids: Vec<ValueId> = inputs.iter().map(|x| x.id).collect();
        let made = self.builder.borrow_mut().push_many(kind, &ids, results);
        made.into_iter().map(|id| X { code: self, id }).collect()
    }

    /// A rank-0 constant.
    pub(crate) fn scalar(&self, s: Scalar) -> X<'_> {
        X { code: self, id: self.builder.borrow_mut().scalar(s) }
    }

    /// A number as a rank-0 constant of a dtype.
    pub(crate) fn number(&self, dtype: DType, v: f64) -> X<'_> {
        self.scalar(Scalar::from_f64(dtype, v))
    }

    /// A number in every place of a shape.
    pub(crate) fn full(&self, dtype: DType, shape: &[usize], v: f64) -> X<'_> {
        self.number(dtype, v).spread(shape)
    }

    /// The index along an axis, as int32.
    pub(crate) fn iota(&self, shape: &[usize], axis: usize) -> X<'_> {
        self.node(Kind::Iota(axis), &[], Type::new(DType::I32, shape))
    }

    /// Values joined along an axis.
    pub(crate) fn concat<'c>(&'c self, parts: &[X<'c>], axis: usize) -> X<'c> {
        let mut ty = parts[0].ty();
        ty.shape[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
        self.node(Kind::Concat(axis), parts, ty)
    }

    /// `body(constants, state)` again and again while `cond(constants, state)` holds.
    pub(crate) fn repeat_while<'c, const M: usize, const N: usize>(
        &'c self,
        constants: [X<'c>; M],
        state: [X<'c>; N],
        cond: impl for<'d> FnOnce([X<'d>; M], [X<'d>; N]) -> X<'d>,
        body: impl for<'d> FnOnce([X<'d>; M], [X<'d>; N]) -> [X<'d>; N],
    ) -> [X<'c>; N] {
        let params: Vec<Type> = constants.iter().chain(&state).map(|x| x.ty()).collect();
        let split = |args: &[X<'_>]| -> ([usize; M], [usize; N]) {
            debug_assert_eq!(args.len(), M + N);
            (std::array::from_fn(|i| i), std::array::from_fn(|i| M + i))
        };
        let cond = part_of(&params, |args| {
            let (c, s) = split(args);
            vec![cond(c.map(|i| args[i]), s.map(|i| args[i]))]
        });
        let body = part_of(&params, |args| {
            let (c, s) = split(args);
            body(c.map(|i| args[i]), s.map(|i| args[i])).to_vec()
        });
        let kind = Kind::While { cond, body, cond_consts: M, body_consts: M };
        let inputs: Vec<X<'c>> = constants.iter().chain(&constants).chain(&state).copied().collect();
        let types: Vec<Type> = state.iter().map(|x| x.ty()).collect();
        let results = self.nodes(kind, &inputs, &types);
        std::array::from_fn(|i| results[i])
    }

    /// `body(constants, k, state)` for int32 k from 0 to `count` - 1, or from there down to 0.
    pub(crate) fn repeat<'c, const M: usize, const N: usize>(
        &'c self,
        count: usize,
        downward: bool,
        constants: [X<'c>; M],
        state: [X<'c>; N],
        body: impl for<'d> FnOnce([X<'d>; M], X<'d>, [X<'d>; N]) -> [X<'d>; N],
    ) -> [X<'c>; N] {
        if count == 0 {
            return state;
        }
        // The counter comes between the constants and the state.
        let zero = self.number(DType::I32, 0.0);
        let inputs: Vec<X<'c>> = constants.iter().chain([&zero]).chain(&state).copied().collect();
        let params: Vec<Type> = inputs.iter().map(|x| x.ty()).collect();
        let cond = part_of(&params[M..], |args| vec![args[0].lt(count as i64)]);
        let body = part_of(&params, |args| {
            let i = args[M];
            let k = if downward { (-i) + (count as i64 - 1) } else { i };
            let next = body(std::array::from_fn(|j| args[j]), k, std::array::from_fn(|j| args[M + 1 + j]));
            std::iter::once(i + 1i64).chain(next).collect()
        });
        let kind = Kind::While { cond, body, cond_consts: 0, body_consts: M };
        let results = self.nodes(kind, &inputs, &params[M..]);
        std::array::from_fn(|i| results[1 + i])
    }
}

impl<'c> X<'c> {
    pub(crate) fn ty(self) -> Type {
        self.code.builder.borrow().ty(self.id).clone()
    }

    pub(crate) fn dtype(self) -> DType {
        self.code.builder.borrow().ty(self.id).dtype
    }

    pub(crate) fn shape(self) -> Shape {
        self.ty().shape
    }

    /// Both operands with one shape, or with one of them a scalar.
    fn meet(self, other: X<'c>) -> (X<'c>, X<'c>) {
        let (a, b) = (self.shape(), other.shape());
        if a == b || a.is_empty() || b.is_empty() {
            return (self, other);
        }
        let both: Vec<usize> = a.iter().zip(&b).map(|(&a, &b)| if a == 1 { b } else { a }).collect();
        (self.spread(&both), other.spread(&both))
    }

    pub(crate) fn un(self, op: UnaryOp) -> X<'c> {
        X { code: self.code, id: self.code.builder.borrow_mut().unary(op, self.id) }
    }

    pub(crate) fn bin(self, op: BinaryOp, other: impl Operand<'c>) -> X<'c> {
        let (a, b) = self.meet(other.beside(self));
        X { code: self.code, id: self.code.builder.borrow_mut().binary(op, a.id, b.id) }
    }

    fn compare(self, op: CompareOp, other: impl Operand<'c>) -> X<'c> {
        let (a, b) = self.meet(other.beside(self));
        X { code: self.code, id: self.code.builder.borrow_mut().compare(op, a.id, b.id) }
    }

    pub(crate) fn lt(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Lt, other)
    }

    pub(crate) fn le(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Le, other)
    }

    pub(crate) fn gt(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Gt, other)
    }

    pub(crate) fn ge(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Ge, other)
    }

    pub(crate) fn eq(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Eq, other)
    }

    pub(crate) fn ne(self, other: impl Operand<'c>) -> X<'c> {
        self.compare(CompareOp::Ne, other)
    }

    /// Where this holds, the one, else the other.
    pub(crate) fn pick(self, yes: X<'c>, no: impl Operand<'c>) -> X<'c> {
        let no = no.beside(yes);
        let (pred, yes) = self.meet(yes);
        let (pred, no) = pred.meet(no);
        let (yes, no) = yes.meet(no);
        let (pred, yes) = pred.meet(yes);
        X { code: self.code, id: self.code.builder.borrow_mut().select(pred.id, no.id, yes.id) }
    }

    pub(crate) fn to(self, dtype: DType) -> X<'c> {
        X { code: self.code, id: self.code.builder.borrow_mut().convert(self.id, dtype) }
    }

    /// The bits as another dtype of the same width.
    pub(crate) fn bits(self, dtype: DType) -> X<'c> {
        self.code.node(Kind::Bitcast, &[self], Type { dtype, shape: self.shape() })
    }

    pub(crate) fn reshape(self, shape: &[usize]) -> X<'c> {
        X { code: self.code, id: self.code.builder.borrow_mut().reshape(self.id, shape) }
    }

    /// Axis i becomes axis `dims[i]` of a shape.
    pub(crate) fn broadcast(self, shape: &[usize], dims: &[usize]) -> X<'c> {
        X { code: self.code, id: self.code.builder.borrow_mut().broadcast(self.id, shape, dims) }
    }

    /// Axes of size 1 stretched to a shape of the same rank, or a scalar to any shape.
    pub(crate) fn spread(self, shape: &[usize]) -> X<'c> {
        let own = self.shape();
        if own.as_slice() == shape {
            return self;
        }
        let dims: Vec<usize> = (0..own.len()).collect();
        self.broadcast(shape, &dims)
    }

    /// With another axis of size 1.
    pub(crate) fn axis(self, at: usize) -> X<'c> {
        let mut shape = self.shape();
        shape.insert(at, 1);
        self.reshape(&shape)
    }

    /// Without an axis, which has size 1.
    pub(crate) fn flat(self, at: usize) -> X<'c> {
        let mut shape = self.shape();
        shape.remove(at);
        self.reshape(&shape)
    }

    /// The last two axes exchanged.
    pub(crate) fn t(self) -> X<'c> {
        let mut shape = self.shape();
        let r = shape.len();
        shape.swap(r - 1, r - 2);
        let mut perm: smallvec::SmallVec<[usize; 4]> = (0..r).collect();
        perm.swap(r - 1, r - 2);
        self.code.node(Kind::Transpose(perm), &[self], Type { dtype: self.dtype(), shape })
    }

    /// The last two axes exchanged, and the conjugate.
    pub(crate) fn adjoint(self) -> X<'c> {
        self.t().conj()
    }

    /// From `start` to before `limit` along an axis.
    pub(crate) fn part(self, axis: usize, start: usize, limit: usize) -> X<'c> {
        let shape = self.shape();
        if start == 0 && limit == shape[axis] {
            return self;
        }
        let (mut from, mut to) = (Shape::from_elem(0, shape.len()), shape.clone());
        (from[axis], to[axis]) = (start, limit);
        let mut result = shape.clone();
        result[axis] = limit - start;
        let dims = SliceDims { start: from, limit: to, stride: Shape::from_elem(1, shape.len()) };
        self.code.node(Kind::Slice(Box::new(dims)), &[self], Type { dtype: self.dtype(), shape: result })
    }

    /// With more elements before and after along an axis; negative ones crop.
    pub(crate) fn pad(self, axis: usize, low: i64, high: i64, value: Scalar) -> X<'c> {
        let mut shape = self.shape();
        let mut config = vec![PadConfig::default(); shape.len()];
        config[axis] = PadConfig { low, high, interior: 0 };
        shape[axis] = (shape[axis] as i64 + low + high) as usize;
        let value = self.code.scalar(value);
        self.code.node(Kind::Pad(config.into()), &[self, value], Type { dtype: self.dtype(), shape })
    }

    /// Reduced along an axis, which stays with size 1.
    pub(crate) fn reduce(self, op: ReduceOp, axis: usize) -> X<'c> {
        let id = self.code.builder.borrow_mut().reduce(op, self.id, &[axis]);
        X { code: self.code, id }.axis(axis)
    }

    pub(crate) fn sum(self, axis: usize) -> X<'c> {
        self.reduce(ReduceOp::Sum, axis)
    }

    /// The largest number along an axis; NaN wins.
    pub(crate) fn largest(self, axis: usize) -> X<'c> {
        self.reduce(ReduceOp::Max, axis)
    }

    /// Whether it holds anywhere, as a scalar.
    pub(crate) fn any(self) -> X<'c> {
        let axes: Vec<usize> = (0..self.shape().len()).collect();
        X { code: self.code, id: self.code.builder.borrow_mut().reduce(ReduceOp::Or, self.id, &axes) }
    }

    /// The int32 index of the first largest element along an axis, which stays with size 1.
    pub(crate) fn argmax(self, axis: usize) -> X<'c> {
        let mut shape = self.shape();
        shape.remove(axis);
        self.code.node(Kind::ArgReduce { max: true, axis }, &[self], Type { dtype: DType::I32, shape }).axis(axis)
    }

    /// The index of an element that is chosen at run time along an axis; the others whole.
    fn starts(self, axis: usize, k: X<'c>) -> Vec<X<'c>> {
        let zero = self.code.number(DType::I32, 0.0);
        (0..self.shape().len()).map(|i| if i == axis { k } else { zero }).collect()
    }

    /// What stands at index k along an axis, which stays with size 1.
    pub(crate) fn at(self, axis: usize, k: X<'c>) -> X<'c> {
        self.window(axis, k, 1)
    }

    /// `count` places from index k on along an axis; the start is clamped.
    pub(crate) fn window(self, axis: usize, k: X<'c>, count: usize) -> X<'c> {
        let mut ty = self.ty();
        ty.shape[axis] = count;
        let inputs: Vec<X<'c>> = std::iter::once(self).chain(self.starts(axis, k)).collect();
        self.code.node(Kind::DynamicSlice, &inputs, ty)
    }

    /// With `value` from index k on along an axis.
    pub(crate) fn put(self, axis: usize, k: X<'c>, value: X<'c>) -> X<'c> {
        let inputs: Vec<X<'c>> = [self, value].into_iter().chain(self.starts(axis, k)).collect();
        self.code.node(Kind::DynamicUpdateSlice, &inputs, self.ty())
    }

    /// Products of batches of matrices (rank 3).
    pub(crate) fn dot(self, other: X<'c>) -> X<'c> {
        let (a, b) = (self.shape(), other.shape());
        let dims = DotDims {
            lhs_contract: smallvec![2],
            rhs_contract: smallvec![1],
            lhs_batch: smallvec![0],
            rhs_batch: smallvec![0],
            ..DotDims::default()
        };
        self.code.node(Kind::Dot(Box::new(dims)), &[self, other], Type::new(self.dtype(), &[a[0], a[1], b[2]]))
    }

    /// The rows of each matrix of a batch (rank 3) in the order of int32 indices (batch, rows); indices are clamped.
    pub(crate) fn rows(self, index: X<'c>) -> X<'c> {
        let (x, count) = (self.shape(), index.shape()[1]);
        let gathering = Gathering {
            dims: GatherDims {
                offset_dims: smallvec![2],
                collapsed_slice_dims: smallvec![1],
                start_index_map: smallvec![1],
                operand_batching_dims: smallvec![0],
                start_indices_batching_dims: smallvec![0],
            },
            slice_sizes: Shape::from_slice(&[1, 1, x[2]]),
            mode: IndexMode::Clip,
            fill: Scalar::zero(self.dtype()),
            sorted: false,
            unique: false,
            wrap: false,
        };
        let result = Type::new(self.dtype(), &[x[0], count, x[2]]);
        self.code.node(Kind::Gather(Box::new(gathering)), &[self, index.axis(2)], result)
    }

    /// Sorted along the last axis by the values, with the int32 indices where they stood; stable, NaN last.
    pub(crate) fn argsort(self) -> (X<'c>, X<'c>) {
        let shape = self.shape();
        let axis = shape.len() - 1;
        let index = self.code.iota(&shape, axis);
        let kind = Kind::Sort { axis, num_keys: 1, stable: true };
        let found = self.code.nodes(kind, &[self, index], &[self.ty(), index.ty()]);
        (found[0], found[1])
    }

    /// The polynomial with these coefficients, the highest first, at this value.
    pub(crate) fn polynomial(self, coefficients: &[f64]) -> X<'c> {
        let first = self.code.number(self.dtype(), coefficients[0]);
        coefficients[1..].iter().fold(first, |sum, &c| sum * self + c)
    }

    /// The conjugate; real numbers themselves.
    pub(crate) fn conj(self) -> X<'c> {
        if self.dtype().is_complex() { self.un(UnaryOp::Conj) } else { self }
    }

    /// The real part; real numbers themselves.
    pub(crate) fn re(self) -> X<'c> {
        if self.dtype().is_complex() { self.un(UnaryOp::Real) } else { self }
    }

    /// The imaginary part; of real numbers zero.
    pub(crate) fn im(self) -> X<'c> {
        if self.dtype().is_complex() {
            self.un(UnaryOp::Imag)
        } else {
            self.code.full(self.dtype(), &self.shape(), 0.0)
        }
    }

    /// A complex number with this real part.
    pub(crate) fn with_im(self, im: X<'c>) -> X<'c> {
        self.bin(BinaryOp::Complex, im)
    }

    /// A real number as a dtype that may be complex.
    pub(crate) fn as_real_of(self, dtype: DType) -> X<'c> {
        if dtype.is_complex() { self.with_im(self.code.full(self.dtype(), &self.shape(), 0.0)) } else { self }
    }

    pub(crate) fn abs(self) -> X<'c> {
        self.un(UnaryOp::Abs)
    }

    pub(crate) fn sqrt(self) -> X<'c> {
        self.un(UnaryOp::Sqrt)
    }

    pub(crate) fn exp(self) -> X<'c> {
        self.un(UnaryOp::Exp)
    }

    pub(crate) fn ln(self) -> X<'c> {
        self.un(UnaryOp::Log)
    }

    /// ln(1 + x), by a logarithm away from zero: XLA's own function loses two digits near -0.4.
    pub(crate) fn ln_1p(self) -> X<'c> {
        self.abs().lt(0.25).pick(self.un(UnaryOp::Log1p), (self + 1.0).ln())
    }

    pub(crate) fn floor(self) -> X<'c> {
        self.un(UnaryOp::Floor)
    }

    /// The larger one; NaN wins.
    pub(crate) fn max(self, other: impl Operand<'c>) -> X<'c> {
        self.bin(BinaryOp::Max, other)
    }

    /// The smaller one; NaN wins.
    pub(crate) fn min(self, other: impl Operand<'c>) -> X<'c> {
        self.bin(BinaryOp::Min, other)
    }

    pub(crate) fn is_nan(self) -> X<'c> {
        self.ne(self)
    }

    pub(crate) fn is_finite(self) -> X<'c> {
        self.un(UnaryOp::IsFinite)
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident $op:ident),*) => {$(
        impl<'c, O: Operand<'c>> $Trait<O> for X<'c> {
            type Output = X<'c>;
            fn $method(self, other: O) -> X<'c> {
                self.bin(BinaryOp::$op, other)
            }
        }
    )*};
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, BitAnd bitand And, BitOr bitor Or);

impl<'c> Neg for X<'c> {
    type Output = X<'c>;
    fn neg(self) -> X<'c> {
        self.un(UnaryOp::Neg)
    }
}

impl<'c> Not for X<'c> {
    type Output = X<'c>;
    fn not(self) -> X<'c> {
        self.un(UnaryOp::Not)
    }
}

/// A number over, or less, a value.
pub(crate) trait Before {
    fn over(self, x: X<'_>) -> X<'_>;
    fn less(self, x: X<'_>) -> X<'_>;
}

impl Before for f64 {
    fn over(self, x: X<'_>) -> X<'_> {
        self.beside(x) / x
    }

    fn less(self, x: X<'_>) -> X<'_> {
        self.beside(x) - x
    }
}
