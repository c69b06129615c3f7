//! The Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use crate::elementwise::kernel::{In, Out};
use crate::pool;

/// Key injected after every four rounds: the third word is the parity.
const PARITY: u32 = 0x1bd1_1bda;
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

/// Encrypts one block.
#[inline(always)]
pub fn block(k0: u32, k1: u32, x0: u32, x1: u32) -> (u32, u32) {
    let keys = [k0, k1, k0 ^ k1 ^ PARITY];
    let (mut a, mut b) = (x0.wrapping_add(k0), x1.wrapping_add(k1));
    let mut i = 0;
    while i < 5 {
        let rotations = ROTATIONS[i % 2];
        let mut j = 0;
        while j < 4 {
            a = a.wrapping_add(b);
            b = b.rotate_left(rotations[j]) ^ a;
            j += 1;
        }
        a = a.wrapping_add(keys[(i + 1) % 3]);
        b = b.wrapping_add(keys[(i + 2) % 3]).wrapping_add(i as u32 + 1);
        i += 1;
    }
    (a, b)
}

/// Operands and results of many blocks: the words of a key, those of a block; each is one for all, or one for each.
struct Blocks {
    operands: [(*const u32, bool); 4],
    results: [*mut u32; 2],
}
// SAFETY: threads read the operands and write disjoint parts of the results.
unsafe impl Sync for Blocks {}

impl Blocks {
    #[inline(always)]
    unsafe fn body(&self, from: usize, n: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            for start in (from..from + n).step_by(TILE) {
                let count = TILE.min(from + n - start);
                let (mut x, mut y) = ([[0; TILE]; 4], [[0; TILE]; 2]);
                for (x, operand) in x.iter_mut().zip(self.operands) {
                    if operand.1 {
                        x.as_mut_ptr().copy_from_nonoverlapping(operand.0.add(start), count);
                    } else {
                        *x = [*operand.0; TILE];
                    }
                }
                for i in 0..if count > FEW { TILE } else { count } {
                    (y[0][i], y[1][i]) = block(x[0][i], x[1][i], x[2][i], x[3][i]);
                }
                for (y, result) in y.iter().zip(self.results) {
                    result.add(start).copy_from_nonoverlapping(y.as_ptr(), count);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn wide(&self, from: usize, n: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.body(from, n) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn half(&self, from: usize, n: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.body(from, n) }
    }

    /// # Safety
    /// Operands and results must have words `from..from + n`.
    unsafe fn run(&self, from: usize, n: usize) {
        // SAFETY: the caller's contract; the machine has the instruction set.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match crate::simd::isa() {
                Some(crate::simd::Isa::Avx512) => return self.wide(from, n),
                Some(crate::simd::Isa::Avx2) => return self.half(from, n),
                None => {}
            }
            self.body(from, n);
        }
    }
}

/// Blocks that a thread takes.
const TAKEN: usize = 8192;
/// Blocks that are made at once, in vectors, but for so few.
const TILE: usize = 64;
const FEW: usize = 4;

/// `Threefry2x32`. Each operand is rank 0 or has the results' size.
pub fn threefry2x32(ins: &[In<'_>], outs: &mut [Out<'_>]) {
    let n = outs[0].ty.size();
    let operands = std::array::from_fn(|i| (ins[i].ptr.cast::<u32>(), ins[i].ty.size() != 1));
    let blocks = Blocks { operands, results: [outs[0].ptr.cast(), outs[1].ptr.cast()] };
    pool::share(n as u64, n.div_ceil(TAKEN), &|_, task| {
        let from = task * TAKEN;
        // SAFETY: operands are of the results' size or one word; results do not overlap operands nor each other.
        unsafe { blocks.run(from, TAKEN.min(n - from)) };
    });
}

#[cfg(test)]
mod tests {
    use super::block;

    /// Known answers of Random123.
    #[test]
    fn known_answers() {
        assert_eq!(block(0, 0, 0, 0), (0x6b20_0159, 0x99ba_4efe));
        assert_eq!(block(!0, !0, !0, !0), (0x1cb9_96fc, 0xbb00_2be7));
        assert_eq!(block(0x1319_8a2e, 0x0370_7344, 0x243f_6a88, 0x85a3_08d3), (0xc492_3a9c, 0x483d_f7a0));
    }
}
