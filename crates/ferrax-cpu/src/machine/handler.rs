//! Handlers of the threaded machine, and the macros that make one from an expression.
//!
//! A handler applies one operation to the accumulator (8 vector registers, passed in the argument registers)
//! and jumps to the next instruction's handler as its last act. Each is compiled for every instruction set of the
//! architecture (`x86.rs`, `aarch64.rs`) from one body over an array of lanes, which the optimizer keeps in registers;
//! the scalar expression in it is the one that the kernels of single operations use, so both give the same bits.
//!
//! Rust does not guarantee that the calls at the end become jumps. They do at opt-level 1 and above as long as
//! no address of the frame escapes, so bodies must be inlined; [`super::self_test`] checks it at start-up.
//! Read next: `table.rs` for which handlers there are, `assemble.rs` for how programs are put together.

pub(crate) use crate::machine::arch::{CodeOf, sets};
use crate::machine::arch::{Register, stack_pointer};
use crate::simd::Isa;

/// The address of a handler's code for one instruction set.
#[derive(Clone, Copy, PartialEq)]
#[repr(transparent)]
pub struct Code(pub *const ());
// SAFETY: the address of a function.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// One instruction: a handler and its operands, which are places of the pointer table with the bytes that each
/// element of the row takes there (0 for tiles and scalars).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Instr {
    /// The handler.
    pub code: Code,
    /// Immediate; the handler says what it means.
    pub imm: u64,
    /// First operand in memory.
    pub p: u16,
    /// Second operand in memory.
    pub q: u16,
    /// Bytes an element of the first operand takes.
    pub ps: u16,
    /// Bytes an element of the second operand takes.
    pub qs: u16,
}

/// A handler's code for every instruction set, in the order of [`Isa::ALL`].
#[derive(Clone, Copy, PartialEq)]
pub struct Handler(pub [Code; Isa::ALL.len()]);

/// A type that a lane of `L` holds.
pub trait Lane<L> {
    /// The value in a lane.
    fn get(lane: L) -> Self;
    /// The lane that holds the value.
    fn put(self) -> L;
}

macro_rules! float_lane {
    ($T:ty, $L:ty) => {
        impl Lane<$L> for $T {
            #[inline(always)]
            fn get(lane: $L) -> $T {
                <$T>::from_bits(lane)
            }
            #[inline(always)]
            fn put(self) -> $L {
                self.to_bits()
            }
        }
    };
}
float_lane!(f32, u32);
float_lane!(f64, u64);

macro_rules! integer_lane {
    ($L:ty: $($T:ty)*) => {
        $(impl Lane<$L> for $T {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn get(lane: $L) -> $T {
                lane as $T
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn put(self) -> $L {
                self as $L
            }
        })*
    };
}
integer_lane!(u32: u8 i8 u16 i16 u32 i32);
integer_lane!(u64: u8 i8 u16 i16 u32 i32 u64 i64);

/// The address of an operand's first element of this tile.
///
/// # Safety
/// The place must be one of the table.
#[inline(always)]
pub unsafe fn at(p: *const *mut u8, place: u16, step: u16, o: usize) -> *mut u8 {
    // SAFETY: the caller's contract.
    unsafe { (*p.add(place as usize)).wrapping_add(o * step as usize) }
}

/// Compiles a body over `[$L; N]` for every instruction set.
macro_rules! handler {
    ($L:ty, |$pc:ident, $p:ident, $o:ident, $acc:ident| $body:block) => {
        $crate::machine::handler::handler!($L, |$pc, $p, $o, end, $acc| $body)
    };
    ($L:ty, |$pc:ident, $p:ident, $o:ident, $e:ident, $acc:ident| $body:block) => {{
        #[allow(unused_imports)]
        use $crate::machine::handler::{Instr, Lane, at};
        #[inline(always)]
        #[allow(unused_variables, unused_unsafe, clippy::needless_range_loop)]
        unsafe fn body<const F: bool, const N: usize>(
            $pc: *const Instr,
            $p: *const *mut u8,
            $o: usize,
            $e: usize,
            $acc: &mut [$L; N],
        ) {
            // SAFETY: the program gives operands that are valid for a tile.
            unsafe { $body }
        }
        $crate::machine::handler::sets!([$crate::machine::handler::variant] body, $L)
    }};
}

/// The code of a handler for one instruction set: the arguments by name, the accumulator as an array.
macro_rules! function {
    ($name:ident, $V:ty, $abi:literal, $features:literal,
     |$pc:ident, $p:ident, $o:ident, $e:ident, $start:ident, $acc:ident| $body:block) => {
        #[target_feature(enable = $features)]
        #[allow(unused_variables, unused_mut, unused_unsafe)]
        unsafe extern $abi fn $name(
            $pc: *const Instr,
            $p: *const *mut u8,
            mut $o: usize,
            $e: usize,
            $start: *const Instr,
            a0: $V,
            a1: $V,
            a2: $V,
            a3: $V,
            a4: $V,
            a5: $V,
            a6: $V,
            a7: $V,
        ) {
            let mut $acc: [$V; 8] = [a0, a1, a2, a3, a4, a5, a6, a7];
            // SAFETY: lanes are plain numbers; the program gives operands that are valid for a tile, ends with a
            // handler that returns, and has handlers of this instruction set only.
            unsafe { $body }
        }
    };
}

/// Goes on with an instruction.
macro_rules! jump {
    ($V:ty, $next:expr, $p:ident, $o:ident, $e:ident, $start:ident, $a:ident) => {{
        let next = $next;
        let code: $crate::machine::handler::CodeOf<$V> = core::mem::transmute((*next).code);
        code(next, $p, $o, $e, $start, $a[0], $a[1], $a[2], $a[3], $a[4], $a[5], $a[6], $a[7])
    }};
}

/// A body over an array of lanes for one instruction set.
macro_rules! variant {
    ($name:ident, $V:ty, $abi:literal, $features:literal, $body:ident, $L:ty) => {
        $crate::machine::handler::function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
            let mut acc: [$L; 8 * size_of::<$V>() / size_of::<$L>()] = core::mem::transmute(a);
            $body::<true, _>(pc, p, o, e, &mut acc);
            let after: [$V; 8] = core::mem::transmute(acc);
            a = after;
            $crate::machine::handler::jump!($V, pc.add(1), p, o, e, start, a)
        });
    };
}

