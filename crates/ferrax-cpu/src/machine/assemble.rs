//! Putting programs together: one pass over nodes in order, with one accumulator and as few stores as it takes.
//!
//! The value in the accumulator is stored to a tile only when something else is about to take its place while it
//! still has uses. Elements of narrow dtypes are extended by a load, so they are read into the accumulator first.
//! Read next: `plan/region/mod.rs`, which drives this.

use crate::machine::handler::{self, Binary, Handler, Instr};
use crate::machine::table::{self, Held};
use crate::simd::Isa;
use ferrax_base::DType;

/// Where the elements of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Src {
    /// A slot of the run.
    Slot(u32),
    /// An array of the block's scratch memory; its number, then its offset.
    Scratch(u32),
    /// A tile.
    Tile(u32),
    /// The rotating accumulators of a reduction.
    State(u32),
    /// Rows of a view, by its number.
    View(u32),
}

/// An entry of a program's pointer table.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The memory.
    pub src: Src,
    /// Bytes from one row to the next.
    pub row: usize,
    /// Bytes from one element of the row to the next: 0 for scalars and tiles.
    pub step: u16,
    /// Elements from one element of the row to the next, if there are any between them; else 1.
    pub stride: i8,
    /// Bytes of an element, where tiles hold more than a row of the place and those lie apart; else 0.
    pub apart: u8,
    /// Whether the program writes there.
    pub written: bool,
    /// Whether it writes past the caches.
    pub streamed: bool,
}

impl Place {
    /// A place that is read.
    pub fn read(src: Src, row: usize, step: usize) -> Place {
        Place { src, row, step: step as u16, stride: 1, apart: 0, written: false, streamed: false }
    }

    /// A place that is written.
    pub fn write(src: Src, row: usize, step: usize) -> Place {
        Place { written: true, ..Place::read(src, row, step) }
    }

    /// Tiles that hold a tile's elements with what lies between them.
    pub fn staged(&self) -> u32 {
        u32::from(self.stride.unsigned_abs())
    }
}

/// The number of a value in a program.
pub type Val = u32;

#[derive(Clone, Copy)]
struct Info {
    dtype: DType,
    /// Uses to come.
    uses: u32,
    memory: Option<u16>,
    tile: Option<u16>,
}

/// A program being put together.
pub struct Assembler {
    isa: Isa,
    /// Bytes of a lane.
    lane: usize,
    /// Results may take the place of operands: of a row's last tile, what no whole tile has is stored.
    part: bool,
    /// Elements of a row.
    inner: usize,
    /// Instructions that read how far rows are apart.
    apart: Vec<u32>,
    values: Vec<Info>,
    held: Option<Val>,
    free: Vec<u16>,
    /// Tiles in use at once, at most.
    pub tiles: u32,
    /// The instructions.
    pub code: Vec<Instr>,
    /// The pointer table.
    pub places: Vec<Place>,
}

