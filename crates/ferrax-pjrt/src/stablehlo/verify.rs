//! Types of printed operations, checked as they are printed: what is ill-typed is a defect of this crate, and is named with
//! the kernel graph's node rather than found by a plugin.
//!
//! The checks are those that types and the numbers in attributes allow: ranks, shapes, kinds of dtypes and the signatures
//! of regions. An operation that is not listed here is a fault, so that each is thought of.

use super::types::tensor;
use ferrax_base::DType;
use ferrax_loops::Type;
use rustc_hash::FxHashMap;

/// The types that a region or a function takes and gives.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) params: Vec<Type>,
    pub(crate) results: Vec<Type>,
}

/// An operation as it is about to be printed.
struct Op<'o> {
    operands: &'o [&'o Type],
    rest: &'o str,
    results: &'o [Type],
    regions: &'o [Region],
}

type Check = Result<(), String>;

/// What is wrong with an operation's types, with its name.
pub(crate) fn check(
    name: &str,
    operands: &[&Type],
    rest: &str,
    results: &[Type],
    regions: &[Region],
    functions: &FxHashMap<String, Region>,
) -> Check {
    let op = Op { operands, rest, results, regions };
    op.check(name, functions).map_err(|why| {
        let list = |types: &mut dyn Iterator<Item = &Type>| types.map(tensor).collect::<Vec<_>>().join(", ");
        let (takes, gives) = (list(&mut operands.iter().copied()), list(&mut results.iter()));
        format!("{name} of ({takes}) gives ({gives}), but {why}")
    })
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(why()) }
}

/// The kinds of elements that an elementwise operation of one dtype takes, by its name and number of operands.
fn elementwise(name: &str) -> Option<(usize, fn(DType) -> bool)> {
    fn number(d: DType) -> bool {
        d.is_number()
    }
    fn integer(d: DType) -> bool {
        d.is_integer()
    }
    fn logical(d: DType) -> bool {
        d.is_integer() || d.is_bool()
    }
    fn float(d: DType) -> bool {
        d.is_float()
    }
    fn inexact(d: DType) -> bool {
        d.is_inexact()
    }
    fn signed(d: DType) -> bool {
        d.is_number() && !d.is_unsigned()
    }
    fn real(d: DType) -> bool {
        d.is_number() && !d.is_complex()
    }
    let short = name.strip_prefix("stablehlo.").or_else(|| name.strip_prefix("chlo."))?;
    Some(match short {
        "add" | "subtract" | "multiply" | "divide" | "power" => (2, number),
        "remainder" | "maximum" | "minimum" => (2, real),
        "atan2" | "next_after" | "zeta" | "polygamma" => (2, float),
        "and" | "or" | "xor" => (2, logical),
        "shift_left" | "shift_right_arithmetic" | "shift_right_logical" => (2, integer),
        "not" => (1, logical),
        "negate" => (1, number),
        "sign" => (1, signed),
        "popcnt" | "count_leading_zeros" => (1, integer),
        "floor" | "ceil" | "round_nearest_afz" | "round_nearest_even" | "reduce_precision" => (1, float),
        "exponential"
        | "exponential_minus_one"
        | "log"
        | "log_plus_one"
        | "logistic"
        | "sqrt"
        | "rsqrt"
        | "cbrt"
        | "sine"
        | "cosine"
        | "tan"
        | "tanh"
        | "asin"
        | "acos"
        | "atan"
        | "sinh"
        | "cosh"
        | "asinh"
        | "acosh"
        | "atanh" => (1, inexact),
        "erf" | "erfc" | "erf_inv" | "lgamma" | "digamma" | "bessel_i1e" => (1, float),
        _ => return None,
    })
}