/// acc = f(acc)
macro_rules! lanes1 {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            for i in 0..N {
                let $x: $T = Lane::get(acc[i]);
                let r: $R = $e;
                acc[i] = Lane::put(r);
            }
        })
    };
}

/// As `lanes1`, with the immediate bound to a name.
macro_rules! lanes1_imm {
    ($L:ty, $imm:ident, $x:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let $imm = (*pc).imm;
            for i in 0..N {
                let $x: $T = Lane::get(acc[i]);
                let r: $R = $e;
                acc[i] = Lane::put(r);
            }
        })
    };
}

/// acc = f(acc) for a function of tiles. Its arrays are not aligned to registers: a frame that is keeps its place.
macro_rules! tile {
    ($L:ty, $T:ident, $m:ident::$f:ident) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let (mut x, mut y): ([$T; N], [$T; N]) = ([0.0; N], [0.0; N]);
            for i in 0..N {
                x[i] = Lane::get(acc[i]);
            }
            // Only AVX-512 has tiles of this size.
            if size_of_val(&x) == 512 {
                $m::$f::<F, true, N>(&x, &mut y);
            } else {
                $m::$f::<F, false, N>(&x, &mut y);
            }
            for i in 0..N {
                acc[i] = Lane::put(y[i]);
            }
        })
    };
}

/// A binary operation by where its operands are.
#[derive(Clone, Copy)]
pub struct Binary {
    /// acc = f(acc, array)
    pub array: Handler,
    /// acc = f(acc, scalar)
    pub scalar: Handler,
    /// acc = f(array, acc)
    pub array_first: Handler,
    /// acc = f(scalar, acc)
    pub scalar_first: Handler,
}

/// One form of a binary operation: the accumulator and the operand in memory by name.
macro_rules! lanes2_form {
    ($L:ty, $a:ident, $m:ident: $T:ty => $R:ty, $e:expr, $splat:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<$L>();
            for i in 0..N {
                let $a: $T = Lane::get(acc[i]);
                let $m: $T = Lane::get(memory.add(if $splat { 0 } else { i }).read_unaligned());
                let r: $R = $e;
                acc[i] = Lane::put(r);
            }
        })
    };
}

/// The four forms of f(x, y).
macro_rules! lanes2 {
    ($L:ty, $x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::handler::Binary {
            array: $crate::machine::handler::lanes2_form!($L, $x, $y: $T => $R, $e, false),
            scalar: $crate::machine::handler::lanes2_form!($L, $x, $y: $T => $R, $e, true),
            array_first: $crate::machine::handler::lanes2_form!($L, $y, $x: $T => $R, $e, false),
            scalar_first: $crate::machine::handler::lanes2_form!($L, $y, $x: $T => $R, $e, true),
        }
    };
}