impl Default for Assembler {
    /// An empty program.
    fn default() -> Self {
        Assembler {
            isa: Isa::NARROW,
            lane: 4,
            part: false,
            inner: 0,
            apart: Vec::new(),
            values: Vec::new(),
            held: None,
            free: Vec::new(),
            tiles: 0,
            code: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl Assembler {
    /// Forgets the program, keeping its memory; the next one is for an instruction set and has lanes of `lane` bytes in rows of
    /// `inner`.
    pub fn clear(&mut self, isa: Isa, lane: usize, inner: usize) {
        (self.isa, self.lane, self.inner, self.part) = (isa, lane, inner, false);
        self.apart.clear();
        self.values.clear();
        self.free.clear();
        self.code.clear();
        self.places.clear();
        (self.held, self.tiles) = (None, 0);
    }

    /// A new value.
    pub fn value(&mut self, dtype: DType) -> Val {
        self.values.push(Info { dtype, uses: 0, memory: None, tile: None });
        self.values.len() as Val - 1
    }

    /// Whether a value's lanes are those of another value at the same place in memory: its dtype is the same, or its elements
    /// are lanes as they are.
    pub fn reads_as(&self, v: Val, dtype: DType) -> bool {
        let own = self.values[v as usize].dtype;
        own == dtype || own.size() == self.lane
    }

    /// Says that results may be stored where the program reads an operand.
    pub fn in_place(&mut self) {
        self.part = true;
    }

    /// Says that a value will be used once more than said so far.
    pub fn will_use(&mut self, v: Val) {
        self.values[v as usize].uses += 1;
    }

    /// Adds an entry to the pointer table.
    pub fn place(&mut self, place: Place) -> u16 {
        self.places.push(place);
        self.places.len() as u16 - 1
    }

    /// Says where a value's elements are.
    pub fn in_memory(&mut self, v: Val, place: Place) {
        self.values[v as usize].memory = Some(self.place(place));
    }

    /// A dtype whose elements are lanes.
    fn raw(&self) -> DType {
        if self.lane == 4 { DType::U32 } else { DType::U64 }
    }

    fn emit(&mut self, h: Handler, p: u16, q: u16, imm: u64) {
        let step = |i: u16| self.places.get(i as usize).map_or(0, |p| p.step);
        self.code.push(Instr { code: self.isa.code(h), imm, p, q, ps: step(p), qs: step(q) });
    }

    /// Appends a load or a store of rows that lie apart.
    fn emit_apart(&mut self, h: Handler, place: u16) {
        self.apart.push(self.code.len() as u32);
        self.emit(h, place, place, handler::Apart::imm(self.inner * self.lane / self.isa.register()));
    }

    /// The place where a value's lanes can be read.
    fn lanes_at(&self, v: Val) -> Option<u16> {
        let info = &self.values[v as usize];
        let lanes = |m: &u16| {
            let p = &self.places[*m as usize];
            info.dtype.size() == self.lane && p.stride == 1 && p.apart == 0
        };
        info.tile.or(info.memory.filter(lanes))
    }

    fn is_scalar(&self, place: u16) -> bool {
        let p = self.places[place as usize];
        p.step == 0 && !matches!(p.src, Src::Tile(_))
    }

    fn take_tile(&mut self) -> u16 {
        self.free.pop().unwrap_or_else(|| {
            self.tiles += 1;
            self.place(Place::read(Src::Tile(self.tiles - 1), 0, 0))
        })
    }

    /// Stores the accumulator, which holds `v`, to a tile.
    fn spill(&mut self, v: Val) {
        let tile = self.take_tile();
        if let Some(h) = table::store(self.lane, self.raw(), false) {
            self.emit(h, tile, 0, 0);
        }
        self.values[v as usize].tile = Some(tile);
    }

    /// Keeps what the accumulator holds, if it is needed and nowhere else.
    fn keep(&mut self) {
        if let Some(v) = self.held
            && self.values[v as usize].uses > 0
            && self.lanes_at(v).is_none()
        {
            self.spill(v);
        }
    }

    fn load(&mut self, v: Val) {
        if self.held == Some(v) {
            return;
        }
        self.keep();
        let info = self.values[v as usize];
        let (place, dtype) = match (info.tile, info.memory) {
            (Some(t), _) => (t, self.raw()),
            (None, Some(m)) => (m, info.dtype),
            (None, None) => unreachable!("a value is in the accumulator, a tile or memory"),
        };
        let Place { apart, step, stride, .. } = self.places[place as usize];
        let stride = isize::from(stride);
        if apart != 0 {
            if let Some(h) = table::load_apart(self.lane, dtype, step == 0) {
                self.emit_apart(h, place);
            }
        } else if stride != 1 {
            self.emit(handler::load_strided(self.lane, stride), place, 0, (stride * self.lane as isize) as u64);
        } else if let Some(h) = table::load(self.lane, dtype, self.is_scalar(place)) {
            self.emit(h, place, 0, 0);
        }
        self.held = Some(v);
    }

    /// Makes sure that a value's lanes can be read from memory.
    fn readable(&mut self, v: Val) -> u16 {
        if let Some(at) = self.lanes_at(v) {
            return at;
        }
        self.load(v);
        self.spill(v);
        self.values[v as usize].tile.unwrap_or(0)
    }

    fn used(&mut self, v: Val) {
        let info = &mut self.values[v as usize];
        info.uses -= 1;
        if info.uses == 0
            && let Some(t) = info.tile.take()
        {
            self.free.push(t);
        }
    }

    /// Ends an operation: its result is in the accumulator.
    fn result(&mut self, out: Val) {
        self.held = Some(out);
        if let Some(h) = table::round(self.lane, self.values[out as usize].dtype) {
            self.emit(h, 0, 0, 0);
        }
    }

    /// out = f(x); without a handler the lanes stay as they are.
    pub fn unary(&mut self, h: Option<Handler>, imm: u64, x: Val, out: Val) {
        self.load(x);
        self.used(x);
        self.keep();
        if let Some(h) = h {
            self.emit(h, 0, 0, imm);
        }
        self.result(out);
    }

    /// Brings one of two operands to the accumulator; whether it is the first.
    fn hold_one(&mut self, x: Val, y: Val) -> bool {
        if x == y {
            self.readable(x);
            self.load(x);
            return true;
        }
        let (at_x, at_y) = (self.lanes_at(x).is_some(), self.lanes_at(y).is_some());
        if self.held == Some(x) && at_y {
            return true;
        }
        if self.held == Some(y) && at_x {
            return false;
        }
        if at_x && !at_y {
            self.load(y);
            return false;
        }
        if !at_y {
            // Neither can be read: if x is held, it is kept by the load of y.
            self.readable(y);
        }
        self.load(x);
        true
    }

    /// out = f(x, y)
    pub fn binary(&mut self, b: Binary, x: Val, y: Val, out: Val) {
        let first = self.hold_one(x, y);
        let place = self.readable(if first { y } else { x });
        let h = match (first, self.is_scalar(place)) {
            (true, false) => b.array,
            (true, true) => b.scalar,
            (false, false) => b.array_first,
            (false, true) => b.scalar_first,
        };
        self.consume(&[x, y]);
        self.emit(h, place, 0, 0);
        self.result(out);
    }

    /// Counts the operands as used, and keeps the one in the accumulator if it is used again. Tiles that become
    /// free are not taken again before the operation that reads them is emitted.
    fn consume(&mut self, operands: &[Val]) {
        let free = std::mem::take(&mut self.free);
        operands.iter().for_each(|&v| self.used(v));
        let freed = std::mem::replace(&mut self.free, free);
        self.keep();
        self.free.extend(freed);
    }

    /// out = `on_true` where `which`, else `on_false`
    pub fn select(&mut self, which: Val, on_false: Val, on_true: Val, out: Val) {
        let all = [which, on_false, on_true];
        for &v in &all {
            if self.held != Some(v) {
                self.readable(v);
            }
        }
        // What is held may have changed above; it is then readable.
        let held = match self.held {
            Some(v) if all.iter().filter(|&&a| a == v).count() == 1 => v,
            Some(v) if all.contains(&v) => {
                self.readable(v);
                v
            }
            _ => {
                self.load(which);
                which
            }
        };
        let rest = if held == which {
            [on_false, on_true]
        } else if held == on_false {
            [which, on_true]
        } else {
            [which, on_false]
        };
        let role = if held == which {
            Held::Which
        } else if held == on_false {
            Held::OnFalse
        } else {
            Held::OnTrue
        };
        let (p, q) = (self.readable(rest[0]), self.readable(rest[1]));
        let h = table::select(self.lane, role, (self.is_scalar(p), self.is_scalar(q)));
        self.consume(&all);
        self.emit(h, p, q, 0);
        self.result(out);
    }

    /// Stores a value at a place, as elements of its dtype.
    pub fn store(&mut self, v: Val, place: Place, lanes: bool) {
        self.load(v);
        let dtype = if lanes { self.raw() } else { self.values[v as usize].dtype };
        let at = self.place(place);
        if place.apart != 0 {
            if let Some(h) = table::store_apart(self.lane, dtype, self.part) {
                self.emit_apart(h, at);
            }
            return;
        }
        let h = if place.streamed && dtype.size() == self.lane {
            Some(handler::stream())
        } else {
            table::store(self.lane, dtype, self.part)
        };
        if let Some(h) = h {
            self.emit(h, at, 0, 0);
        }
        let info = &mut self.values[v as usize];
        if info.memory.is_none() && !place.streamed && info.dtype.size() == self.lane && place.step != 0 {
            info.memory = Some(at);
        }
    }

    /// Joins a value to the accumulators of a reduction, as one of the uses that were said.
    pub fn fold(&mut self, h: Handler, v: Val, state: Place) {
        self.load(v);
        let at = self.place(state);
        self.emit(h, at, 0, 0);
        self.used(v);
    }

    /// Counts a store of the value as one of the uses that were said.
    pub fn used_by_store(&mut self, v: Val) {
        self.used(v);
    }

    /// As `store`, as one of the uses that were said.
    pub fn store_last(&mut self, v: Val, place: Place) {
        self.store(v, place, false);
        self.used(v);
    }

    /// Ends the program, which may begin with a row's last tile, and go on with the next row.
    pub fn finish(&mut self, last_first: bool, rows: bool) {
        let next = if last_first { handler::next_whole_tile(self.lane) } else { handler::next_tile(self.lane) };
        self.emit(next, 0, 0, 0);
        if rows {
            self.emit(handler::next_row(self.lane), 0, 0, self.places.len() as u64);
        }
        // Distances follow the places in the table.
        for &at in &self.apart {
            self.code[at as usize].q += self.places.len() as u16;
        }
        self.emit(handler::finish(), 0, 0, 0);
    }
}
