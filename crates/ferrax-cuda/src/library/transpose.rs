//! Transpositions, tile by tile through shared memory: neighbours read neighbours and write neighbours.
//!
//! A tile spans the operand's last axis and that which becomes the last one; other axes are any number of such matrices.
//! Elementwise functions of a transposed value, and what is transposed, are computed on the way. Threads read and write
//! vectors of 16 bytes where rows begin at multiples of that.

use crate::plan::group::same_place;
use crate::print::body::Body;
use crate::print::kernel::{BLOCK, Kernel, finish};
use crate::print::types::c_type;
use ferrax_base::{DType, Result};
use ferrax_loops::{Graph, Kind, ValueId};

/// Rows, and columns, from which on tiles are worth while.
const LEAST: usize = 16;
/// Transposed values of a kernel that go through tiles.
const TURNED: usize = 2;

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

/// A transposition by tiles.
struct Tiles {
    /// Extents of the axes of which tiles have one place each, with strides in the operand and in the result.
    batch: Vec<(usize, usize, usize)>,
    /// The operand's rows, whose elements become neighbours, and its columns.
    rows: usize,
    columns: usize,
    /// How far the operand's rows, and the result's, lie apart.
    row_stride: usize,
    column_stride: usize,
}

impl Tiles {
    /// The tiles of a transposition of arrays of a shape; none where neighbours stay neighbours, and for few rows or columns.
    fn of(shape: &[usize], perm: &[usize]) -> Option<Tiles> {
        let (extents, from) = collapsed(shape, perm);
        let (last, &first) = (extents.len().checked_sub(1)?, from.last()?);
        if first == last || extents[first] < LEAST || extents[last] < LEAST {
            return None;
        }
        let stride = |k: usize| extents[k + 1..].iter().product::<usize>();
        let place = |k: usize| from.iter().position(|&f| f == k).unwrap_or(0);
        let result = |k: usize| from[place(k) + 1..].iter().map(|&f| extents[f]).product::<usize>();
        let batch = (0..last).filter(|&k| k != first).map(|k| (extents[k], stride(k), result(k))).collect();
        let (rows, columns) = (extents[first], extents[last]);
        Some(Tiles { batch, rows, columns, row_stride: stride(first), column_stride: result(last) })
    }
}

/// The transpositions at the place of a value's elements, with their operands.
fn transpositions(
    g: &Graph,
    held: &dyn Fn(ValueId) -> bool,
    v: ValueId,
    found: &mut Vec<ValueId>,
    seen: &mut Vec<ValueId>,
) {
    if held(v) || seen.contains(&v) {
        return;
    }
    seen.push(v);
    let Some(node) = g.maker(v) else { return };
    if matches!(node.kind, Kind::Transpose(_)) {
        found.push(v);
    }
    for &x in node.inputs.iter().filter(|&&x| same_place(g, node, x)) {
        transpositions(g, held, x, found, seen);
    }
}

/// Whether computing a value's elements reads an array at their places.
fn reads(g: &Graph, held: &dyn Fn(ValueId) -> bool, v: ValueId) -> bool {
    held(v) || g.maker(v).is_some_and(|node| node.inputs.iter().any(|&x| same_place(g, node, x) && reads(g, held, x)))
}

