//! One call per node kind that is a kernel of its own.

use crate::elementwise::kernel::{In, Out};
use crate::library::{conv, dot, fft, gather, linalg, movement, random, reduce, scan, scatter, sort, windows};
use ferrax_base::{Buffer, Result, bail};
use ferrax_loops::{HostRef, Kind, Type};

/// Computes a node that is neither elementwise nor has subgraphs. The kernels it calls get a result with elements.
pub fn run(kind: &Kind, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    if let Kind::Host(host) = kind {
        return call_host(host, ins, outs);
    }
    // An empty array's other axes may be longer than any kernel can count.
    if outs.iter().all(|out| out.ty.shape.contains(&0)) {
        return Ok(());
    }
    match kind {
        Kind::Sort { axis, num_keys, .. } => return sort::sort(*axis, *num_keys, ins, outs),
        Kind::TopK { k, axis } => return sort::top_k(*k, *axis, ins[0], outs),
        Kind::Linalg(op) => return linalg::run(*op, ins, outs),
        Kind::Threefry2x32 => {
            random::threefry2x32(ins, outs);
            return Ok(());
        }
        Kind::Barrier => {
            ins.iter().zip(outs).for_each(|(x, out)| movement::same_bytes(*x, out));
            return Ok(());
        }
        _ => {}
    }
    let out = &mut outs[0];
    match kind {
        Kind::Fft { kind, axes } => return fft::run(*kind, *axes, ins[0], out),
        Kind::Iota(axis) => return movement::iota(*axis, out),
        Kind::Const(s) => movement::splat(s.dtype, s.to_bytes().as_ptr(), out.ptr, out.ty.size()),
        Kind::Dense(bytes) => out.bytes().copy_from_slice(bytes),
        Kind::Broadcast(dims) => movement::broadcast(dims, ins[0], out),
        Kind::Reshape => movement::same_bytes(ins[0], out),
        Kind::Bitcast => movement::bitcast(ins[0], out),
        Kind::Transpose(perm) => movement::transpose(perm, ins[0], out),
        Kind::Slice(dims) => movement::slice(&dims.start, &dims.stride, ins[0], out),
        Kind::Pad(config) => movement::pad(config, ins[0], ins[1], out),
        Kind::Rev(axes) => movement::rev(axes, ins[0], out),
        Kind::Concat(axis) => movement::concat(*axis, ins, out),
        Kind::DynamicSlice => movement::dynamic_slice(ins[0], &ins[1..], out),
        Kind::DynamicUpdateSlice => movement::dynamic_update_slice(ins[0], ins[1], &ins[2..], out),
        Kind::Reduce { op, axes } => return reduce::reduce(*op, axes, ins[0], out),
        Kind::ArgReduce { max, axis } => return reduce::arg_reduce(*max, *axis, ins[0], out),
        Kind::Cumulative { op, axis, reverse } => return scan::cumulative(*op, *axis, *reverse, ins[0], out),
        Kind::ReduceWindow { op, window } => return windows::reduce_window(*op, window, ins[0], ins[1], out),
        Kind::Dot(dims) => return dot::dot(dims, ins[0], ins[1], out),
        Kind::Conv(dims) => return conv::conv(dims, ins[0], ins[1], out),
        Kind::Gather(g) => return gather::gather(g, ins[0], ins[1], out),
        Kind::Scatter { op, dims, mode, sorted, unique } => {
            let hints = scatter::Hints { sorted: *sorted, unique: *unique };
            return scatter::scatter(*op, dims, (*mode, hints), ins[0], ins[1], ins[2], out);
        }
        other => bail!(NotImplemented, "the CPU engine has no {other:?}"),
    }
    Ok(())
}

/// Lets the host work in place, or hands it copies of the operands and takes its results.
fn call_host(host: &HostRef, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    let args: Vec<_> = ins.iter().map(|x| (x.ty, x.bytes())).collect();
    let mut places: Vec<_> = outs.iter_mut().map(|out| (out.ty, out.bytes())).collect();
    if host.0.call_in_place(&args, &mut places)? {
        return Ok(());
    }
    let buffers = ins.iter().map(|x| Buffer::from_bytes(x.bytes())).collect::<Result<Vec<_>>>()?;
    let args: Vec<(&Type, &Buffer)> = ins.iter().map(|x| x.ty).zip(&buffers).collect();
    let wanted: Vec<&Type> = outs.iter().map(|o| o.ty).collect();
    let results = host.call(&args, &wanted)?;
    for (out, result) in outs.iter_mut().zip(&results) {
        out.bytes().copy_from_slice(result.bytes());
    }
    Ok(())
}