/// One form of a function of two tiles; `$first` says that the accumulator is the first operand.
macro_rules! tile2_form {
    ($L:ty, $T:ident, $m:ident::$f:ident, $first:literal, $splat:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<$L>();
            let (mut x, mut y, mut r): ([$T; N], [$T; N], [$T; N]) = ([0.0; N], [0.0; N], [0.0; N]);
            for i in 0..N {
                x[i] = Lane::get(acc[i]);
                y[i] = Lane::get(memory.add(if $splat { 0 } else { i }).read_unaligned());
            }
            if $first {
                $m::$f::<F, false, N>(&x, &y, &mut r);
            } else {
                $m::$f::<F, false, N>(&y, &x, &mut r);
            }
            for i in 0..N {
                acc[i] = Lane::put(r[i]);
            }
        })
    };
}

/// The four forms of a function of two tiles.
macro_rules! tile2 {
    ($L:ty, $T:ident, $m:ident::$f:ident) => {
        $crate::machine::handler::Binary {
            array: $crate::machine::handler::tile2_form!($L, $T, $m::$f, true, false),
            scalar: $crate::machine::handler::tile2_form!($L, $T, $m::$f, true, true),
            array_first: $crate::machine::handler::tile2_form!($L, $T, $m::$f, false, false),
            scalar_first: $crate::machine::handler::tile2_form!($L, $T, $m::$f, false, true),
        }
    };
}

/// acc = load of `$T` elements; `$splat` repeats one.
macro_rules! load {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr, $splat:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<$T>();
            for i in 0..N {
                let $x: $T = memory.add(if $splat { 0 } else { i }).read_unaligned();
                let r: $R = $e;
                acc[i] = Lane::put(r);
            }
        })
    };
}

/// array = store of the accumulator as `$R` elements; with `$part`, of a row's last tile only what no whole tile has.
macro_rules! store {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr, $part:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<$R>();
            let first = if $part { $crate::machine::handler::first_alone::<N>(o) } else { 0 };
            if first == 0 {
                for i in 0..N {
                    let $x: $T = Lane::get(acc[i]);
                    memory.add(i).write_unaligned($e);
                }
            } else {
                for i in 0..N {
                    let $x: $T = Lane::get(acc[i]);
                    if i >= first {
                        memory.add(i).write_unaligned($e);
                    }
                }
            }
        })
    };
}

/// The first lane of a tile that no whole tile of the row has: those begin at multiples of theirs.
#[inline(always)]
pub fn first_alone<const N: usize>(o: usize) -> usize {
    o.wrapping_neg() & (N - 1)
}

/// Joins the accumulator to the `STATE` rotating accumulators at an operand, from element `o` of the row on; lanes
/// at and after the end take no part.
macro_rules! fold {
    ($L:ty, $a:ident, $b:ident: $T:ty, $e:expr) => {
        $crate::machine::handler::handler!($L, |pc, p, o, end, acc| {
            let state = (*p.add((*pc).p as usize)).cast::<$L>().add(o & (STATE - 1));
            let left = end - o;
            if left >= N {
                for i in 0..N {
                    let ($a, $b): ($T, $T) = (Lane::get(state.add(i).read()), Lane::get(acc[i]));
                    state.add(i).write(Lane::put($e));
                }
            } else {
                for i in 0..N {
                    let before = state.add(i).read();
                    let ($a, $b): ($T, $T) = (Lane::get(before), Lane::get(acc[i]));
                    let joined = Lane::put($e);
                    state.add(i).write(if i < left { joined } else { before });
                }
            }
        })
    };
}

/// acc = load of `$T` elements of rows that lie apart; `$splat` repeats one for each row.
macro_rules! load_apart {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr, $splat:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let each = if $splat { 0 } else { N / 8 * size_of::<$T>() };
            let mut rows = $crate::machine::handler::Apart::new(pc, p, o / (N / 8), each);
            for k in 0..8 {
                let memory = rows.register().cast::<$T>();
                for i in 0..N / 8 {
                    let $x: $T = memory.add(if $splat { 0 } else { i }).read_unaligned();
                    let r: $R = $e;
                    acc[k * (N / 8) + i] = Lane::put(r);
                }
            }
        })
    };
}

