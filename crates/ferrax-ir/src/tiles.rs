//! How an array is cut over devices whose memories are their own: into tiles, of which each device has one.
//!
//! The embedded CPU's devices share one memory and need none of this. Read next: `device.rs`.

/// Into how many tiles an array is cut along its axes, and which device has which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Tiles along the leading axes; arrays are whole along others.
    pub counts: Vec<usize>,
    /// How many devices have the same tile.
    pub copies: usize,
    /// The devices by their places in the sharding: those that have the first tile, those that have the second one. Tiles
    /// are counted row by row.
    pub order: Vec<usize>,
}

/// Where a tile begins along an axis, and how far it goes.
pub type Span = (usize, usize);

impl Tiles {
    /// The tile that a device has, by the device's place in the sharding.
    pub fn tile_of(&self, device: usize) -> usize {
        self.order.iter().position(|&d| d == device).map_or(0, |at| at / self.copies)
    }

    /// For each device, the numbers of its tile along the axes.
    fn coordinates(&self, devices: usize) -> Vec<Vec<usize>> {
        let mut all = vec![vec![0; self.counts.len()]; devices];
        for (at, &device) in self.order.iter().enumerate() {
            let mut tile = at / self.copies;
            for (axis, &n) in self.counts.iter().enumerate().rev() {
                all[device][axis] = tile % n;
                tile /= n;
            }
        }
        all
    }

    /// Where a tile lies in an array of a shape. The last tiles along an axis are smaller, or empty, where tiles do not divide it.
    pub fn spans(&self, tile: usize, shape: &[usize]) -> Vec<Span> {
        let mut left = tile;
        let count = |axis: usize| self.counts.get(axis).copied().unwrap_or(1);
        let mut spans: Vec<Span> = (0..shape.len().max(self.counts.len()))
            .rev()
            .map(|axis| {
                let (number, n) = (left % count(axis), shape.get(axis).copied().unwrap_or(1));
                left /= count(axis);
                let size = n.div_ceil(count(axis));
                let start = (number * size).min(n);
                (start, size.min(n - start))
            })
            .collect();
        spans.reverse();
        spans.truncate(shape.len());
        spans
    }

    /// How HLO says it of arrays with so many axes. Source: OpenXLA's documentation of `HloSharding`.
    pub fn text(&self, rank: usize) -> String {
        if self.counts.iter().all(|&n| n == 1) {
            return "{replicated}".into();
        }
        let copies = (self.copies > 1).then_some(self.copies);
        let whole = rank.saturating_sub(self.counts.len());
        let counts = self.counts.iter().copied().chain(std::iter::repeat_n(1, whole)).chain(copies);
        let list =
            |numbers: &mut dyn Iterator<Item = usize>| numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let (counts, order) = (list(&mut { counts }), list(&mut self.order.iter().copied()));
        let last = if self.copies > 1 { " last_tile_dim_replicate" } else { "" };
        format!("{{devices=[{counts}]{order}{last}}}")
    }
}

/// A mesh of devices by whose axes shardings can be said.
#[derive(Debug, PartialEq, Eq)]
pub struct Axes {
    /// The sizes of the mesh's axes; devices are counted row by row.
    pub sizes: Vec<usize>,
    /// For each sharding, and each of the axes that it divides, the axes of the mesh that divide it, the outermost first.
    pub entries: Vec<Vec<Vec<usize>>>,
}

/// The axes of a mesh of so many devices that say how each of these cuts; `None` where no mesh says it of all.
pub fn axes(devices: usize, all: &[&Tiles]) -> Option<Axes> {
    let mut factors = Vec::new();
    let mut left = devices;
    while left > 1 {
        let prime = (2..=left).find(|p| left.is_multiple_of(*p))?;
        factors.push(prime);
        left /= prime;
    }
    let coordinates: Vec<Vec<Vec<usize>>> = all.iter().map(|tiles| tiles.coordinates(devices)).collect();
    loop {
        let entries = all.iter().zip(&coordinates).map(|(tiles, at)| entries_by(&factors, tiles, at)).collect();
        if let Some(entries) = entries {
            return Some(Axes { sizes: factors, entries });
        }
        // the next order of the factors
        let fall = (1..factors.len()).rev().find(|&i| factors[i - 1] < factors[i])?;
        let next = (fall..factors.len()).rev().find(|&i| factors[i] > factors[fall - 1])?;
        factors.swap(fall - 1, next);
        factors[fall..].reverse();
    }
}

