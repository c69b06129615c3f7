//! Random bits in registers: the Threefry cipher of a register of counters.
//!
//! A handler has two operands and one result: it finds the words of the key in places of the loop's memory, and leaves
//! its second result in another one. Read next: `machine/loops/handlers.rs`.

use super::forms::{Cells, Fit, Form};
use super::translate::Translator;
use crate::machine::loops::assemble::{Op, Val};
use crate::machine::loops::families::Width;
use crate::machine::loops::handlers;
use ferrax_loops::Type;

impl Translator {
    /// Both words of the blocks that keys (the first two operands) make of two words.
    pub fn cipher(&mut self, ty: &Type, x: &[Form]) -> Option<[Form; 2]> {
        if self.lane != Width::Four {
            return None;
        }
        let n = ty.size();
        if !matches!(self.fit(ty)?, Fit::Cells(_)) {
            let words: Vec<Val> = x.iter().map(Form::lanes).collect::<Option<_>>()?;
            return Some(self.blocks(&words)?.map(Form::Lanes));
        }
        let mut made: [Cells; 2] = Default::default();
        for k in 0..self.groups(n).count() {
            let words: Vec<Val> = x.iter().map(|f| f.nth(k)).collect::<Option<_>>()?;
            made.iter_mut().zip(self.blocks(&words)?).for_each(|(all, v)| all.push(v));
        }
        Some(made.map(|cells| Form::Cells(cells, self.per(n))))
    }

    /// The cipher of one register of each word.
    fn blocks(&mut self, words: &[Val]) -> Option<[Val; 2]> {
        let &[k0, k1, a, b] = words else { return None };
        let vector = words.iter().any(|&v| self.vector[v as usize]);
        let [imm, second, left] = [(); 3].map(|()| self.asm.place());
        self.write(Op::Set { at: imm, a: k0 })?;
        self.write(Op::Set { at: second, a: k1 })?;
        let lanes = if vector { 16 } else { 1 };
        let [first, other] = [(); 2].map(|()| self.value(false, vector));
        let (code, imm) = (handlers::cipher(), u64::from(imm));
        let first = self.emit(Op::CallTwo { code, imm, lanes, d: first, a, b }, first)?;
        // It reads a place that the first result comes with.
        let (code, imm) = (handlers::from_place(), u64::from(left));
        let other = self.emit(Op::Call { code, imm, lanes, d: other, a: first }, other)?;
        Some([first, other])
    }
}
