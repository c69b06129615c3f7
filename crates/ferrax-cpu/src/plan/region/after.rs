//! Regions that run on the rows of a product as these are made, so that a bias, an activation or a softmax finds them in
//! the caches. Read next: `matmul/mod.rs` for products by rows, `fused/region/run.rs` for how the region takes them in.

use crate::fused::region::{Phase, Region};
use crate::machine::assemble::{Place, Src};
use crate::plan::{NONE, Planner};
use crate::program::{SlotInit, Step};

impl Planner<'_> {
    /// The columns of the product that the last step computes, if it has `n` elements and suits.
    pub(super) fn product_before(&self, n: usize) -> Option<usize> {
        let step = self.out.steps.iter().rev().find(|step| !step.is_memory())?;
        let Step::Product { index, after: NONE, .. } = *step else { return None };
        let product = &self.out.products[index as usize];
        let (rows, columns) = product.shape();
        (rows * columns == n && product.suits_rows()).then_some(columns)
    }

    /// Lets the region that was emitted last, with steps from `first` on, run on the rows of the product before, unless it
    /// reads them in another order or writes what the product reads.
    pub(super) fn run_after_product(&mut self, first: usize) {
        let Some(at) = self.out.steps[..first].iter().rposition(|step| !step.is_memory()) else { return };
        let (Step::Product { slots, .. }, Some(Step::Region(region))) = (&self.out.steps[at], self.out.steps.last())
        else {
            return;
        };
        let (slots, region, end) = (*slots, *region, self.out.steps.len() - 1);
        if !self.out.steps[first..end].iter().all(Step::is_memory) || !self.takes_rows(region, slots) {
            return;
        }
        self.out.steps.pop();
        let (mut product, mut freed) = self.split_off(at);
        if let Some(Step::Product { after, .. }) = product.first_mut() {
            *after = region;
        }
        self.out.steps.append(&mut product);
        self.out.steps.append(&mut freed);
    }

    /// Whether a region needs no more of a product's result than the rows that it works on, and leaves the operands alone.
    fn takes_rows(&self, region: u32, [a, b, out]: [u32; 3]) -> bool {
        let r = &self.out.regions;
        let Region { phases, inner, .. } = r.list[region as usize];
        let by_rows = |p: &Place| p.src != Src::Slot(out) || p.row == inner * p.step as usize;
        let own = |slot: u32| {
            let shared = slot.checked_sub(self.first_own).map(|k| &self.out.inits[k as usize]);
            slot != a && slot != b && (slot == out || !matches!(shared, Some(SlotInit::Arena(_))))
        };
        let writes = |p: &Place| match p.src {
            Src::Slot(slot) => own(slot),
            Src::View(k) => own(r.views[k as usize].slot),
            _ => true,
        };
        let viewed = |p: &Place| matches!(p.src, Src::View(k) if r.views[k as usize].slot == out);
        r.phases[phases.0 as usize..phases.1 as usize].iter().all(|&Phase { places, reduces, expands, .. }| {
            let reduces = &r.reduces[reduces.0 as usize..reduces.1 as usize];
            let expands = &r.expands[expands.0 as usize..expands.1 as usize];
            let read = || reduces.iter().map(|x| &x.from).chain(expands.iter().map(|x| &x.from));
            let places = &r.places[places.0 as usize..places.1 as usize];
            places.iter().all(|p| by_rows(p) && !viewed(p) && (!p.written || writes(p)))
                && read().all(|p| by_rows(p) && !viewed(p))
                && reduces.iter().all(|x| writes(&x.to))
        })
    }
}