/// The kernel of elementwise functions of transposed values, all of one size; none where no transposition is worth a tile.
/// `aligned` says which arrays begin where vectors may.
pub fn tiled(
    g: &Graph,
    held: &dyn Fn(ValueId) -> bool,
    outputs: &[ValueId],
    aligned: &dyn Fn(ValueId) -> bool,
) -> Result<Option<Kernel>> {
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    outputs.iter().for_each(|&v| transpositions(g, held, v, &mut all, &mut seen));
    let how = |v: ValueId| {
        let node = g.maker(v).filter(|node| reads(g, held, node.inputs[0]))?;
        let Kind::Transpose(perm) = &node.kind else { return None };
        Some((g.ty(node.inputs[0]).shape.clone(), perm.clone()))
    };
    let Some((shape, perm)) = all.iter().find_map(|&v| how(v)) else { return Ok(None) };
    let Some(tiles) = Tiles::of(&shape, &perm) else { return Ok(None) };
    let mut turned: Vec<ValueId> = all.into_iter().filter(|&v| how(v) == Some((shape.clone(), perm.clone()))).collect();
    turned.truncate(TURNED);
    let widest = turned.iter().chain(outputs).map(|&v| g.ty(v).dtype.size()).max().unwrap_or(16).max(1);
    // A row of a tile is 128 bytes, or 256.
    let mut side = (128 / widest).clamp(32, 128).max(if widest == 4 { 64 } else { 32 });
    while side > 32 && tiles.rows.min(tiles.columns) <= side / 2 {
        side /= 2;
    }
    let vectors = |n: usize, fits: bool| if fits && n.is_multiple_of(16 / widest) { 16 / widest } else { 1 };
    let operand = |v: ValueId| g.maker(v).map_or(v, |node| node.inputs[0]);
    let whole = turned.iter().map(|&v| operand(v)).all(|x| held(x) && aligned(x));
    let (load, store) = (vectors(tiles.columns, whole), vectors(tiles.rows, outputs.iter().all(|&v| aligned(v))));
    let of: Vec<(ValueId, ValueId)> = turned.iter().map(|&v| (v, operand(v))).collect();
    Printer { g, tiles, of, side, load, store }.print(held, outputs).map(Some)
}

/// A kernel on its way.
struct Printer<'g> {
    g: &'g Graph,
    tiles: Tiles,
    /// Transposed values and what they are transposed from.
    of: Vec<(ValueId, ValueId)>,
    /// Rows, and columns, of a tile.
    side: usize,
    /// Elements that a thread reads and writes at once.
    load: usize,
    store: usize,
}

