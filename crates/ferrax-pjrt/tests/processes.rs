//! Clients of several processes, which find each other by a store of keys: `make test-xla`. Here both are in one process.

mod support;

use ferrax_base::{DType, Result, error};
use ferrax_pjrt::safe::{Client, CompileOptions, OptionValue, Store};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use support::{bytes, only, plugin};

/// A store of this process; with a text, every request is an error.
#[derive(Default)]
struct Table {
    keys: Mutex<HashMap<String, Vec<u8>>>,
    changed: Condvar,
    failed: Mutex<Option<String>>,
}

impl Table {
    fn require_alive(&self) -> Result<()> {
        match &*self.failed.lock().unwrap() {
            Some(text) => Err(error!(Runtime, "{text}")),
            None => Ok(()),
        }
    }
}

impl Store for Table {
    fn get(&self, key: &str, patience: Duration) -> Result<Vec<u8>> {
        self.require_alive()?;
        let missing = |keys: &mut HashMap<String, Vec<u8>>| !keys.contains_key(key);
        let (keys, _) = self.changed.wait_timeout_while(self.keys.lock().unwrap(), patience, missing).unwrap();
        keys.get(key).cloned().ok_or_else(|| error!(Runtime, "DEADLINE_EXCEEDED: no {key}"))
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.require_alive()?;
        Ok(self.keys.lock().unwrap().get(key).cloned())
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.require_alive()?;
        self.keys.lock().unwrap().insert(key.to_owned(), value.to_owned());
        self.changed.notify_all();
        Ok(())
    }
}

/// The client of a process of two, with two devices.
fn client(process: i64, store: &Arc<Table>) -> Arc<Client> {
    let options = [("cpu_device_count", 2), ("node_id", process), ("num_nodes", 2)];
    let options = options.map(|(name, value)| (name.to_owned(), OptionValue::Int(value)));
    Client::among(&plugin(), &options, Some(store.clone())).expect("a client")
}

/// Sums over four devices.
const SUM: &str = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n\
    %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({\n\
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n  %s = stablehlo.add %a, %b : tensor<f32>\n\
    stablehlo.return %s : tensor<f32>\n}) : (tensor<2xf32>) -> tensor<2xf32>\n\
    return %0 : tensor<2xf32>\n}\n";

/// What a process's devices get of a sum, or its error.
fn summed(process: i64, store: &Arc<Table>) -> Result<Vec<Vec<f32>>> {
    let client = client(process, store);
    let ids: Vec<i32> = (0..4).map(|d| client.known_device(d).unwrap().0).collect();
    let mut all = ids.clone();
    all.sort_unstable();
    let program = client.compile(SUM, &CompileOptions::replicated(&all))?;
    let args: Vec<_> =
        (0..2).map(|d| client.upload(bytes(&[1.0f32, ids[d] as f32]), DType::F32, &[2], d)).collect::<Result<_>>()?;
    let results = program.execute_all(&[&[&args[0]], &[&args[1]]], &[])?;
    for result in &results {
        result[0].wait()?;
    }
    Ok(results.iter().map(only).collect())
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn clients_know_the_devices_of_all_processes() {
    let store = Arc::new(Table::default());
    let (first, second) = (client(0, &store), client(1, &store));
    let known = |client: &Client| (0..4).map(|d| client.known_device(d).unwrap()).collect::<Vec<_>>();
    assert_eq!(known(&first), [(0, 0), (1, 0), (2048, 1), (2049, 1)]);
    assert_eq!(known(&second), [(2048, 1), (2049, 1), (0, 0), (1, 0)]);
    assert_eq!((first.addressable_devices(), first.known_devices(), first.devices().unwrap().len()), (2, 4, 4));
    assert_eq!((first.process_index().unwrap(), second.process_index().unwrap()), (0, 1));
    assert!(second.known_device(4).is_err() && second.device(2).is_err());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn programs_sum_over_the_devices_of_all_processes() {
    let store = Arc::new(Table::default());
    let other = std::thread::spawn({
        let store = store.clone();
        move || summed(1, &store).unwrap()
    });
    let own = summed(0, &store).unwrap();
    assert_eq!([own, other.join().unwrap()].concat(), vec![vec![4.0, 4098.0]; 4]);
    assert!(store.keys.lock().unwrap().keys().all(|key| key.starts_with("pjrt/")));
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn errors_of_the_store_are_those_of_a_run() {
    let store = Arc::new(Table::default());
    *store.failed.lock().unwrap() = Some("UNAVAILABLE: process 1 has died".to_owned());
    let error = summed(0, &store).unwrap_err().to_string();
    assert!(error.starts_with("UNAVAILABLE") && error.contains("process 1 has died"), "{error}");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn several_processes_need_a_store() {
    let options = [("num_nodes".to_owned(), OptionValue::Int(2))];
    let error = Client::new(&plugin(), &options).unwrap_err();
    assert_eq!(error.to_string(), "INVALID_ARGUMENT: several processes need a key-value store");
}