impl Op<'_> {
    fn check(&self, name: &str, functions: &FxHashMap<String, Region>) -> Check {
        if let Some((arity, takes)) = elementwise(name) {
            self.counts(arity, 1)?;
            let ty = &self.results[0];
            ensure(takes(ty.dtype), || format!("it is not for {}", ty.dtype))?;
            return ensure(self.operands.iter().all(|o| *o == ty), || "all types should be one".into());
        }
        match name.strip_prefix("stablehlo.").unwrap_or(name) {
            // What they give is checked by who holds them.
            "func.return" | "return" | "custom_call" => Ok(()),
            "constant" | "iota" => self.source(),
            "compare" | "is_finite" | "convert" | "real" | "imag" | "abs" | "complex" => self.mapped(name),
            "select" | "clamp" => self.chosen(name),
            "broadcast_in_dim"
            | "reshape"
            | "bitcast_convert"
            | "transpose"
            | "slice"
            | "reverse"
            | "concatenate"
            | "pad"
            | "optimization_barrier"
            | "sdy.sharding_constraint" => self.moved(name),
            "dynamic_slice" | "dynamic_update_slice" | "gather" | "scatter" => self.indexed(name),
            "dot_general" => self.dot(),
            "reduce" | "reduce_window" => self.reduced(name),
            "map" => self.applied(),
            "sort" => self.sorted(),
            "while" | "case" => self.branched(name),
            "func.call" => self.called(functions),
            "convolution" => self.counts(2, 1),
            "fft" | "cholesky" | "triangular_solve" | "rng_bit_generator" => {
                ensure(!self.results.is_empty(), || "it has no result".into())
            }
            _ => Err("no such operation is known".into()),
        }
    }

    fn counts(&self, operands: usize, results: usize) -> Check {
        ensure(self.operands.len() == operands && self.results.len() == results, || {
            format!("it takes {operands} operands and gives {results} results")
        })
    }

    /// The integers of an attribute: a number, a list, or an array. Attributes stand behind the regions.
    fn numbers(&self, key: &str) -> Result<Vec<usize>, String> {
        let missing = || format!("it has no {key}");
        let start = [format!("{{{key} = "), format!(" {key} = "), format!("<{key} = ")]
            .iter()
            .filter_map(|k| self.rest.rfind(k).map(|at| at + k.len()))
            .max()
            .ok_or_else(missing)?;
        let text = &self.rest[start..];
        let inner = if let Some(list) = text.strip_prefix("array<i64") {
            list.split_once('>').map(|(list, _)| list.trim_start_matches(':'))
        } else if let Some(list) = text.strip_prefix('[') {
            list.split_once(']').map(|(list, _)| list)
        } else {
            text.split_once([' ', ',', '}', '>']).map(|(number, _)| number)
        };
        let items = inner.ok_or_else(missing)?.split(',').map(str::trim).filter(|t| !t.is_empty());
        items.map(|t| t.parse().map_err(|_| format!("{key} has {t}"))).collect()
    }

    fn source(&self) -> Check {
        self.counts(0, 1)?;
        if self.rest.starts_with("{iota") {
            let axis = self.numbers("iota_dimension")?;
            return ensure(axis.iter().all(|&a| a < self.results[0].shape.len()), || "it has no such axis".into());
        }
        Ok(())
    }

    /// One result of the operands' shape and another dtype.
    fn mapped(&self, name: &str) -> Check {
        let pair = matches!(name, "stablehlo.compare" | "stablehlo.complex");
        self.counts(if pair { 2 } else { 1 }, 1)?;
        let (x, out) = (self.operands[0], &self.results[0]);
        ensure(self.operands.iter().all(|o| *o == x), || "the operands' types should be one".into())?;
        ensure(x.shape == out.shape, || "the result has another shape".into())?;
        let (d, r) = (x.dtype, out.dtype);
        let fits = match name {
            "stablehlo.compare" => r.is_bool(),
            "stablehlo.is_finite" => d.is_float() && r.is_bool(),
            "stablehlo.real" | "stablehlo.imag" => d.is_complex() && r == d.real(),
            "stablehlo.abs" => d.is_number() && !d.is_unsigned() && r == d.real(),
            "stablehlo.complex" => matches!(d, DType::F32 | DType::F64) && r == d.to_complex(),
            _ => d.is_complex() == r.is_complex(),
        };
        ensure(fits, || "the dtypes do not fit".into())
    }

    fn chosen(&self, name: &str) -> Check {
        self.counts(3, 1)?;
        let out = &self.results[0];
        let scalar = |t: &Type| t.shape.is_empty() || t.shape == out.shape;
        let fits = match (name, self.operands) {
            ("stablehlo.select", &[which, a, b]) => which.dtype.is_bool() && scalar(which) && a == out && b == out,
            (_, &[low, x, high]) => {
                x == out && [low, high].iter().all(|t| t.dtype == out.dtype && scalar(t)) && !out.dtype.is_complex()
            }
            _ => false,
        };
        ensure(fits, || "the operands' types do not fit".into())
    }

    fn moved(&self, name: &str) -> Check {
        if matches!(name, "stablehlo.optimization_barrier" | "sdy.sharding_constraint") {
            return ensure(self.operands.iter().copied().eq(self.results), || "types should stay".into());
        }
        if name == "stablehlo.concatenate" {
            return self.joined();
        }
        self.counts(if name == "stablehlo.pad" { 2 } else { 1 }, 1)?;
        let (x, out) = (self.operands[0], &self.results[0]);
        if name != "stablehlo.bitcast_convert" {
            ensure(self.operands.iter().all(|o| o.dtype == out.dtype), || "the dtype should stay".into())?;
        }
        let fits = match name {
            "stablehlo.broadcast_in_dim" => {
                let dims = self.numbers("broadcast_dimensions")?;
                let mut seen = dims.clone();
                seen.sort_unstable();
                seen.dedup();
                let fit = |(&d, &n): (&usize, &usize)| out.shape.get(d).is_some_and(|&m| n == 1 || n == m);
                dims.len() == x.shape.len() && seen.len() == dims.len() && dims.iter().zip(&x.shape).all(fit)
            }
            "stablehlo.reshape" => x.size() == out.size(),
            "stablehlo.bitcast_convert" => {
                let (a, b) = (x.dtype.bits(), out.dtype.bits());
                let (wide, narrow) = if a >= b { (x, out) } else { (out, x) };
                let by = a.max(b) / a.min(b);
                let same: Vec<usize> = wide.shape.iter().copied().chain((by > 1).then_some(by)).collect();
                a.max(b) % a.min(b) == 0 && narrow.shape.as_slice() == same
            }
            "stablehlo.transpose" => {
                let perm = self.numbers("permutation")?;
                perm.len() == x.shape.len() && perm.iter().map(|&a| x.shape.get(a)).eq(out.shape.iter().map(Some))
            }
            "stablehlo.slice" => self.sliced(x, out)?,
            "stablehlo.reverse" => self.numbers("dimensions")?.iter().all(|&a| a < x.shape.len()) && x == out,
            // Padding is counted by the kernel graph's node.
            _ => x.shape.len() == out.shape.len() && self.operands[1].shape.is_empty(),
        };
        ensure(fits, || "the shapes do not fit".into())
    }

    fn sliced(&self, x: &Type, out: &Type) -> Result<bool, String> {
        let start = self.numbers("start_indices")?;
        let (limit, stride) = (self.numbers("limit_indices")?, self.numbers("strides")?);
        let rank = x.shape.len();
        let axis = |i: usize| {
            start[i] <= limit[i]
                && limit[i] <= x.shape[i]
                && stride[i] > 0
                && (limit[i] - start[i]).div_ceil(stride[i]) == out.shape[i]
        };
        Ok([start.len(), limit.len(), stride.len(), out.shape.len()] == [rank; 4] && (0..rank).all(axis))
    }

    fn joined(&self) -> Check {
        let (axis, out) = (self.numbers("dimension")?[0], &self.results[0]);
        ensure(axis < out.shape.len(), || "it has no such axis".into())?;
        let sum: usize = self.operands.iter().map(|o| o.shape.get(axis).copied().unwrap_or(0)).sum();
        let alike = self.operands.iter().all(|o| {
            let mut shape = o.shape.clone();
            if axis < shape.len() {
                shape[axis] = out.shape[axis];
            }
            shape == out.shape && o.dtype == out.dtype
        });
        ensure(alike && sum == out.shape[axis], || "the shapes do not fit".into())
    }

    fn indexed(&self, name: &str) -> Check {
        let (x, out) = (self.operands[0], &self.results[0]);
        ensure(x.dtype == out.dtype, || "the dtype should stay".into())?;
        let rank = x.shape.len();
        let within = |window: &[usize]| window.len() == rank && window.iter().zip(&x.shape).all(|(w, n)| w <= n);
        let starts = |from: usize| {
            let starts = &self.operands[from..];
            let first = starts.first().map(|s| s.dtype);
            let fits = starts.iter().all(|s| s.shape.is_empty() && s.dtype.is_integer() && Some(s.dtype) == first);
            starts.len() == rank && fits
        };
        let fits = match name {
            "stablehlo.dynamic_slice" => {
                let sizes = self.numbers("slice_sizes")?;
                starts(1) && within(&sizes) && sizes == out.shape.as_slice()
            }
            "stablehlo.dynamic_update_slice" => {
                starts(2) && within(&self.operands[1].shape) && self.operands[1].dtype == x.dtype && x == out
            }
            "stablehlo.gather" => {
                let offsets = self.numbers("offset_dims")?;
                let batch = self.operands[1].shape.len() - 1;
                within(&self.numbers("slice_sizes")?) && out.shape.len() == batch + offsets.len()
            }
            _ => {
                let windows = self.numbers("update_window_dims")?;
                let batch = self.operands[1].shape.len() - 1;
                let update = self.operands[2];
                update.dtype == x.dtype && update.shape.len() == batch + windows.len() && x == out
            }
        };
        ensure(fits, || "the shapes do not fit".into())?;
        if name == "stablehlo.scatter" { self.cells(&[x.dtype], &[x.dtype]) } else { Ok(()) }
    }

    fn dot(&self) -> Check {
        self.counts(2, 1)?;
        let (a, b, out) = (self.operands[0], self.operands[1], &self.results[0]);
        let batch = (self.numbers("lhs_batching_dimensions")?, self.numbers("rhs_batching_dimensions")?);
        let inner = (self.numbers("lhs_contracting_dimensions")?, self.numbers("rhs_contracting_dimensions")?);
        let extents =
            |t: &Type, axes: &[usize]| -> Vec<usize> { axes.iter().filter_map(|&x| t.shape.get(x).copied()).collect() };
        let free = |t: &Type, taken: [&[usize]; 2]| -> Vec<usize> {
            let axes = (0..t.shape.len()).filter(|x| !taken[0].contains(x) && !taken[1].contains(x));
            extents(t, &axes.collect::<Vec<_>>())
        };
        let same = extents(a, &batch.0) == extents(b, &batch.1) && extents(a, &inner.0) == extents(b, &inner.1);
        let shape = [extents(a, &batch.0), free(a, [&batch.0, &inner.0]), free(b, [&batch.1, &inner.1])].concat();
        let kinds = a.dtype == b.dtype && a.dtype.category() == out.dtype.category();
        ensure(same && kinds && shape == out.shape.as_slice(), || "the operands do not fit".into())
    }

    /// A region that takes two rows of scalars of these dtypes, and gives one.
    fn cells(&self, takes: &[DType], gives: &[DType]) -> Check {
        let [region] = self.regions else { return Err("it has one region".into()) };
        let twice = takes.iter().chain(takes);
        let scalars = |types: &[Type], dtypes: &mut dyn Iterator<Item = &DType>| {
            types.iter().all(|t| t.shape.is_empty()) && types.iter().map(|t| &t.dtype).eq(dtypes)
        };
        let fits = scalars(&region.params, &mut twice.into_iter()) && scalars(&region.results, &mut gives.iter());
        ensure(fits, || format!("the region takes {:?} and gives {:?}", region.params, region.results))
    }

    fn reduced(&self, name: &str) -> Check {
        let n = self.results.len();
        ensure(self.operands.len() == 2 * n && n > 0, || format!("{n} results need {} operands", 2 * n))?;
        let (xs, starts) = self.operands.split_at(n);
        let dtypes: Vec<DType> = xs.iter().map(|x| x.dtype).collect();
        let starts = starts.iter().zip(&dtypes).all(|(s, &d)| s.shape.is_empty() && s.dtype == d);
        ensure(starts, || "the starts do not fit".into())?;
        ensure(self.results.iter().map(|r| r.dtype).eq(dtypes.iter().copied()), || "the dtype should stay".into())?;
        ensure(xs.iter().all(|x| x.shape == xs[0].shape), || "the operands' shapes should be one".into())?;
        if name == "stablehlo.reduce" {
            let axes = self.numbers("dimensions")?;
            let kept: Vec<usize> =
                (0..xs[0].shape.len()).filter(|a| !axes.contains(a)).map(|a| xs[0].shape[a]).collect();
            ensure(self.results.iter().all(|r| r.shape.as_slice() == kept), || format!("{kept:?} is left"))?;
        }
        self.cells(&dtypes, &dtypes)
    }

    /// A reduction's region on arrays: what was joined before, and as many elements.
    fn applied(&self) -> Check {
        let [result] = self.results else { return Err("it has one result".into()) };
        ensure(self.operands.iter().all(|x| x.shape == result.shape), || "the shapes should be one".into())?;
        let dtypes: Vec<DType> = self.operands.iter().map(|x| x.dtype).collect();
        let (joined, elements) = dtypes.split_at(dtypes.len() / 2);
        ensure(joined == elements, || "the operands should be pairs".into())?;
        self.cells(joined, &[result.dtype])
    }

    fn sorted(&self) -> Check {
        ensure(self.operands.iter().copied().eq(self.results), || "types should stay".into())?;
        let [region] = self.regions else { return Err("it has one region".into()) };
        let pairs = self.operands.iter().flat_map(|o| [o.dtype; 2]);
        let fits = region.params.iter().all(|p| p.shape.is_empty())
            && region.params.iter().map(|p| p.dtype).eq(pairs)
            && region.results == [Type::new(DType::Bool, &[])];
        ensure(fits, || format!("the region takes {:?} and gives {:?}", region.params, region.results))
    }

    fn branched(&self, name: &str) -> Check {
        if name == "stablehlo.case" {
            let index = self.operands == [&Type::new(DType::I32, &[])];
            ensure(index, || "the index is a rank-0 int32".into())?;
            let fits = self.regions.iter().all(|r| r.params.is_empty() && r.results == self.results);
            return ensure(fits && !self.regions.is_empty(), || "the branches' results do not fit".into());
        }
        let [cond, body] = self.regions else { return Err("it has two regions".into()) };
        let carried = |types: &[Type]| types.iter().eq(self.operands.iter().copied());
        let fits = carried(self.results) && carried(&cond.params) && carried(&body.params) && carried(&body.results);
        ensure(fits, || "what it carries changes its type".into())?;
        ensure(cond.results == [Type::new(DType::Bool, &[])], || "the condition is a rank-0 bool".into())
    }

    fn called(&self, functions: &FxHashMap<String, Region>) -> Check {
        let name = self.rest.trim_start_matches("{callee = ").trim_end_matches('}');
        let Some(function) = functions.get(name) else { return Err(format!("there is no function {name}")) };
        let fits = function.params.iter().eq(self.operands.iter().copied()) && function.results == self.results;
        ensure(fits, || format!("{name} takes {:?} and gives {:?}", function.params, function.results))
    }
}
