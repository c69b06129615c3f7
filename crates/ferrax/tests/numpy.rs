//! Reductions, shapes, joins, products and new arrays of `ferrax::numpy`: one result on values, under jit and row by row
//! under vmap, with the dtypes and errors of `jax.numpy`.

use ferrax::executable::materialize;
use ferrax::function::{Data, jit, vmap};
use ferrax::{Aval, DType, ErrorKind, Result, Value, numpy};

/// Type and bytes of a value.
fn bits(v: &Value) -> (Aval, Vec<u8>) {
    let array = materialize(v.clone()).unwrap();
    let bytes = array.pin().unwrap().bytes().to_vec();
    (array.aval().clone(), bytes)
}

/// The numbers 0, 1, … in a shape, as another dtype.
fn counted(shape: &[usize], dtype: DType) -> Value {
    ferrax::init();
    let numbers: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
    numpy::astype(&Value::array(&numbers, shape).unwrap(), dtype).unwrap()
}

/// What a function of one array gives on values, after it gave the same under jit and for each row under vmap.
fn everywhere(x: &Value, f: impl Fn(&Value) -> Result<Value>) -> Value {
    let out = f(x).unwrap();
    let listed = |v: &[Value]| Ok(vec![f(&v[0])?]);
    assert_eq!(bits(&jit("f", listed).call(std::slice::from_ref(x)).unwrap()[0]), bits(&out));
    let rows = numpy::stack(&[x, x], 0).unwrap();
    let mapped = vmap(listed, vec![Some(0)])(&[rows]).unwrap();
    assert_eq!(bits(&mapped[0]), bits(&numpy::stack(&[&out, &out], 0).unwrap()));
    out
}

/// The text of an error of this kind.
fn refused(out: Result<Value>, kind: fn(&ErrorKind) -> bool) -> String {
    let error = out.expect_err("an error");
    assert!(kind(&error.0), "another kind of error: {error}");
    error.to_string()
}

fn value_error(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Value(_))
}

fn type_error(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Type(_))
}

#[test]
fn reductions_have_jax_numpys_dtypes_and_shapes() {
    type Reduction = fn(&Value, Option<&[i64]>, bool) -> Result<Value>;
    let cases: [(Reduction, DType, DType, f64); 11] = [
        (numpy::sum, DType::F32, DType::F32, 15.0),
        (numpy::sum, DType::F16, DType::F16, 15.0),
        (numpy::sum, DType::I8, DType::I32, 15.0),
        (numpy::sum, DType::U8, DType::U32, 15.0),
        (numpy::sum, DType::Bool, DType::I32, 5.0),
        (numpy::prod, DType::BF16, DType::BF16, 0.0),
        (numpy::mean, DType::I32, DType::F32, 2.5),
        (numpy::mean, DType::F16, DType::F16, 2.5),
        (numpy::max, DType::I16, DType::I16, 5.0),
        (numpy::min, DType::Bool, DType::Bool, 0.0),
        (numpy::any, DType::C64, DType::Bool, 1.0),
    ];
    for (f, from, to, all) in cases {
        let x = counted(&[2, 3], from);
        let out = everywhere(&x, |x| f(x, None, false));
        assert_eq!((out.dtype(), out.shape(), out.weak()), (to, [].as_slice(), false), "of {from}");
        assert_eq!(out.to_f64().unwrap(), all, "of {from}");
        for (axes, keepdims, shape) in [
            ([0].as_slice(), false, [3].as_slice()),
            (&[-1], true, &[2, 1]),
            (&[1, 0], true, &[1, 1]),
            (&[], false, &[2, 3]),
        ] {
            assert_eq!(everywhere(&x, |x| f(x, Some(axes), keepdims)).shape(), shape);
        }
    }
}

#[test]
fn weakly_typed_operands_give_strongly_typed_results() {
    ferrax::init();
    let two = Value::from(2);
    for f in [numpy::sum, numpy::prod, numpy::mean, numpy::max, numpy::min] {
        let out = f(&two, None, false).unwrap();
        assert!(!out.weak());
        assert_eq!(out.to_f64().unwrap(), 2.0);
    }
}

#[test]
fn narrow_floats_are_accumulated_wide() {
    ferrax::init();
    let x = numpy::full(&[4096], &Value::from(0.1), Some(DType::F16)).unwrap();
    let out = everywhere(&x, |x| numpy::sum(x, None, false)).to_f64().unwrap();
    assert!((out - 409.5).abs() < 0.5, "{out}");
}

#[test]
fn nan_wins_in_extremes_and_places() {
    ferrax::init();
    let x = Value::vector(&[1.0, f32::NAN, 3.0]).unwrap();
    assert!(everywhere(&x, |x| numpy::max(x, None, false)).to_f64().unwrap().is_nan());
    assert_eq!(everywhere(&x, |x| numpy::argmin(x, Some(-1), false)).to_f64().unwrap(), 1.0);
    let m = counted(&[2, 3], DType::Bool);
    assert_eq!(everywhere(&m, |x| numpy::argmax(x, None, false)).to_f64().unwrap(), 1.0);
    assert_eq!(everywhere(&m, |x| numpy::argmax(x, None, true)).shape(), [1, 1]);
    assert_eq!(everywhere(&m, |x| numpy::argmax(x, Some(0), true)).to_vec().unwrap(), [1.0, 0.0, 0.0]);
}

