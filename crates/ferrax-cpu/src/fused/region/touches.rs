//! The memory that a region reads and writes, for `plan/verify.rs`.

use super::{Phase, Region, Regions};
use crate::library::touch::{See, Touch, read_span, write_span};
use crate::machine::assemble::{Place, Src};
use ferrax_base::Result;

impl Regions {
    /// What a region reads and writes outside its own scratch memory, phase by phase.
    pub(crate) fn touches(&self, index: u32, see: See<'_>) -> Result<()> {
        let r = &self.list[index as usize];
        for phase in &self.phases[r.phases.0 as usize..r.phases.1 as usize] {
            let places = &self.places[phase.places.0 as usize..phase.places.1 as usize];
            let reduces = &self.reduces[phase.reduces.0 as usize..phase.reduces.1 as usize];
            let expands = &self.expands[phase.expands.0 as usize..phase.expands.1 as usize];
            let columns = &self.columns[phase.columns.0 as usize..phase.columns.1 as usize];
            let spread = expands.iter().map(|e| &e.from);
            for p in spread.chain(places.iter().filter(|p| !p.written)) {
                self.place(r, phase, (p, false), see)?;
            }
            let puts = &self.puts[phase.puts.0 as usize..phase.puts.1 as usize];
            for p in places.iter().filter(|p| p.written).chain(puts.iter().map(|put| &put.to)) {
                self.place(r, phase, (p, true), see)?;
            }
            let reduced = reduces.iter().flat_map(|x| [Some(&x.from), x.with.as_ref()]).flatten();
            for p in reduced.chain(columns.iter().map(|c| &c.from)) {
                self.place(r, phase, (p, false), see)?;
            }
            for reduce in reduces {
                if let Src::Slot(slot) = reduce.to.src {
                    see(Touch::write(slot, r.n / r.inner * reduce.to.row))?;
                }
            }
            columns.iter().try_for_each(|c| see(Touch::write(c.to, r.inner * r.lane)))?;
        }
        Ok(())
    }

    /// A place over all rows, read or written.
    fn place(&self, r: &Region, phase: &Phase, (p, write): (&Place, bool), see: See<'_>) -> Result<()> {
        match p.src {
            Src::View(k) => {
                let rows = &self.views[k as usize];
                let span = rows.span(r.inner, p.step as usize);
                if write { write_span(rows.slot, &span, see) } else { read_span(rows.slot, &span, see) }
            }
            Src::Slot(slot) => {
                let elements = if phase.over_rows { 1 } else { r.inner };
                // One element for all has a byte, at least.
                let row = (elements * p.step as usize).max(1);
                let rows = if p.row == 0 { 1 } else { r.n / r.inner };
                see(Touch { write, ..Touch::read(slot, (rows - 1) * p.row + row) })
            }
            _ => Ok(()),
        }
    }
}
