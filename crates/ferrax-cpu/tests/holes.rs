//! Convolutions of arrays with holes, by phases: the numbers of the convolution of all zeros and elements.

mod common;

use common::{Rng, cases};
use ferrax_base::{Arg, Buffer, DType};
use ferrax_cpu::Program;
use ferrax_loops::{Builder, ConvDims, Graph, Kind, PadConfig, Type};
use proptest::prelude::*;
use std::sync::Arc;

/// A convolution of an array that is padded; `None` where no window lies inside.
fn convolution(x: &[usize], kernel: &[usize], config: &[PadConfig], groups: usize) -> Option<Graph> {
    let mut b = Builder::new([x, kernel].map(|s| Type::new(DType::F32, s)));
    let params: Vec<_> = b.params().collect();
    let padded: Vec<usize> = (x.iter().zip(config))
        .map(|(&n, c)| (n as i64 + (n as i64 - 1) * c.interior as i64 + c.low + c.high).max(0) as usize)
        .collect();
    let mut out = padded.clone();
    for k in 0..kernel.len() - 2 {
        out[k + 1] = (padded[k + 1] + 1).checked_sub(kernel[k]).filter(|&n| n > 0)?;
    }
    out[kernel.len() - 1] = kernel[kernel.len() - 1];
    let zero = b.float(DType::F32, 0.0);
    let around = b.push(Kind::Pad(config.into()), &[params[0], zero], Type::new(DType::F32, &padded));
    let one = vec![1; kernel.len() - 2];
    let dims = ConvDims { strides: one.as_slice().into(), rhs_dilation: one.as_slice().into(), groups, tf32: false };
    let y = b.push(Kind::Conv(Box::new(dims)), &[around, params[1]], Type::new(DType::F32, &out));
    Some(b.finish(&[y]))
}

fn check(rng: &mut Rng, g: Graph) {
    let g = Arc::new(g);
    // Sums of whole numbers are exact in any order.
    let args: Vec<Buffer> = (g.param_types().iter())
        .map(|t| Buffer::from_slice(&(0..t.size()).map(|_| rng.below(9) as f32 - 4.0).collect::<Vec<f32>>()).unwrap())
        .collect();
    let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
    let got = run(Program::compile(g.clone()).unwrap());
    let want = run(Program::compile_plain(g.clone()).unwrap());
    let numbers = |b: &Buffer| b.bytes().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
    let (got, want): (Vec<f32>, Vec<f32>) = (numbers(&got[0]), numbers(&want[0]));
    assert_eq!(got, want, "{:?}", g.nodes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    /// Strides, kernels and paddings of any sizes, those that cut elements off too, along one to three axes.
    #[test]
    fn phases_give_the_same_numbers(seed: u64, rank in 1usize..4, features in 8usize..33) {
        let rng = &mut Rng(seed);
        let groups = [1, 1, 2][rng.below(3)];
        let (mut x, mut kernel, mut config) = (vec![1 + rng.below(3)], Vec::new(), vec![PadConfig::default()]);
        for _ in 0..rank {
            x.push(2 + rng.below(if rank == 3 { 6 } else { 20 }));
            kernel.push(1 + rng.below(5));
            let (low, high) = (rng.below(8) as i64 - 2, rng.below(8) as i64 - 2);
            config.push(PadConfig { low, high, interior: rng.below(4) });
        }
        x.push(features * groups);
        kernel.extend([features, 16 * groups]);
        config.push(PadConfig::default());
        if let Some(g) = convolution(&x, &kernel, &config, groups) {
            check(rng, g);
        }
    }
}

/// No convolution is left that multiplies with holes.
#[test]
fn holes_are_left_out() {
    let around = PadConfig { low: 2, high: 1, interior: 1 };
    let config = [PadConfig::default(), around, around, PadConfig::default()];
    let g = convolution(&[4, 16, 16, 32], &[3, 3, 32, 16], &config, 1).unwrap();
    let text = Program::compile(Arc::new(g)).unwrap().kernels();
    assert_eq!(text.matches("Conv(").count(), 4, "{text}");
    assert!(!text.contains("interior: 1"), "{text}");
}