#[test]
fn reductions_refuse_axes_that_are_not_there_and_nothing_to_choose_from() {
    let x = counted(&[0, 3], DType::F32);
    let text = refused(numpy::sum(&x, Some(&[2]), false), value_error);
    assert_eq!(text, "axis 2 is out of bounds for array of dimension 2");
    let text = refused(numpy::sum(&x, Some(&[1, -1]), false), value_error);
    assert_eq!(text, "duplicate value in 'axis': (1, -1) for an array of dimension 2");
    let text = refused(numpy::max(&x, None, false), value_error);
    assert_eq!(text, "zero-size array to reduction operation max which has no identity");
    let text = refused(numpy::argmin(&x, Some(0), false), value_error);
    assert_eq!(text, "attempt to get argmin of an empty sequence");
    assert_eq!(numpy::sum(&x, None, false).unwrap().to_f64().unwrap(), 0.0);
    assert!(numpy::mean(&x, None, false).unwrap().to_f64().unwrap().is_nan());
}

#[test]
fn shapes_change_and_elements_do_not() {
    let x = counted(&[2, 3, 1], DType::I32);
    for (given, shape) in [([6].as_slice(), [6].as_slice()), (&[3, -1], &[3, 2]), (&[-1, 1, 6], &[1, 1, 6])] {
        let out = everywhere(&x, |x| numpy::reshape(x, given));
        assert_eq!((out.shape(), bits(&out).1), (shape, bits(&x).1));
    }
    assert_eq!(everywhere(&x, numpy::ravel).shape(), [6]);
    assert_eq!(everywhere(&x, |x| numpy::squeeze(x, None)).shape(), [2, 3]);
    assert_eq!(everywhere(&x, |x| numpy::squeeze(x, Some(&[-1]))).shape(), [2, 3]);
    assert_eq!(everywhere(&x, |x| numpy::expand_dims(x, &[0, -1])).shape(), [1, 2, 3, 1, 1]);
    let turned = everywhere(&x, |x| numpy::transpose(x, Some(&[1, 0, -1])));
    assert_eq!((turned.shape(), turned.to_vec().unwrap()), ([3, 2, 1].as_slice(), vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    assert_eq!(everywhere(&x, |x| numpy::transpose(x, None)).shape(), [1, 3, 2]);
    assert_eq!(everywhere(&x, numpy::matrix_transpose).shape(), [2, 1, 3]);
    let wide = everywhere(&x, |x| numpy::broadcast_to(x, &[2, 2, 3, 2]));
    let first = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0];
    assert_eq!(wide.to_vec().unwrap(), [first, first].concat());
    let none = counted(&[0, 3], DType::F32);
    assert_eq!(everywhere(&none, |x| numpy::reshape(x, &[3, -1])).shape(), [3, 0]);
    assert_eq!(everywhere(&none, |x| numpy::reshape(x, &[0, -1])).shape(), [0, 0]);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let x = counted(&[2, 3], DType::F32);
    let reshaped = |shape: &[i64]| refused(numpy::reshape(&x, shape), type_error);
    assert_eq!(reshaped(&[4]), "cannot reshape array of shape (2, 3) (size 6) into shape (4,) (size 4)");
    assert_eq!(
        reshaped(&[-1, 4]),
        "cannot reshape array of shape (2, 3) (size 6) into shape (-1, 4) because the product of specified axis sizes (4) does not evenly divide 6"
    );
    assert_eq!(
        reshaped(&[-1, 0]),
        "cannot reshape array of shape (2, 3) (size 6) into shape (-1, 0) because the product of specified axis sizes (0) does not evenly divide 6"
    );
    assert_eq!(reshaped(&[-1, -1]), "can only specify one unknown axis size with a `-1` value, got (-1, -1)");
    assert_eq!(reshaped(&[-2, -3]), "reshape new_sizes must all be positive, got (-2, -3).");
    assert_eq!(reshaped(&[i64::MAX, i64::MAX, i64::MAX]).matches("(size").count(), 2);
    let text = refused(numpy::transpose(&x, Some(&[0, 0])), type_error);
    assert!(
        text.starts_with("transpose permutation isn't a permutation of operand dimensions, got permutation (0, 0)")
    );
    let text = refused(numpy::squeeze(&x, Some(&[0])), value_error);
    assert!(text.starts_with("cannot select an axis to squeeze out which has size not equal to one"), "{text}");
    let text = refused(numpy::expand_dims(&x, &[0, 0]), value_error);
    assert_eq!(text, "repeated axis in expand_dims: (0, 0)");
    let text = refused(numpy::broadcast_to(&x, &[4]), value_error);
    assert_eq!(text, "Cannot broadcast to shape with fewer dimensions: arr_shape=(2, 3) shape=(4,)");
    let text = refused(numpy::broadcast_to(&x, &[2, 4]), value_error);
    assert!(text.starts_with("Incompatible types for broadcasting: input type=float32[2,3] and requested"), "{text}");
    let text = refused(numpy::matrix_transpose(&Value::vector(&[1.0]).unwrap()), value_error);
    assert_eq!(text, "x must be at least two-dimensional for matrix_transpose; got ndim=1");
}

#[test]
fn joined_arrays_get_their_common_dtype() {
    let (x, y) = (counted(&[2, 3], DType::I32), counted(&[1, 3], DType::F32));
    let out = everywhere(&x, |x| numpy::concatenate(&[x, &y], -2));
    assert_eq!((out.dtype(), out.to_vec().unwrap()), (DType::F32, vec![0., 1., 2., 3., 4., 5., 0., 1., 2.]));
    let out = everywhere(&x, |x| numpy::concatenate(&[x, x], 1));
    assert_eq!((out.dtype(), out.shape()), (DType::I32, [2, 6].as_slice()));
    let out = everywhere(&x, |x| numpy::stack(&[x, x], -1));
    assert_eq!((out.shape(), &out.to_vec().unwrap()[..4]), ([2, 3, 2].as_slice(), [0., 0., 1., 1.].as_slice()));
    let weak = numpy::stack(&[Value::from(1.0), Value::from(2.0)], 0).unwrap();
    assert!(weak.weak());
    let one: &[Value] = &[];
    assert_eq!(refused(numpy::concatenate(one, 0), value_error), "Need at least one array to concatenate.");
    assert_eq!(refused(numpy::stack(one, 0), value_error), "Need at least one array to stack.");
    let text = refused(numpy::concatenate(&[Value::from(1.0)], 0), value_error);
    assert_eq!(text, "Zero-dimensional arrays cannot be concatenated.");
    let text = refused(numpy::stack(&[x.clone(), y.clone()], 0), value_error);
    assert_eq!(text, "All input arrays must have the same shape. Got (2, 3), (1, 3) in stack.");
    assert!(refused(numpy::concatenate(&[&x, &counted(&[2, 4], DType::I32)], 0), type_error).contains("(2, 4)"));
}

#[test]
fn products_contract_the_axes_of_matmul_and_dot() {
    let (m, v) = (counted(&[2, 3], DType::F32), counted(&[3], DType::F32));
    let (integers, batch) = (counted(&[3, 2], DType::I32), counted(&[4, 3, 2], DType::F32));
    for f in [numpy::matmul, numpy::dot] {
        assert_eq!(everywhere(&m, |m| f(m, &v)).to_vec().unwrap(), [5.0, 14.0]);
        assert_eq!(everywhere(&v, |v| f(v, v)).to_f64().unwrap(), 5.0);
        let mixed = everywhere(&m, |m| f(m, &integers));
        assert_eq!((mixed.dtype(), mixed.to_vec().unwrap()), (DType::F32, vec![10.0, 13.0, 28.0, 40.0]));
    }
    assert_eq!(everywhere(&m, |m| numpy::matmul(m, &batch)).shape(), [4, 2, 2]);
    assert_eq!(everywhere(&m, |m| numpy::dot(m, &batch)).shape(), [2, 4, 2]);
    assert_eq!(everywhere(&v, |v| numpy::dot(v, &Value::from(2))).to_vec().unwrap(), [0.0, 2.0, 4.0]);
    assert!(refused(numpy::matmul(&v, &Value::from(2)), value_error).starts_with("matmul input operands"));
    assert!(refused(numpy::matmul(&m, &m), type_error).contains("(2, 3) and (2, 3)"));
    assert!(refused(numpy::dot(&m, &m), type_error).contains("(2, 3) and (2, 3)"));
}

#[test]
fn new_arrays_are_the_same_when_staged() {
    ferrax::init();
    let staged = |f: &dyn Fn() -> Result<Value>| {
        let out = f().unwrap();
        let jitted = jit("f", |_: &[Value]| Ok(vec![f()?])).call(&[]).unwrap();
        assert_eq!(bits(&jitted[0]), bits(&out));
        out
    };
    assert_eq!(staged(&|| numpy::zeros(&[2, 2], DType::C64)).to_vec().unwrap(), [0.0; 4]);
    assert_eq!(staged(&|| numpy::ones(&[2], DType::Bool)).to_vec().unwrap(), [1.0; 2]);
    let seven = staged(&|| numpy::full(&[2], &Value::from(7), None));
    assert!(seven.weak());
    assert_eq!(staged(&|| numpy::arange(0.0, 4.0, 1.0, DType::I32)).to_vec().unwrap(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(staged(&|| numpy::arange(5.0, 0.0, -2.0, DType::I8)).to_vec().unwrap(), [5.0, 3.0, 1.0]);
    assert_eq!(staged(&|| numpy::arange(0.0, 1.0, 0.25, DType::F32)).to_vec().unwrap(), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(staged(&|| numpy::arange(3.0, 1.0, 1.0, DType::F32)).shape(), [0]);
    assert_eq!(staged(&|| numpy::eye(2, 3, -1, DType::I32)).to_vec().unwrap(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert!(refused(numpy::arange(0.0, 1.0, 0.0, DType::F32), value_error).contains("step other than 0"));
}