/// The axes of a mesh of these sizes that divide each axis of an array, where the devices' tiles are so.
fn entries_by(sizes: &[usize], tiles: &Tiles, coordinates: &[Vec<usize>]) -> Option<Vec<Vec<usize>>> {
    let stride = |axis: usize| sizes[axis + 1..].iter().product::<usize>();
    let digit = |device: usize, axis: usize| device / stride(axis) % sizes[axis];
    let entry = |dim: usize| {
        let step = |axis: usize| coordinates[stride(axis)][dim];
        let mut used: Vec<usize> = (0..sizes.len()).filter(|&axis| step(axis) > 0).collect();
        used.sort_by_key(|&axis| std::cmp::Reverse(step(axis)));
        let place = |device: usize| used.iter().fold(0, |place, &axis| place * sizes[axis] + digit(device, axis));
        let all = used.iter().map(|&axis| sizes[axis]).product::<usize>() == tiles.counts[dim];
        (all && coordinates.iter().enumerate().all(|(device, at)| at[dim] == place(device))).then_some(used)
    };
    (0..tiles.counts.len()).map(entry).collect()
}

/// Where each run of neighbours in a part of an array begins, row by row, in elements, and the length of a run. An empty
/// part has none.
pub fn runs(spans: &[Span], shape: &[usize]) -> (Vec<usize>, usize) {
    let Some((&(first, length), outer)) = spans.split_last() else { return (vec![0], 1) };
    if spans.iter().any(|&(_, n)| n == 0) {
        return (Vec::new(), 0);
    }
    let (mut starts, mut at) = (Vec::new(), vec![0; outer.len()]);
    loop {
        let row = at.iter().zip(outer).zip(shape).fold(0, |row, ((i, (start, _)), n)| row * n + start + i);
        starts.push(row * shape[shape.len() - 1] + first);
        let next = (0..outer.len()).rev().find(|&axis| at[axis] + 1 < outer[axis].1);
        let Some(axis) = next else { return (starts, length) };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(counts: &[usize], copies: usize, order: &[usize]) -> Tiles {
        Tiles { counts: counts.into(), copies, order: order.into() }
    }

    #[test]
    fn tiles_are_counted_row_by_row() {
        let cut = tiles(&[2, 2], 1, &[0, 2, 1, 3]);
        assert_eq!(cut.tile_of(2), 1);
        assert_eq!(cut.spans(1, &[4, 6, 5]), [(0, 2), (3, 3), (0, 5)]);
        assert_eq!(cut.spans(2, &[4, 6]), [(2, 2), (0, 3)]);
        assert_eq!(cut.text(3), "{devices=[2,2,1]0,2,1,3}");
        let copies = tiles(&[2], 2, &[0, 1, 2, 3]);
        assert_eq!((copies.tile_of(1), copies.tile_of(2)), (0, 1));
        assert_eq!(copies.text(2), "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}");
        assert_eq!(tiles(&[], 4, &[0, 1, 2, 3]).text(2), "{replicated}");
    }

    #[test]
    fn tiles_that_do_not_divide_an_axis_are_short_at_its_end() {
        let cut = tiles(&[4], 1, &[0, 1, 2, 3]);
        let all: Vec<_> = (0..4).map(|t| cut.spans(t, &[5])[0]).collect();
        assert_eq!(all, [(0, 2), (2, 2), (4, 1), (5, 0)]);
    }

    #[test]
    fn axes_of_a_mesh_say_how_arrays_are_cut() {
        let (rows, columns) = (tiles(&[2], 3, &[0, 1, 2, 3, 4, 5]), tiles(&[1, 3], 2, &[0, 3, 1, 4, 2, 5]));
        let (whole, both) = (tiles(&[], 6, &[0, 1, 2, 3, 4, 5]), tiles(&[6], 1, &[0, 3, 1, 4, 2, 5]));
        let found = axes(6, &[&rows, &columns, &whole, &both]).unwrap();
        assert_eq!(found.sizes, [2, 3]);
        assert_eq!(found.entries, [vec![vec![0]], vec![vec![], vec![1]], vec![], vec![vec![1, 0]]]);
        // three by two devices
        let other = tiles(&[3], 2, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(axes(6, &[&other]).unwrap().sizes, [3, 2]);
        assert_eq!(axes(6, &[&rows, &other]), None);
        // no mesh in the devices' order has them so
        assert_eq!(axes(4, &[&tiles(&[4], 1, &[1, 0, 2, 3])]), None);
        assert_eq!(axes(1, &[&tiles(&[1], 1, &[0])]).unwrap().sizes, []);
    }

    #[test]
    fn runs_are_the_rows_of_a_part() {
        assert_eq!(runs(&[(1, 2), (0, 1), (2, 2)], &[3, 2, 5]), (vec![12, 22], 2));
        assert_eq!(runs(&[], &[]), (vec![0], 1));
        assert_eq!(runs(&[(0, 2), (3, 0)], &[2, 3]), (vec![], 0));
        assert_eq!(runs(&[(1, 3)], &[4]), (vec![1], 3));
    }
}
