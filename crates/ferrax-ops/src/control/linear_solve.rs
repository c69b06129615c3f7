//! `custom_linear_solve`: the solution of a linear equation by a program of the user's, with derivatives through the
//! equation.
//!
//! The operation is linear in the right-hand side. Its derivative in what the matrix depends on comes from
//! A x = b: A dx = db - dA x, one more solve; its transpose solves with the transposed matrix. The solvers themselves are
//! never differentiated.
//!
//! Source: implicit differentiation, as JAX's documentation of `lax.custom_linear_solve` describes it. Read next: `scan.rs`.

use super::jit::inline_program;
use super::{batch_where, check_args, check_results, dims_of, eval_reference, mask, present, split_operands};
use ferrax_base::{Aval, Result, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{Avals, Def, JaxprRef, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, bind};
use ferrax_transform::eval_jaxpr;
use ferrax_transform::programs::{batch_jaxpr, jvp_jaxpr};
use ferrax_transform::structural::instantiate;

ferrax_ir::params! {
    /// Parameters of `custom_linear_solve`.
    pub struct LinearSolve {
        /// x → A x.
        matvec: JaxprRef,
        /// b → x, auxiliary results.
        solve: JaxprRef,
        /// y → Aᵀ y.
        vecmat: Option<JaxprRef>,
        /// As `solve`, for Aᵀ.
        transpose_solve: Option<JaxprRef>,
        /// Numbers of constants of `matvec`, `vecmat`, `solve` and `transpose_solve`.
        const_lengths: Vec<usize>,
    }
}

impl LinearSolve {
    fn vectors(&self) -> usize {
        self.matvec.outvars.len()
    }

    fn consts(&self) -> usize {
        self.const_lengths.iter().sum()
    }

    /// The constants of the i-th program.
    fn part<'a, T>(&self, items: &'a [T], i: usize) -> &'a [T] {
        let first: usize = self.const_lengths[..i].iter().sum();
        &items[first..first + self.const_lengths[i]]
    }

    /// The operands of the solver.
    fn solver_args<T: Clone>(&self, args: &[T]) -> Vec<T> {
        [self.part(args, 2), &args[self.consts()..]].concat()
    }

    /// The same for the transposed matrix, with its constants.
    fn transposed<T: Clone>(&self, args: &[T]) -> Result<(LinearSolve, Vec<T>)> {
        let (Some(vecmat), Some(transpose_solve)) = (&self.vecmat, &self.transpose_solve) else {
            bail!(Type, "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve");
        };
        let [m, v, s, t] = [0, 1, 2, 3].map(|i| self.part(args, i));
        let params = LinearSolve {
            matvec: vecmat.clone(),
            solve: transpose_solve.clone(),
            vecmat: Some(self.matvec.clone()),
            transpose_solve: Some(self.solve.clone()),
            const_lengths: vec![v.len(), m.len(), t.len(), s.len()],
        };
        Ok((params, [v, m, t, s].concat()))
    }
}

/// (constants…, b…) → (x…, auxiliary results…) with A x = b.
pub static LINEAR_SOLVE: Def<LinearSolve> = Def {
    name: "custom_linear_solve",
    doc: "Solves a linear equation by a given program, with derivatives through the equation.",
    arity: None,
    shape: linear_solve_shape,
    jvp: Slot::Rule(linear_solve_jvp),
    transpose: Slot::Rule(linear_solve_transpose),
    batch: Slot::Rule(linear_solve_batch),
    simplify: Slot::None("passes work inside the programs"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(&p.solve, b, &p.solver_args(args))),
    reference: Slot::Rule(|p, args, _| eval_reference(&p.solve, &p.solver_args(args))),
    special: Special {
        eager: Some(|_, p, args| {
            let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
            linear_solve_shape(p, &avals.iter().collect::<Vec<_>>())?;
            Ok(eval_jaxpr(&p.solve, &p.solver_args(args))?.into())
        }),
        effects: Some(|p| p.solve.effects),
        ..Special::NONE
    },
};

fn linear_solve_shape(p: &LinearSolve, args: &[&Aval]) -> Result<Avals> {
    let name = "custom_linear_solve";
    if p.const_lengths.len() != 4 {
        bail!(Value, "{name} takes the numbers of constants of four programs, got {}", p.const_lengths.len());
    }
    let consts = p.const_lengths.iter().fold(0, |sum: usize, n| sum.saturating_add(*n));
    let (_, b) = split_operands(name, args, consts)?;
    let vector: Vec<Aval> = b.iter().map(|&a| a.clone()).collect();
    let must = "it must give vectors of the types of b,";
    for (i, what, jaxpr) in [(0, "matvec", Some(&p.matvec)), (1, "vecmat", p.vecmat.as_ref())] {
        let Some(jaxpr) = jaxpr else { continue };
        check_args(&format!("{what} of {name}"), jaxpr, &[p.part(args, i), b].concat())?;
        check_results(&format!("{what} of {name}"), &jaxpr.out_avals(), &vector, must)?;
    }
    for (i, what, jaxpr) in [(2, "solve", Some(&p.solve)), (3, "transpose_solve", p.transpose_solve.as_ref())] {
        let Some(jaxpr) = jaxpr else { continue };
        check_args(&format!("{what} of {name}"), jaxpr, &[p.part(args, i), b].concat())?;
        let outs = jaxpr.out_avals();
        let solution = outs.get(..vector.len()).unwrap_or(&outs);
        check_results(&format!("{what} of {name}"), solution, &vector, must)?;
    }
    Ok(p.solve.out_avals().into())
}

