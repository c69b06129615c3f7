//! Transpositions of matrices, tile by tile through shared memory: neighbours read neighbours and write neighbours.

use crate::print::body::Body;
use crate::print::kernel::{BLOCK, Kernel, finish};
use crate::print::types::c_type;
use ferrax_base::Result;
use ferrax_loops::{Graph, Kind, ValueId};

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Axes that stay neighbours as one, without those of one element: the operand's extents, and where each result axis comes
/// from.
fn collapsed(shape: &[usize], perm: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let kept: Vec<usize> = perm.iter().copied().filter(|&a| shape[a] != 1).collect();
    let next = |a: usize| (a + 1..shape.len()).find(|&b| shape[b] != 1);
    // The first axis of each group, in the result's order, with the group's extent.
    let mut groups: Vec<(usize, usize, usize)> = Vec::new();
    for a in kept {
        match groups.last_mut() {
            Some(group) if next(group.1) == Some(a) => (group.1, group.2) = (a, group.2 * shape[a]),
            _ => groups.push((a, a, shape[a])),
        }
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&k| groups[k].0);
    let extents = order.iter().map(|&k| groups[k].2).collect();
    let from = (0..groups.len()).map(|k| order.iter().position(|&o| o == k).unwrap_or(0)).collect();
    (extents, from)
}

/// The kernel of a value that is the transposition of matrices in memory; none for others, and for small ones.
pub fn tiled(g: &Graph, held: &dyn Fn(ValueId) -> bool, v: ValueId) -> Result<Option<Kernel>> {
    let Some(node) = g.maker(v) else { return Ok(None) };
    let Kind::Transpose(perm) = &node.kind else { return Ok(None) };
    let (x, d) = (node.inputs[0], g.ty(v).dtype);
    let (extents, from) = collapsed(&g.ty(x).shape, perm);
    let [batch, rows, columns] = match (&extents[..], &from[..]) {
        ([rows, columns], [1, 0]) => [1, *rows, *columns],
        ([batch, rows, columns], [0, 2, 1]) => [*batch, *rows, *columns],
        _ => return Ok(None),
    };
    if !held(x) || rows < TILE / 2 || columns < TILE / 2 {
        return Ok(None);
    }
    let (down, across) = (rows.div_ceil(TILE), columns.div_ceil(TILE));
    let total = batch * down * across;
    let mut body = Body::new(g, held);
    body.pointer(x);
    body.line(&format!("__shared__ {} s[{TILE}][{}];", c_type(d), TILE + 1));
    body.line(&format!("const int column = threadIdx.x % {TILE}, row = threadIdx.x / {TILE};"));
    body.open(&format!("for (I w = blockIdx.x; w < {total}; w += gridDim.x)"));
    let at = body.linear("w");
    let place = body.axes(at, &[batch, down, across]);
    let (r0, c0) = (body.index(format!("{} * {TILE}", place[1])), body.index(format!("{} * {TILE}", place[2])));
    let first = body.index(format!("{} * {}", place[0], rows * columns));
    let each = format!("for (int k = row; k < {TILE}; k += {})", BLOCK as usize / TILE);
    body.line(&format!(
        "{each} if ({r0} + k < {rows} && {c0} + column < {columns}) s[k][column] = p0[{first} + ({r0} + k) * {columns} + {c0} + column];"
    ));
    body.line("__syncthreads();");
    body.line(&format!(
        "{each} if ({c0} + k < {columns} && {r0} + column < {rows}) o0[{first} + ({c0} + k) * {rows} + {r0} + column] = s[column][k];"
    ));
    body.line("__syncthreads();");
    body.close();
    Ok(Some(finish(body, &[d], 0, true, [total.clamp(1, 1 << 16) as u32, 1, 1], BLOCK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_axis() {
        assert_eq!(collapsed(&[2, 3, 5], &[2, 0, 1]), (vec![6, 5], vec![1, 0]));
        assert_eq!(collapsed(&[2, 3, 5], &[0, 2, 1]), (vec![2, 3, 5], vec![0, 2, 1]));
        assert_eq!(collapsed(&[2, 1, 5], &[2, 1, 0]), (vec![2, 5], vec![1, 0]));
        assert_eq!(collapsed(&[2, 3, 5], &[2, 1, 0]), (vec![2, 3, 5], vec![2, 1, 0]));
        assert_eq!(collapsed(&[2, 3], &[0, 1]), (vec![6], vec![0]));
    }
}