/// Rows that lie apart = store of the accumulator as `$R` elements; `$part` as in `store`.
macro_rules! store_apart {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr, $part:literal) => {
        $crate::machine::handler::handler!($L, |pc, p, o, acc| {
            let first = if $part { $crate::machine::handler::first_alone::<N>(o) } else { 0 };
            let mut rows = $crate::machine::handler::Apart::new(pc, p, o / (N / 8), N / 8 * size_of::<$R>());
            for k in 0..8 {
                let memory = rows.register().cast::<$R>();
                if k * (N / 8) >= first {
                    for i in 0..N / 8 {
                        let $x: $T = Lane::get(acc[k * (N / 8) + i]);
                        memory.add(i).write_unaligned($e);
                    }
                }
            }
        })
    };
}

/// Where the registers of a tile of several rows have their elements, which lie side by side in a row. An instruction's second
/// operand is the table's entry that says how far rows are apart; `Apart::imm` is its immediate.
pub struct Apart {
    at: *mut u8,
    /// Bytes from one register's elements to the next's in a row, and from the last one's to the next row's first.
    each: isize,
    next: isize,
    /// The register's number in the row, and how many those are.
    k: usize,
    count: usize,
}

impl Apart {
    /// The immediate for rows of so many registers: the number, and what multiplies a register's to give the row's.
    pub const fn imm(count: usize) -> u64 {
        (1u64 << 40).div_ceil(count as u64) << 16 | count as u64
    }

    /// From a register on, by its number, whose elements take `each` bytes.
    ///
    /// # Safety
    /// The instruction's operands must be entries of the table.
    #[inline(always)]
    pub unsafe fn new(pc: *const Instr, p: *const *mut u8, register: usize, each: usize) -> Apart {
        // SAFETY: the caller's contract.
        let (instr, first, distance) =
            unsafe { (*pc, *p.add((*pc).p as usize), (*p.add((*pc).q as usize)).addr() as isize) };
        let count = instr.imm as usize & 0xffff;
        // Exact below 2^24 registers of blocks, which have a few thousand.
        let row = ((register as u64 * (instr.imm >> 16)) >> 40) as usize;
        let (k, each) = (register - row * count, each as isize);
        let at = first.wrapping_offset(row as isize * distance + k as isize * each);
        Apart { at, each, next: distance - (count as isize - 1) * each, k, count }
    }

    /// Where the next register's elements are.
    #[inline(always)]
    pub fn register(&mut self) -> *mut u8 {
        let at = self.at;
        let last = self.k + 1 == self.count;
        self.k = if last { 0 } else { self.k + 1 };
        self.at = at.wrapping_offset(if last { self.next } else { self.each });
        at
    }
}

pub(crate) use {
    fold, function, handler, jump, lanes1, lanes1_imm, lanes2, lanes2_form, load, load_apart, store, store_apart, tile,
    tile2, tile2_form, variant,
};

/// Ends a tile: the next one from the first instruction, or the instruction after this.
pub fn next_tile(lane_bytes: usize) -> Handler {
    macro_rules! advance {
        ($name:ident, $V:ty, $abi:literal, $features:literal, $lane:literal) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
                o += 8 * size_of::<$V>() / $lane;
                jump!($V, if o < e { start } else { pc.add(1) }, p, o, e, start, a)
            });
        };
    }
    if lane_bytes == 4 { sets!([advance] 4) } else { sets!([advance] 8) }
}

/// As `next_tile` where rows begin with their last tile, if whole tiles leave a rest: it ends with the row, and is done before the
/// elements that it has in common with a whole one are overwritten.
pub fn next_whole_tile(lane_bytes: usize) -> Handler {
    macro_rules! advance {
        ($name:ident, $V:ty, $abi:literal, $features:literal, $lane:literal) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
                let lanes = 8 * size_of::<$V>() / $lane;
                o = if o & (lanes - 1) == 0 { o + lanes } else { 0 };
                jump!($V, if o + lanes <= e { start } else { pc.add(1) }, p, o, e, start, a)
            });
        };
    }
    if lane_bytes == 4 { sets!([advance] 4) } else { sets!([advance] 8) }
}

/// Ends a row: the next one from its first element, or the instruction after this. The pointer table goes on with how far each
/// of its `imm` places is from one row to the next, and how many rows there are yet.
pub fn next_row(lane_bytes: usize) -> Handler {
    macro_rules! advance {
        ($name:ident, $V:ty, $abi:literal, $features:literal, $lane:literal) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
                let (table, places) = (p.cast_mut(), (*pc).imm as usize);
                let left = table.add(2 * places).cast::<usize>();
                let more = *left > 1;
                if more {
                    *left -= 1;
                    for k in 0..places {
                        let at = table.add(k);
                        *at = (*at).wrapping_add((*table.add(places + k)).addr());
                    }
                    o = first_tile(e, 8 * size_of::<$V>() / $lane);
                }
                jump!($V, if more { start } else { pc.add(1) }, p, o, e, start, a)
            });
        };
    }
    if lane_bytes == 4 { sets!([advance] 4) } else { sets!([advance] 8) }
}