impl Printer<'_> {
    fn print(&self, held: &dyn Fn(ValueId) -> bool, outputs: &[ValueId]) -> Result<Kernel> {
        let (g, tiles, side) = (self.g, &self.tiles, self.side);
        let mut body = Body::new(g, held);
        body.largest = g.ty(outputs[0]).size();
        for (n, &(v, _)) in self.of.iter().enumerate() {
            let d = g.ty(v).dtype;
            // Rows begin an odd number of words apart, so that a column lies in all banks.
            let width = side + 4 / d.size().clamp(1, 4);
            body.line(&format!("__shared__ {} tile{n}[{side}][{width}];", c_type(d)));
        }
        let mut shape: Vec<usize> = tiles.batch.iter().map(|b| b.0).collect();
        shape.extend([tiles.rows.div_ceil(side), tiles.columns.div_ceil(side)]);
        let total: usize = shape.iter().product();
        body.open(&format!("for (I w = blockIdx.x; w < {total}; w += gridDim.x)"));
        let at = body.linear("w");
        let mut place = body.axes(at, &shape);
        let (c0, r0) = (place.pop().unwrap_or_default(), place.pop().unwrap_or_default());
        body.line(&format!("const I r0 = {r0} * {side}, c0 = {c0} * {side};"));
        for (name, stride) in [("from", false), ("to", true)] {
            let terms =
                place.iter().zip(&tiles.batch).map(|(p, b)| format!("{p} * {}", if stride { b.2 } else { b.1 }));
            let sum: Vec<String> = std::iter::once("0".to_owned()).chain(terms).collect();
            body.line(&format!("const I {name} = {};", sum.join(" + ")));
        }
        self.read(&mut body)?;
        body.line("__syncthreads();");
        self.write(&mut body, outputs)?;
        body.line("__syncthreads();");
        body.close();
        let writes: Vec<DType> = outputs.iter().map(|&v| g.ty(v).dtype).collect();
        Ok(finish(body, &writes, 0, true, [total.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
    }

    /// Opens the loop over a thread's vectors of a tile: `y` is a row, `x` the vector's first column.
    fn open(&self, body: &mut Body<'_>, vector: usize, unroll: &str) {
        let across = self.side / vector;
        let down = BLOCK as usize / across;
        body.line(unroll);
        body.open(&format!("for (int k = 0; k < {}; ++k)", self.side.div_ceil(down)));
        body.line(&format!(
            "const int y = k * {down} + threadIdx.x / {across}, x = threadIdx.x % {across} * {vector};"
        ));
    }

    /// The condition of a vector that is there: `rows` are along `y`.
    fn inside(&self, rows: (&str, usize), columns: (&str, usize), vector: usize) -> String {
        let tall = if BLOCK as usize / (self.side / vector) > self.side {
            format!("y < {} && ", self.side)
        } else {
            String::new()
        };
        format!("if ({tall}{} + y < {} && {} + x < {})", rows.0, rows.1, columns.0, columns.1)
    }

    /// Fills the tiles. All that a thread reads is on its way before the first of it is stored.
    fn read(&self, body: &mut Body<'_>) -> Result<()> {
        let (g, t, vector) = (self.g, &self.tiles, self.load);
        let steps = self.side.div_ceil(BLOCK as usize / (self.side / vector));
        let pack = |v: ValueId| format!("fx_pack<{}, {vector}>", c_type(g.ty(v).dtype));
        for (n, &(v, _)) in self.of.iter().enumerate() {
            body.line(&format!("{} got{n}[{steps}];", pack(v)));
        }
        let inside = self.inside(("r0", t.rows), ("c0", t.columns), vector);
        self.open(body, vector, "#pragma unroll");
        body.open(&inside);
        body.line(&format!("const I j = from + (r0 + y) * {} + c0 + x;", t.row_stride));
        let at = body.linear("j");
        for (n, &(v, x)) in self.of.iter().enumerate() {
            if vector > 1 {
                let k = body.pointer(x);
                body.line(&format!("got{n}[k] = *(const {}*)(p{k} + j);", pack(v)));
            } else {
                let element = body.element(x, at)?;
                body.line(&format!("got{n}[k].x[0] = {element};"));
            }
        }
        body.close();
        body.close();
        self.open(body, vector, "#pragma unroll");
        body.open(&inside);
        for n in 0..self.of.len() {
            body.line(&format!("for (int u = 0; u < {vector}; ++u) tile{n}[y][x + u] = got{n}[k].x[u];"));
        }
        body.close();
        body.close();
        Ok(())
    }

    /// Computes the results' elements of a tile.
    fn write(&self, body: &mut Body<'_>, outputs: &[ValueId]) -> Result<()> {
        let (g, t, vector) = (self.g, &self.tiles, self.store);
        let pack = |v: ValueId| format!("fx_pack<{}, {vector}>", c_type(g.ty(v).dtype));
        self.open(body, vector, "#pragma unroll 4");
        body.open(&self.inside(("c0", t.columns), ("r0", t.rows), vector));
        body.line(&format!("const I b = to + (c0 + y) * {} + r0 + x;", t.column_stride));
        for (n, &v) in outputs.iter().enumerate() {
            body.line(&format!("{} out{n};", pack(v)));
        }
        body.line("#pragma unroll");
        body.open(&format!("for (int u = 0; u < {vector}; ++u)"));
        body.line("const I i = b + u;");
        let at = body.linear("i");
        for (n, &(v, _)) in self.of.iter().enumerate() {
            body.bind(v, at, &format!("tile{n}[x + u][y]"));
        }
        for (n, &v) in outputs.iter().enumerate() {
            let element = body.element(v, at)?;
            body.line(&format!("out{n}.x[u] = {element};"));
        }
        body.close();
        for (n, &v) in outputs.iter().enumerate() {
            body.line(&format!("*({}*)(o{n} + b) = out{n};", pack(v)));
        }
        body.close();
        body.close();
        Ok(())
    }
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
