//! What tests with a plugin have in common.
#![allow(dead_code, reason = "every test binary uses a part")]

use ferrax_base::DType;
use ferrax_pjrt::safe::{Buffer, Client, CompileOptions, Executable, OptionValue, Plugin, Results};
use std::path::Path;
use std::sync::Arc;

/// The plugin that the environment names.
pub fn plugin() -> Arc<Plugin> {
    let named = std::env::var("FERRAX_PJRT_PLUGIN").expect("FERRAX_PJRT_PLUGIN=name:path");
    let (name, path) = named.split_once(':').expect("name:path");
    Plugin::load(name, Path::new(path)).expect("a plugin that loads")
}

/// A client with one device.
pub fn client() -> Arc<Client> {
    Client::new(&plugin(), &[]).expect("a client")
}

/// A client with several devices.
pub fn devices(count: i64) -> Arc<Client> {
    Client::new(&plugin(), &[("cpu_device_count".to_owned(), OptionValue::Int(count))]).expect("a client")
}

/// Options for one device, by its place.
pub fn on(client: &Client, device: usize) -> CompileOptions {
    CompileOptions::on(client.device_id(device).expect("a device"))
}

/// A program that adds two vectors.
pub fn add(n: usize) -> String {
    let t = format!("tensor<{n}xf32>");
    format!("func.func @main(%x: {t}, %y: {t}) -> {t} {{\n  %0 = stablehlo.add %x, %y : {t}\n  return %0 : {t}\n}}\n")
}

/// A vector on the first device.
pub fn floats(client: &Arc<Client>, values: &[f32]) -> Buffer {
    client.upload(bytes(values), DType::F32, &[values.len()], 0).expect("an upload")
}

/// The bytes of numbers.
pub fn bytes<T: Copy>(values: &[T]) -> &[u8] {
    // SAFETY: tests pass plain numbers.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Adds one to a donated vector.
pub fn increment(n: usize) -> String {
    let t = format!("tensor<{n}xf32>");
    format!(
        "func.func @main(%x: {t} {{tf.aliasing_output = 0 : i32}}) -> {t} {{\n\
         %1 = stablehlo.constant dense<1.0> : {t}\n  %2 = stablehlo.add %x, %1 : {t}\n  return %2 : {t}\n}}\n"
    )
}

/// A program for the first device.
pub fn compiled(client: &Arc<Client>, text: impl AsRef<[u8]>) -> Executable {
    client.compile(text, &on(client, 0)).expect("a program that compiles")
}

/// The elements of the only result.
pub fn only(results: &Results) -> Vec<f32> {
    assert_eq!(results.len(), 1);
    results[0].to_host().expect("a result").typed().to_vec()
}