/// Where the first tile of a row of `e` elements begins, which is its last one if whole tiles leave a rest.
#[inline(always)]
pub fn first_tile(e: usize, lanes: usize) -> usize {
    if e & (lanes - 1) == 0 { 0 } else { e - lanes }
}

/// Returns to who started the program.
pub fn finish() -> Handler {
    macro_rules! nothing {
        ($name:ident, $V:ty, $abi:literal, $features:literal,) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {});
        };
    }
    sets!([nothing])
}

/// array = store of the lanes past the caches: for results that are larger than the caches. The run must end with
/// [`super::fence`].
pub fn stream() -> Handler {
    macro_rules! streaming {
        ($name:ident, $V:ty, $abi:literal, $features:literal,) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
                Register::stream(a, at(p, (*pc).p, (*pc).ps, o).cast::<$V>());
                jump!($V, pc.add(1), p, o, e, start, a)
            });
        };
    }
    sets!([streaming])
}

/// array = store of the lanes that no whole tile of the row has.
pub fn store_alone(lane_bytes: usize) -> Handler {
    macro_rules! storing {
        ($name:ident, $V:ty, $abi:literal, $features:literal, $lane:literal) => {
            function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
                let to = at(p, (*pc).p, (*pc).ps, o).cast::<$V>();
                let words = first_alone::<{ 8 * size_of::<$V>() / $lane }>(o) * ($lane / 4);
                for k in 0..8 {
                    let before = k * size_of::<$V>() / 4;
                    if before >= words {
                        to.add(k).write_unaligned(a[k]);
                    } else if before + size_of::<$V>() / 4 > words {
                        a[k].store_from(to.add(k), words - before);
                    }
                }
                jump!($V, pc.add(1), p, o, e, start, a)
            });
        };
    }
    if lane_bytes == 4 { sets!([storing] 4) } else { sets!([storing] 8) }
}

/// acc = load of lanes that are `stride` lanes apart; the immediate is their distance in bytes.
pub fn load_strided(lane_bytes: usize, stride: isize) -> Handler {
    macro_rules! strided {
        ($L:ty) => {
            match stride {
                // Two tiles, the second from the element before the last one: nothing is read behind that.
                2 => handler!($L, |pc, p, o, acc| {
                    let memory = (*p.add((*pc).p as usize)).cast::<$L>().add(2 * o);
                    let first = memory.cast::<[$L; N]>().read_unaligned();
                    let second = memory.add(N - 1).cast::<[$L; N]>().read_unaligned();
                    for i in 0..N / 2 {
                        acc[i] = first[2 * i];
                        acc[N / 2 + i] = second[2 * i + 1];
                    }
                }),
                -1 => handler!($L, |pc, p, o, acc| {
                    let memory = (*p.add((*pc).p as usize)).cast::<$L>().sub(o + N - 1);
                    let all = memory.cast::<[$L; N]>().read_unaligned();
                    for i in 0..N {
                        acc[i] = all[N - 1 - i];
                    }
                }),
                // A distance that is known takes half the time.
                3 => every!($L, 3),
                4 => every!($L, 4),
                _ => handler!($L, |pc, p, o, acc| {
                    let step = (*pc).imm as isize;
                    let memory = (*p.add((*pc).p as usize)).offset(o as isize * step);
                    for i in 0..N {
                        acc[i] = memory.offset(i as isize * step).cast::<$L>().read_unaligned();
                    }
                }),
            }
        };
    }
    macro_rules! every {
        ($L:ty, $step:literal) => {
            handler!($L, |pc, p, o, acc| {
                let memory = (*p.add((*pc).p as usize)).cast::<$L>().add($step * o);
                for i in 0..N {
                    acc[i] = memory.add($step * i).read_unaligned();
                }
            })
        };
    }
    if lane_bytes == 4 { strided!(u32) } else { strided!(u64) }
}

/// Writes the stack pointer to its operand: what the self-test compares.
pub fn probe() -> Handler {
    handler!(u32, |pc, p, o, acc| {
        at(p, (*pc).p, 0, o).cast::<usize>().write(stack_pointer());
    })
}

/// What the machine has no handler of: functions that take longer than a step of any other kind.
macro_rules! none {
    ($($t:tt)*) => {
        return None
    };
}
pub(crate) use none;