/// Solves; `args` are the constants of the four programs, then the right-hand side.
pub fn linear_solve(params: LinearSolve, args: &[Value]) -> Result<Values> {
    bind(&OpRef::new(&LINEAR_SOLVE, params), args)
}

fn linear_solve_jvp(
    op: &OpRef,
    p: &LinearSolve,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let outs = bind(op, primals)?;
    let n = p.vectors();
    let mut moved: Vec<Option<Value>> = tangents[p.consts()..].to_vec();
    let of_matrix = p.part(tangents, 0);
    if of_matrix.iter().any(Option::is_some) {
        // db - dA x
        let nonzero = [mask(of_matrix), vec![false; n]].concat();
        let program = jvp_jaxpr(&p.matvec, &nonzero, &vec![false; n])?;
        let args: Vec<Value> = p.part(primals, 0).iter().chain(&outs[..n]).cloned().chain(present(of_matrix)).collect();
        let mut pushed = eval_jaxpr(&program.jaxpr, &args)?.split_off(n).into_iter();
        for (slot, on) in moved.iter_mut().zip(&program.nonzero_out) {
            let Some(pushed) = (if *on { pushed.next() } else { None }) else { continue };
            *slot = Some(match slot.take() {
                Some(db) => crate::sub(&db, &pushed)?,
                None => crate::neg(&pushed)?,
            });
        }
    }
    let mut out_tangents: Tangents = outs.iter().map(|_| None).collect();
    if moved.iter().any(Option::is_some) {
        let mut args = primals[..p.consts()].to_vec();
        for (t, aval) in moved.into_iter().zip(p.matvec.out_avals()) {
            args.push(instantiate(t, &aval.tangent())?);
        }
        for (slot, t) in out_tangents.iter_mut().zip(bind(op, &args)?.into_iter().take(n)) {
            *slot = Some(t);
        }
    }
    Ok((outs, out_tangents))
}

fn linear_solve_transpose(
    _: &OpRef,
    p: &LinearSolve,
    cts: &[Option<Value>],
    args: &[TransposeArg],
) -> Result<Tangents> {
    let n = p.consts();
    let mut out: Tangents = args.iter().map(|_| None).collect();
    if cts[..p.vectors()].iter().all(Option::is_none) {
        return Ok(out);
    }
    let known = args[..n].iter().map(|a| a.known().cloned()).collect::<Result<Vec<Value>>>()?;
    let (params, mut operands) = p.transposed(&known)?;
    let avals: Vec<Aval> = p.solve.out_avals();
    operands.extend(super::instantiate_all(&cts[..p.vectors()], &avals[..p.vectors()])?);
    let pulled = linear_solve(params, &operands)?;
    for (slot, ct) in out[n..].iter_mut().zip(pulled.into_iter().take(p.vectors())) {
        *slot = Some(ct);
    }
    Ok(out)
}

fn linear_solve_batch(
    _: &OpRef,
    p: &LinearSolve,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let consts = p.consts();
    // Every row has a right-hand side and a solution of its own, whichever operand is batched.
    let on: Vec<bool> = dims.iter().enumerate().map(|(i, d)| d.is_some() || i >= consts).collect();
    let operands = batch_where(args, dims, &on, axis)?;
    let rows = |jaxpr: &JaxprRef, i: usize| -> Result<JaxprRef> {
        let batched = [p.part(&on, i), &on[consts..]].concat();
        Ok(batch_jaxpr(jaxpr, axis, &batched, &vec![true; jaxpr.outvars.len()])?.jaxpr)
    };
    let params = LinearSolve {
        matvec: rows(&p.matvec, 0)?,
        vecmat: p.vecmat.as_ref().map(|j| rows(j, 1)).transpose()?,
        solve: rows(&p.solve, 2)?,
        transpose_solve: p.transpose_solve.as_ref().map(|j| rows(j, 3)).transpose()?,
        const_lengths: p.const_lengths.clone(),
    };
    let outs = linear_solve(params, &operands)?;
    let batched = vec![true; outs.len()];
    Ok((outs, dims_of(&batched)))
}
