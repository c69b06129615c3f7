//! Short rows that lie apart: tiles that hold several of them reach them where they are, or they are put side by side in scratch
//! memory before the phase, or from there after it.

use super::Making;
use crate::fused::region::{Expand, Regions};
use crate::machine::assemble::{Place, Src};
use crate::machine::table;
use crate::math::integer::gcd;
use crate::plan::Planner;
use ferrax_base::DType;
use smallvec::SmallVec;

impl Regions {
    /// How many rows of all these places, from each multiple of that on, are at regular distances; 0 for all.
    pub(super) fn group(&self, places: &[Place]) -> usize {
        places.iter().fold(0, |group, p| gcd(group, self.regular(p).0))
    }
}

impl Planner<'_> {
    /// The place where a phase finds short rows; with `aside` it is scratch memory.
    pub(super) fn spread_rows(&mut self, m: &mut Making, from: Place, dtype: DType, aside: bool) -> Place {
        let element = dtype.size();
        let in_tiles = !aside && table::load_apart(m.lane, dtype, from.step == 0).is_some();
        if let Some(place) = in_tiles.then(|| self.apart(m, from, element)).flatten() {
            return place;
        }
        let row = m.inner * element;
        let to = Place::read(self.region.array(row), row, element);
        let same = matches!(from.src, Src::Slot(_) | Src::Scratch(_)) && from.step != 0;
        self.out.regions.expands.push(Expand { from, to, size: element as u8, same });
        to
    }

    /// The place where a phase leaves short rows that go to those of a view; with `aside` it is scratch memory.
    pub(super) fn gathered_rows(&mut self, m: &mut Making, root: u32, view: Src, aside: bool) -> Place {
        let dtype = self.g.types[root as usize].dtype;
        let element = dtype.size();
        let to = Place::write(view, 0, element);
        let in_tiles = !aside && table::store_apart(m.lane, dtype, false).is_some();
        if let Some(place) = in_tiles.then(|| self.apart(m, to, element)).flatten() {
            return place;
        }
        let row = m.inner * element;
        let from = Place::write(self.region.array(row), row, element);
        self.out.regions.puts.push(Expand { from, to, size: element as u8, same: false });
        from
    }

    /// Rows of a block, about as many as `block`, of which those of views that begin again and again, from the expand `first` on, are
    /// the same for every block.
    pub(super) fn repeating_block(&mut self, first: usize, block: usize) -> usize {
        let regions = &mut self.out.regions;
        let period = |e: &Expand| match e.from.src {
            Src::View(k) => regions.views[k as usize].period().filter(|period| *period <= block),
            _ => None,
        };
        let Some(whole) = regions.expands[first..].iter().filter_map(period).max() else { return block };
        let block = block / whole * whole;
        let same: SmallVec<[bool; 8]> = regions.expands[first..]
            .iter()
            .map(|e| e.same || period(e).is_some_and(|p| block.is_multiple_of(p)))
            .collect();
        regions.expands[first..].iter_mut().zip(same).for_each(|(e, same)| e.same = same);
        block
    }

    /// A place as tiles of several rows reach it, if they hold registers of rows at regular distances.
    fn apart(&self, m: &mut Making, place: Place, element: usize) -> Option<Place> {
        let group = gcd(m.group, self.out.regions.regular(&place).0);
        let tiles = group == 0 || group * m.inner >= m.isa.lanes(m.lane);
        if !m.registers || place.stride != 1 || !tiles {
            return None;
        }
        m.group = group;
        Some(Place { apart: element as u8, ..place })
    }
}
