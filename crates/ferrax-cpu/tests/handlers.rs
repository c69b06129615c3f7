//! Handlers of the machine one by one: what each makes of registers, of tiles and of an array's elements.

#![cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(feature = "portable")))]

use ferrax_base::DType;
use ferrax_cpu::machine::handler::{self, Code, Handler, Instr, finish};
use ferrax_cpu::machine::loops::assemble::Assembler;
use ferrax_cpu::machine::loops::families::*;
use ferrax_cpu::machine::table::{self, half_bits, half_value};
use ferrax_cpu::machine::{TILE, leaves_stack, loops, run};
use ferrax_cpu::math::{double, single};
use ferrax_cpu::simd::{Isa, detected, isa};
use ferrax_loops::UnaryOp;
use half::f16;

/// A place of the loop's memory with these bits in every lane, and the bits of one lane.
fn place(lane: Width, bits: u64) -> [u32; 16] {
    std::array::from_fn(|i| if lane == Width::Eight && i % 2 == 1 { (bits >> 32) as u32 } else { bits as u32 })
}

fn bits(lane: Width, place: &[u32]) -> u64 {
    lane.bits(u64::from(place[0]) | u64::from(place[1]) << 32)
}

/// Places of the loop's memory: one for each register before and one for each after, and a third operand.
fn after((isa, lane): (Isa, Width), instr: &Instr, before: [u64; 9]) -> [u64; 8] {
    let mut memory: Vec<u32> = before.iter().flat_map(|&x| place(lane, x)).collect();
    memory.resize(17 * 16, 0);
    let mut asm = Assembler::new(isa, lane, 17 * 64);
    (0..8).for_each(|r| asm.load(r, u32::from(r) * 64));
    asm.code.push(*instr);
    (0..8).for_each(|r| asm.store(r, (9 + u32::from(r)) * 64));
    asm.finish(finish());
    let code = asm.code.as_ptr();
    // SAFETY: the program is finished and touches the 17 places.
    unsafe { loops::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
    std::array::from_fn(|r| {
        let after = &memory[(9 + r) * 16..][..isa.width()];
        let found = bits(lane, after);
        assert_eq!(after, &place(lane, found)[..isa.width()]);
        found
    })
}

fn instr(family: Family, isa: Isa, all: &[u8], imm: u64) -> Instr {
    Instr { code: family.code(isa, registers(all)), imm, p: 0, q: 0, ps: 0, qs: 0 }
}

/// The instruction sets that this machine has, the narrow one first, with the lanes that there are handlers for.
fn sets() -> Vec<(Isa, Width)> {
    let has = |all: &Isa| isa().is_some_and(|isa| all.width() <= isa.width());
    let widths: &[Width] = if WIDE { &[Width::Four, Width::Eight] } else { &[Width::Four] };
    Isa::ALL.iter().copied().rev().take_while(has).flat_map(|isa| widths.iter().map(move |&w| (isa, w))).collect()
}

const ALL: [Two; 24] = [
    Two::Add,
    Two::Sub,
    Two::Mul,
    Two::Div,
    Two::Max,
    Two::Min,
    Two::AddInt,
    Two::SubInt,
    Two::MulInt,
    Two::And,
    Two::Or,
    Two::Xor,
    Two::Eq,
    Two::Ne,
    Two::Lt,
    Two::Le,
    Two::EqInt,
    Two::GtInt,
    Two::MaxInt,
    Two::MinInt,
    Two::ShiftLeft,
    Two::ShiftRight,
    Two::ShiftRightSigned,
    Two::Permute,
];

/// The bits of a number.
fn float(lane: Width, x: f64) -> u64 {
    if lane == Width::Eight { x.to_bits() } else { u64::from((x as f32).to_bits()) }
}

fn expected(lane: Width, op: Two, a: u64, b: u64) -> u64 {
    let wide = lane == Width::Eight;
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let (v, w) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let either = |x: f64, v: f32| if wide { x.to_bits() } else { u64::from(v.to_bits()) };
    match op {
        Two::Add => either(x + y, v + w),
        Two::Sub => either(x - y, v - w),
        Two::Mul => either(x * y, v * w),
        Two::Div => either(x / y, v / w),
        Two::Max => either(double::max(x, y), single::max(v, w)),
        Two::Min => either(double::min(x, y), single::min(v, w)),
        Two::Eq => u64::from(if wide { x == y } else { v == w }),
        Two::Ne => u64::from(if wide { x != y } else { v != w }),
        Two::Lt => u64::from(if wide { x < y } else { v < w }),
        Two::Le => u64::from(if wide { x <= y } else { v <= w }),
        // All lanes are the same.
        Two::Permute => a,
        _ => op.of_numbers(lane, a, b).expect("an operation on integers"),
    }
}

#[test]
fn every_handler_reads_and_writes_its_registers() {
    for (set, op) in sets().into_iter().flat_map(|set| ALL.map(|op| (set, op))) {
        let (isa, lane) = set;
        if !has(isa, op, lane) {
            continue;
        }
        let before: [u64; 9] = std::array::from_fn(|r| float(lane, 1.25 * r as f64 - 3.5));
        let pair = op.pair(lane);
        for index in 0..512usize {
            let [d, a, b] = [index / 64, index / 8 % 8, index % 8];
            let all = [d as u8, a as u8, b as u8];
            let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
            want[d] = expected(lane, op, before[a], before[b]);
            assert_eq!(after(set, &instr(pair.registers, isa, &all, 0), before), want, "{op:?} {all:?} {set:?}");
        }
        for index in 0..64usize {
            let [d, a] = [index / 8, index % 8];
            let all = [d as u8, a as u8];
            let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
            want[d] = expected(lane, op, before[a], before[8]);
            assert_eq!(after(set, &instr(pair.memory, isa, &all, 8 * 64), before), want, "{op:?} {all:?} {set:?}");
            want[d] = expected(lane, op, before[8], before[a]);
            assert_eq!(after(set, &instr(pair.memory_first, isa, &all, 8 * 64), before), want, "{op:?} {all:?}");
        }
    }
}

#[test]
fn extremes_of_zeros_and_of_what_is_no_number() {
    let some = [0.0, -0.0, 1.5, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
    for (set, op) in sets().into_iter().flat_map(|set| [Two::Max, Two::Min].map(|op| (set, op))) {
        for (x, y) in some.into_iter().flat_map(|x| some.map(|y| (float(set.1, x), float(set.1, y)))) {
            let mut before = [x; 9];
            (before[5], before[8]) = (y, y);
            let want = expected(set.1, op, x, y);
            for (family, all) in [(op.pair(set.1).registers, &[3, 4, 5][..]), (op.pair(set.1).memory, &[3, 4])] {
                let after = after(set, &instr(family, set.0, all, 8 * 64), before)[3];
                assert_eq!(after, want, "{op:?} {x:x} {y:x} {set:?}");
            }
        }
    }
}

#[test]
fn choices_and_moves_use_their_registers() {
    let before: [u64; 9] = std::array::from_fn(|r| u64::from(r % 2 == 1));
    for set in sets() {
        let (isa, lane) = set;
        for index in 0..512usize {
            let [d, p, t] = [index / 64, index / 8 % 8, index % 8];
            let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
            if before[p] == 1 {
                want[d] = before[t];
            }
            let all = [d as u8, p as u8, t as u8];
            assert_eq!(after(set, &instr(choose(lane), isa, &all, 0), before), want, "{all:?}");
        }
        for index in 0..64usize {
            let [d, a] = [index / 8, index % 8];
            let before: [u64; 9] = std::array::from_fn(|r| r as u64 + 1);
            let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
            want[d] = before[a];
            let all = [d as u8, a as u8];
            assert_eq!(after(set, &instr(One::Move.family(lane), isa, &all, 0), before), want);
            if converts(isa, lane) {
                want[d] = float(lane, before[a] as f64);
                assert_eq!(after(set, &instr(One::ToFloat.family(lane), isa, &all, 0), before), want);
            }
        }
    }
}

#[test]
fn operations_of_one_operand() {
    for set in sets() {
        let (isa, lane) = set;
        // Numbers whose roots are exact.
        for x in [2.25f64, 6.25, 0.25] {
            let rounded = [(One::Floor, x.floor()), (One::Ceil, x.ceil()), (One::RoundEven, x.round_ties_even())];
            for (op, want) in rounded.into_iter().chain([(One::Sqrt, x.sqrt())]) {
                let after = after(set, &instr(op.family(lane), isa, &[3, 5], 0), [float(lane, x); 9]);
                assert_eq!(after[3], float(lane, want), "{op:?} {x} {set:?}");
            }
        }
    }
}

/// An array of five numbers after an element of it was read or written, and the register that took part.
fn at_index(
    (isa, lane): (Isa, Width),
    family: Family,
    (d, a): (u8, u8),
    index: i64,
    value: u64,
) -> ([u64; 5 + 16], u64) {
    let step = lane.bytes() as u64;
    let mut array: Vec<u8> = (0..5 + 16u64).flat_map(|i| (100 + i).to_le_bytes()[..step as usize].to_vec()).collect();
    // The mask, the window, the index, the value, the register after.
    let mut memory = [[0u32; 16]; 5];
    memory[0][..lane.bytes() / 4].fill(!0);
    let address = array.as_mut_ptr() as u64;
    for (k, word) in [address, 4, step].into_iter().enumerate() {
        (memory[1][2 * k], memory[1][2 * k + 1]) = (word as u32, (word >> 32) as u32);
    }
    (memory[2], memory[3]) = (place(lane, index as u64), place(lane, value));
    let mut asm = Assembler::new(isa, lane, 5 * 64);
    asm.load(d, 3 * 64);
    asm.load(a, 2 * 64);
    asm.code.push(instr(family, isa, &[d, a], 64));
    asm.store(d, 4 * 64);
    asm.finish(finish());
    let code = asm.code.as_ptr();
    // SAFETY: the program is finished and touches the places, and elements of the array as far as a register reaches.
    unsafe { loops::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
    let element = |i: usize| {
        let mut bytes = [0; 8];
        bytes[..step as usize].copy_from_slice(&array[i * step as usize..][..step as usize]);
        u64::from_le_bytes(bytes)
    };
    (std::array::from_fn(element), bits(lane, &memory[4]))
}

#[test]
fn elements_at_an_index() {
    let inside = |index: i64| index.clamp(0, 4) as usize;
    let pairs = (0..64u8).map(|k| (k / 8, k % 8));
    for ((set, pair), index) in sets().into_iter().flat_map(|set| pairs.clone().map(move |p| (set, p))).zip(-7i64..) {
        let (isa, lane) = set;
        for index in [index % 9, 2] {
            for access in [Access::Scalar, Access::Whole, Access::Masked] {
                let (_, got) = at_index(set, fetch(access, lane), pair, index, 7);
                assert_eq!(got, 100 + inside(index) as u64, "{access:?} {pair:?} {index}");
                for checked in [false, true] {
                    let (array, _) = at_index(set, put(access, checked, lane), pair, index, 7);
                    let value = if pair.0 == pair.1 { lane.bits(index as u64) } else { 7 };
                    let left_out = checked && inside(index) as i64 != index;
                    for (i, &x) in array[..5].iter().enumerate() {
                        let lanes = if access == Access::Whole { 4 * isa.width() / lane.bytes() } else { 1 };
                        let hit = (inside(index)..inside(index) + lanes).contains(&i);
                        let want = if hit && !left_out { value } else { 100 + i as u64 };
                        assert_eq!(x, want, "{access:?} {pair:?} {index} {checked}");
                    }
                }
            }
        }
    }
}

#[test]
fn elements_by_their_numbers() {
    for ((isa, lane), (d, a)) in sets().into_iter().flat_map(|set| (0..64u8).map(move |k| (set, (k / 8, k % 8)))) {
        let step = lane.bytes();
        let array: Vec<u8> = (0..40u64).flat_map(|i| (100 + i).to_le_bytes()[..step].to_vec()).collect();
        // The window, the numbers, the register after.
        let mut memory = [[0u32; 16]; 3];
        let address = array.as_ptr() as u64;
        (memory[0][0], memory[0][1]) = (address as u32, (address >> 32) as u32);
        let number = |l: usize| (7 * l + 3) % 40;
        let lanes = 4 * isa.width() / step;
        (0..lanes).for_each(|l| memory[1][l * step / 4] = number(l) as u32);
        let mut asm = Assembler::new(isa, lane, 3 * 64);
        asm.load(a, 64);
        asm.code.push(instr(gather(lane), isa, &[d, a], 0));
        asm.store(d, 2 * 64);
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the places, and elements of the array.
        unsafe { loops::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        for l in 0..lanes {
            assert_eq!(memory[2][l * step / 4], 100 + number(l) as u32, "{isa:?} {lane:?} {d} {a} {l}");
        }
    }
}

#[test]
fn flags_at_an_index() {
    for (set, pair) in sets().into_iter().flat_map(|set| (0..64u8).map(move |k| (set, (k / 8, k % 8)))) {
        // The window steps over as many bytes as a lane has, of which the first is the flag.
        let (_, got) = at_index(set, fetch(Access::Flag, set.1), pair, 3, 7);
        assert_eq!(got, 103, "{pair:?}");
        let (array, _) = at_index(set, put(Access::Flag, false, set.1), pair, 1, 1);
        assert_eq!(array[..3], [100, 1, 102], "{pair:?}");
        let (array, _) = at_index(set, put(Access::Flag, true, set.1), pair, 9, 1);
        assert_eq!(array[..5], [100, 101, 102, 103, 104], "{pair:?}");
    }
}

/// What a handler makes of a tile.
fn tile<T: Copy>(isa: Isa, h: Handler, x: &[T]) -> Vec<T> {
    let (lane, d) = (size_of::<T>(), if size_of::<T>() == 4 { DType::F32 } else { DType::F64 });
    let mut y = x.to_vec();
    let code: Vec<Instr> =
        [table::load(lane, d, false), Some(h), table::store(lane, d, false), Some(handler::finish())]
            .into_iter()
            .flatten()
            .zip([0, 0, 1, 0])
            .map(|(h, p)| Instr { code: isa.code(h), imm: 0, p, q: 0, ps: lane as u16, qs: 0 })
            .collect();
    let places = [x.as_ptr().cast_mut().cast(), y.as_mut_ptr().cast()];
    // SAFETY: the operands hold a tile of the widest instruction set, and the machine has this one.
    unsafe { run(isa, code.as_ptr(), places.as_ptr(), 0, isa.lanes(lane)) };
    y.truncate(isa.lanes(lane));
    y
}

macro_rules! agree {
    ($T:ident, $m:ident, $near:expr, $awkward:expr) => {
        let ops = [
            (UnaryOp::Exp, $m::exp_all::<true, false, 1> as unsafe fn(&[$T; 1], &mut [$T; 1])),
            (UnaryOp::Logistic, $m::logistic_all::<true, false, 1>),
            (UnaryOp::Tanh, $m::tanh_all::<true, false, 1>),
            (UnaryOp::Sin, $m::sin_all::<true, false, 1>),
            (UnaryOp::Cos, $m::cos_all::<true, false, 1>),
        ];
        let (lane, d) = (size_of::<$T>(), if size_of::<$T>() == 4 { DType::F32 } else { DType::F64 });
        let far: Vec<$T> = (0..TILE / lane).map(|i| $awkward[i % $awkward.len()]).collect();
        for scale in [0.01, 1.0, 30.0, $near] {
            let near: Vec<$T> = (0..TILE / lane).map(|i| (i as $T * 0.37).sin() * scale).collect();
            for (op, one) in ops {
                for isa in [Isa::NARROW, isa().unwrap_or(Isa::NARROW)] {
                    for x in [&near, &far] {
                        let h = table::unary(lane, op, d).expect("the machine has the function");
                        for (x, y) in x.iter().zip(tile(isa, h, x)) {
                            let mut want = [0.0];
                            // SAFETY: the function without registers of AVX-512.
                            unsafe { one(&[*x], &mut want) };
                            let same = y.to_bits() == want[0].to_bits() || y.is_nan() && want[0].is_nan();
                            assert!(same, "{isa:?} {op:?}({x:e}) = {y:e}, one by one {:e}", want[0]);
                        }
                    }
                }
            }
        }
    };
}

#[test]
fn functions_leave_the_stack_as_it_was() {
    use UnaryOp::*;
    let Some(widest) = detected() else { return };
    assert_eq!(isa(), Some(widest));
    for isa in [Isa::NARROW, widest] {
        for op in [Exp, Exp2, Expm1, Log, Log1p, Logistic, Tanh, Sin, Cos, Erf, ErfInv, Sqrt, Floor, Tan, Cbrt] {
            for (lane, d) in [(4, DType::F32), (8, DType::F64)] {
                assert!(leaves_stack(isa, &[table::unary(lane, op, d)]), "{isa:?} {op:?} {d}");
            }
        }
    }
}

#[test]
fn tiles_have_the_bits_of_single_numbers() {
    if isa().is_none() {
        return;
    }
    agree!(f32, single, 87.0, [0.0, -0.0, f32::INFINITY, 1e-45, 88.5, -100.0, 2e5, f32::MAX, f32::NAN]);
    agree!(f64, double, 707.0, [0.0, -0.0, f64::INFINITY, 5e-324, 709.5, -740.0, 2e6, f64::MAX, f64::NAN]);
}

#[test]
fn halves_convert_as_the_half_crate_does() {
    for h in 0..=u16::MAX {
        let (ours, theirs) = (half_value(h), f16::from_bits(h).to_f32());
        assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{h:#x}");
    }
    for i in 0..1_000_000u32 {
        let x = f32::from_bits(i.wrapping_mul(429_496_729));
        let (ours, theirs) = (half_bits(x), f16::from_f32(x).to_bits());
        assert!(ours == theirs || x.is_nan() && f16::from_bits(ours).is_nan(), "{x:e}: {ours:#x} {theirs:#x}");
    }
}

/// The sum of 1 and so many times 2, counted in a loop, and how many handlers of it lie alone.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn counted(set: Isa, steps: usize, fused: bool) -> (u32, usize) {
    let mut memory = [[0u32; 16]; 3];
    (memory[1], memory[2]) = ([1.0f32.to_bits(); 16], [2.0f32.to_bits(); 16]);
    let mut asm = Assembler::new(set, Width::Four, 3 * 64);
    asm.load(2, 64);
    let head = asm.code.len();
    asm.push(Two::Add.pair(Width::Four).memory, &[3, 2], 128, 0);
    asm.push(One::Move.family(Width::Four), &[2, 3], 0, 0);
    asm.control(count_back(), &[], 1);
    asm.store(2, 64);
    asm.finish(finish());
    let before: Vec<Code> = asm.code.iter().map(|i| i.code).collect();
    let held = if fused { asm.fuse(&[head]) } else { None };
    assert_eq!(held.is_some(), fused);
    let moved = asm.code.iter().zip(&before).filter(|(now, then)| now.code.0 != then.0).count();
    let code = asm.code.as_ptr();
    // SAFETY: the program is finished and touches the three places.
    unsafe { loops::run(set, code, code.add(head), memory.as_mut_ptr().cast(), 0, steps) };
    (memory[1][0], moved)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn handlers_do_the_same_side_by_side() {
    for &set in Isa::ALL.iter().filter(|set| isa().is_some_and(|isa| set.width() <= isa.width())) {
        for steps in [1, 2, 1000] {
            let want = (1.0 + 2.0 * steps as f32).to_bits();
            assert_eq!(counted(set, steps, false), (want, 0));
            // The step is one run; what comes before and after it is single handlers.
            assert_eq!(counted(set, steps, true), (want, 1));
        }
    }
}
