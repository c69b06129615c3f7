//! Large products and convolutions on the host, against the CPU engine: by kernels of whole matrices, with operands in any
//! order, sums that are cut into parts, and windows written down or taken place by place.

mod against;

use against::{Array, Case, Near, Report, Rng, compare, dims};
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::PadConfig;
use ferrax_loops::{Builder, ConvDims, DotDims, Kind, Type};

const DTYPES: [(DType, DType); 4] =
    [(DType::BF16, DType::BF16), (DType::F16, DType::F32), (DType::F16, DType::F16), (DType::F32, DType::F32)];

/// Compares the results of a node with two operands of small whole numbers, of which all sums are exact.
fn check(report: &mut Report, rng: &mut Rng, kind: Kind, [x, y]: [&[usize]; 2], d: DType, result: Type) {
    let mut whole = |shape| Array::from_fn(d, shape, |_| Scalar::from_i64(d, rng.below(7) as i64 - 3).convert(d));
    let args = [whole(x), whole(y)];
    let what = format!("{kind:?} of {x:?} and {y:?} to {result:?}");
    report.check(&[Case { what, kind, inputs: vec![0, 1], results: vec![result], near: Near::Zeros }], &args);
}

fn count(report: &Report, what: &str) -> usize {
    report.programs().filter(|p| p.source().contains(what)).count()
}

/// Calls `product` with both operands' rows, and columns, side by side.
fn in_every_order([m, n, k]: [usize; 3], product: &mut dyn FnMut(Kind, &[usize], &[usize], &[usize])) {
    product(dims(&[1], &[0], &[], &[]), &[m, k], &[k, n], &[m, n]);
    product(dims(&[1], &[1], &[], &[]), &[m, k], &[n, k], &[m, n]);
    product(dims(&[0], &[0], &[], &[]), &[k, m], &[k, n], &[m, n]);
    product(dims(&[0], &[1], &[], &[]), &[k, m], &[n, k], &[m, n]);
}

/// Rows or columns side by side, ragged, of several batches between other axes, by large tiles and small ones.
#[test]
fn operands_that_are_matrices() {
    let mut report = Report::default();
    let mut rng = Rng(71);
    for (d, out) in DTYPES {
        let mut product = |kind: Kind, x: &[usize], y: &[usize], result: &[usize]| {
            check(&mut report, &mut rng, kind, [x, y], d, Type::new(out, result));
        };
        for (m, n, k) in [(72, 48, 8), (136, 40, 72), (65, 63, 40)] {
            in_every_order([m, n, k], &mut product);
        }
        // More than 128 large tiles.
        product(dims(&[2], &[1], &[0], &[0]), &[130, 72, 24], &[130, 24, 40], &[130, 72, 40]);
        product(dims(&[1], &[2], &[0], &[0]), &[67, 24, 72], &[67, 136, 24], &[67, 72, 136]);
        // "bqhd,bkhd->bhqk", and what multiplies it.
        product(dims(&[3], &[3], &[0, 2], &[0, 2]), &[2, 33, 3, 16], &[2, 70, 3, 16], &[2, 3, 33, 70]);
        product(dims(&[3], &[1], &[0, 1], &[0, 2]), &[2, 3, 33, 72], &[2, 72, 3, 16], &[2, 3, 33, 16]);
        // Several free and contracted axes that are one.
        product(dims(&[2, 3], &[0, 1], &[], &[]), &[5, 9, 2, 8], &[2, 8, 3, 16], &[5, 9, 3, 16]);
        product(dims(&[2, 3], &[0, 1], &[], &[]), &[33, 40, 2, 8], &[2, 8, 1, 72], &[33, 40, 1, 72]);
    }
    assert_eq!(count(&report, "fx_multiply") + count(&report, "tiles[2][2]"), 47);
    report.finish();
}

