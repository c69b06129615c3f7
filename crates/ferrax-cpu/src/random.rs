//! The Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use crate::kernel::{In, Kernel, Out, variants};

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

/// Operands k0, k1, x0, x1; the first result at `out`, the second at the address `imm`. Keys are rank 0.
fn one_key() -> Kernel {
    #[inline(always)]
    unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, imm: u64) {
        // SAFETY: the caller passes scalars for the keys, n counts each, and two results of n words.
        unsafe {
            let (k0, k1) = (*(*xs).cast::<u32>(), *(*xs.add(1)).cast::<u32>());
            let x0 = std::slice::from_raw_parts((*xs.add(2)).cast::<u32>(), n);
            let x1 = std::slice::from_raw_parts((*xs.add(3)).cast::<u32>(), n);
            let a = std::slice::from_raw_parts_mut(out.cast::<u32>(), n);
            let b = std::slice::from_raw_parts_mut(imm as usize as *mut u32, n);
            for i in 0..n {
                (a[i], b[i]) = block(k0, k1, x0[i], x1[i]);
            }
        }
    }
    variants!(body)
}

/// `Threefry2x32`. Each operand is rank 0 or has the results' size.
pub fn threefry2x32(ins: &[In<'_>], outs: &mut [Out<'_>]) {
    let n = outs[0].ty.size();
    let same = ins[0].ty.size() == 1 && ins[1].ty.size() == 1 && ins[2].ty.size() == n && ins[3].ty.size() == n;
    if same && n > 0 {
        let xs: [*const u8; 4] = std::array::from_fn(|i| ins[i].ptr);
        // SAFETY: sizes were checked; results do not overlap operands nor each other.
        unsafe { one_key()(xs.as_ptr(), outs[0].ptr, n, outs[1].ptr as usize as u64) };
        return;
    }
    let words: [&[u32]; 4] = std::array::from_fn(|i| ins[i].of::<u32>());
    for i in 0..n {
        let [k0, k1, x0, x1] = words.map(|w| w[if w.len() == 1 { 0 } else { i }]);
        let (a, b) = block(k0, k1, x0, x1);
        outs[0].of::<u32>()[i] = a;
        outs[1].of::<u32>()[i] = b;
    }
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
