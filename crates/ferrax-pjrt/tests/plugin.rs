//! The safe layer against a real plugin: `FERRAX_PJRT_PLUGIN=name:path`, `make test-xla`.

mod support;

use ferrax_base::{DType, ErrorKind};
use ferrax_pjrt::safe::CompileOptions;
use support::{add, client, floats, on};

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn a_sum_goes_there_and_comes_back() {
    let client = client();
    let program = client.compile(add(3), &on(&client, 0)).unwrap();
    let x = floats(&client, &[1.0, 2.0, 3.0]);
    let y = floats(&client, &[10.0, 20.0, 30.0]);
    let sum = program.execute(&[&x, &y], &[], None).unwrap();
    assert_eq!((sum[0].dtype(), sum[0].dims(), sum[0].bytes()), (DType::F32, &[3][..], 12));
    assert_eq!(sum[0].to_host().unwrap().typed::<f32>(), [11.0, 22.0, 33.0]);
    sum[0].wait().unwrap();
    assert!(sum[0].ready().unwrap());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn bad_programs_say_where() {
    let client = client();
    let text = "module @bad {\n  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n    %0 = stablehlo.nonsense %x\n    return %0 : tensor<3xf32>\n  }\n}\n";
    let error = client.compile(text, &CompileOptions::on(0)).unwrap_err();
    assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{error}");
    assert!(error.to_string().starts_with("UNKNOWN: -:3:10: error: custom op 'stablehlo.nonsense'"), "{error}");
}