#[test]
fn operands_that_are_brought_in_order() {
    let mut report = Report::default();
    let mut rng = Rng(72);
    for (d, out) in DTYPES {
        let mut product = |kind: Kind, x: &[usize], y: &[usize], result: &[usize]| {
            check(&mut report, &mut rng, kind, [x, y], d, Type::new(out, result));
        };
        // Lengths that are no whole pieces.
        product(dims(&[1], &[0], &[], &[]), &[203, 105], &[105, 201], &[203, 201]);
        product(dims(&[0], &[1], &[], &[]), &[105, 203], &[201, 105], &[203, 201]);
        // Contracted axes between free ones, and in another order.
        product(dims(&[1, 3], &[2, 0], &[], &[]), &[13, 8, 16, 13], &[13, 200, 8], &[13, 16, 200]);
        product(dims(&[0, 3], &[2, 1], &[1], &[0]), &[8, 3, 100, 16], &[3, 16, 8, 120], &[3, 100, 120]);
        // Few results of long sums.
        product(dims(&[1], &[0], &[], &[]), &[40, 3000], &[3000, 40], &[40, 40]);
        product(dims(&[0], &[0], &[], &[]), &[2063, 64], &[2063, 72], &[64, 72]);
        product(dims(&[0, 1], &[0, 1], &[2], &[2]), &[70, 60, 3, 40], &[70, 60, 3, 33], &[3, 40, 33]);
    }
    assert_eq!(count(&report, "fx_multiply"), 21);
    report.finish();
}

#[test]
fn convolutions_that_are_products() {
    let mut report = Report::default();
    let mut rng = Rng(73);
    let d = DType::F32;
    for (x, w, strides, dilation) in [
        (&[2, 34, 33, 4][..], &[3, 3, 4, 72][..], &[1, 1][..], &[1, 1][..]),
        (&[4, 40, 40, 5], &[3, 2, 5, 64], &[2, 1], &[1, 2]),
        (&[3, 40, 40, 24], &[1, 1, 24, 40], &[1, 1], &[1, 1]),
        (&[3, 300, 20], &[19, 20, 24], &[1], &[2]),
        (&[2, 12, 12, 12, 9], &[3, 3, 3, 9, 16], &[1, 1, 1], &[1, 1, 1]),
        // A gradient by a window of 3 x 3, and one in steps.
        (&[8, 35, 34, 6], &[33, 32, 6, 40], &[1, 1], &[1, 1]),
        (&[8, 67, 35, 6], &[16, 17, 6, 40], &[2, 1], &[4, 2]),
    ] {
        let spatial = x.len() - 2;
        let mut result = vec![x[0]];
        result.extend((0..spatial).map(|s| (x[s + 1] - (w[s] - 1) * dilation[s] - 1) / strides[s] + 1));
        result.push(w[spatial + 1]);
        let of = ConvDims { strides: strides.into(), rhs_dilation: dilation.into(), groups: 1, tf32: false };
        check(&mut report, &mut rng, Kind::Conv(Box::new(of)), [x, w], d, Type::new(d, &result));
    }
    assert_eq!(count(&report, "for (I q = 0"), 0, "none is computed cell by cell");
    report.finish();
}

#[test]
fn products_in_tf32() {
    let mut report = Report::default();
    let mut rng = Rng(74);
    let tf32 = |kind: Kind| match kind {
        Kind::Dot(dims) => Kind::Dot(Box::new(DotDims { tf32: true, ..*dims })),
        other => other,
    };
    let d = DType::F32;
    let mut product = |kind: Kind, x: &[usize], y: &[usize], result: &[usize]| {
        check(&mut report, &mut rng, tf32(kind), [x, y], d, Type::new(d, result));
    };
    for (m, n, k) in [(72, 48, 8), (136, 40, 72), (64, 64, 44)] {
        in_every_order([m, n, k], &mut product);
    }
    product(dims(&[2], &[1], &[0], &[0]), &[130, 72, 24], &[130, 24, 40], &[130, 72, 40]);
    product(dims(&[1], &[2], &[0], &[0]), &[67, 24, 72], &[67, 136, 24], &[67, 72, 136]);
    product(dims(&[3], &[3], &[0, 2], &[0, 2]), &[2, 33, 3, 16], &[2, 70, 3, 16], &[2, 3, 33, 70]);
    assert_eq!(count(&report, "fx_multiply_tf32"), 15);
    report.finish();
}

/// Shapes of images and windows, with the window's steps and the distances of its cells.
type Convolved = (&'static [usize], &'static [usize], &'static [usize], &'static [usize]);

const CONVOLVED: [Convolved; 5] = [
    (&[2, 34, 33, 8], &[3, 3, 8, 72], &[1, 1], &[1, 1]),
    (&[4, 40, 40, 16], &[3, 2, 16, 64], &[2, 1], &[1, 2]),
    (&[3, 40, 40, 24], &[1, 1, 24, 40], &[1, 1], &[1, 1]),
    (&[3, 300, 24], &[19, 24, 24], &[1], &[2]),
    (&[2, 14, 15, 14, 8], &[3, 3, 3, 8, 16], &[1, 2, 1], &[1, 1, 1]),
];

/// The shape of a convolution's result.
fn convolved((x, w, strides, dilation): Convolved) -> Vec<usize> {
    let spatial = x.len() - 2;
    let places = (0..spatial).map(|s| (x[s + 1] - (w[s] - 1) * dilation[s] - 1) / strides[s] + 1);
    std::iter::once(x[0]).chain(places).chain([w[spatial + 1]]).collect()
}

#[test]
fn convolutions_on_matrix_units() {
    let mut report = Report::default();
    let mut rng = Rng(75);
    for case in CONVOLVED {
        let (x, w, strides, dilation) = case;
        let of = ConvDims { strides: strides.into(), rhs_dilation: dilation.into(), groups: 1, tf32: true };
        let result = Type::new(DType::F32, &convolved(case));
        check(&mut report, &mut rng, Kind::Conv(Box::new(of)), [x, w], DType::F32, result);
    }
    assert_eq!(count(&report, "fx_multiply_tf32"), CONVOLVED.len());
    report.finish();
}

/// Numbers of 16 bits that are widened, then padded and turned, then convolved, as graphs have them.
#[test]
fn convolutions_of_what_was_widened() {
    let mut report = Report::default();
    let mut rng = Rng(76);
    for (d, out) in [(DType::BF16, DType::BF16), (DType::F16, DType::F16), (DType::BF16, DType::F32)] {
        for (x, w, strides, dilation) in CONVOLVED {
            let mut whole =
                |shape| Array::from_fn(d, shape, |_| Scalar::from_i64(d, rng.below(7) as i64 - 3).convert(d));
            let spatial = x.len() - 2;
            // features come first in the window, and the image has borders of zeros
            let turned: Vec<usize> = (0..w.len()).map(|a| w[(a + spatial) % w.len()]).collect();
            let args = [whole(x), whole(&turned)];
            let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
            let [image, window] = [0, 1].map(|i| b.params().nth(i).unwrap());
            let (image, window) = (b.convert(image, DType::F32), b.convert(window, DType::F32));
            let border = |a: usize| {
                let inside = (1..=spatial).contains(&a);
                PadConfig { low: i64::from(inside), high: i64::from(inside) * 2, interior: 0 }
            };
            let mut padded = x.to_vec();
            padded[1..=spatial].iter_mut().for_each(|n| *n += 3);
            let zero = b.scalar(Scalar::zero(DType::F32));
            let config = (0..x.len()).map(border).collect();
            let image = b.push(Kind::Pad(config), &[image, zero], Type::new(DType::F32, &padded));
            let perm = (0..w.len()).map(|a| (a + 2) % w.len()).collect();
            let window = b.push(Kind::Transpose(perm), &[window], Type::new(DType::F32, w));
            let padded: &'static [usize] = padded.leak();
            let result = Type::new(DType::F32, &convolved((padded, w, strides, dilation)));
            let of = ConvDims { strides: strides.into(), rhs_dilation: dilation.into(), groups: 1, tf32: true };
            let y = b.push(Kind::Conv(Box::new(of)), &[image, window], result);
            let y = b.convert(y, out);
            let what = format!("{d} {x:?} with {w:?} to {out}");
            compare(&mut report, &what, b.finish(&[y]), &args.iter().collect::<Vec<_>>(), Near::Zeros);
        }
    }
    let narrow = count(&report, "fx_multiply_bf16") + count(&report, "fx_multiply_f16");
    assert_eq!(narrow, 3 * CONVOLVED.len());
    report.finish();
}
