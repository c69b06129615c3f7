//! Options of the compiler, as the protocol buffer that plugins read.
//!
//! Only what ferrax sets is written. Source: the numbers of `compile_options.proto` and `xla_data.proto`.
//! Read next: `proto.rs`.

use super::proto::Proto;
use crate::result::OptionValue;

/// How a program is compiled, and for which devices.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Numbers of the devices ([`super::Client::device_id`]): a row for each replica, with one device for each partition.
    pub devices: Vec<Vec<i32>>,
    /// Whether partitions run one program, cut by its shardings, rather than one each.
    pub spmd: bool,
    /// Whether shardings are those of Shardy rather than of GSPMD.
    pub shardy: bool,
    /// Whether the executable runs on any one device, which each run names; `devices` is empty then.
    pub portable: bool,
    /// Whether the compiler may choose the shardings of results: one answer for all, or one for each.
    pub propagate_to_results: Vec<bool>,
    /// Options of XLA by their names (`"xla_cpu_enable_fast_math"`).
    pub overrides: Vec<(String, OptionValue)>,
}

impl CompileOptions {
    /// For one device, by its number.
    pub fn on(device: i32) -> Self {
        CompileOptions { devices: vec![vec![device]], ..Self::default() }
    }

    /// For one partition on each of these devices, cut by the program's shardings.
    pub fn partitioned(devices: &[i32]) -> Self {
        CompileOptions { devices: vec![devices.to_vec()], spmd: true, ..Self::default() }
    }

    /// For one replica on each of these devices.
    pub fn replicated(devices: &[i32]) -> Self {
        CompileOptions { devices: devices.iter().map(|d| vec![*d]).collect(), ..Self::default() }
    }

    /// For any one device.
    pub fn portable() -> Self {
        CompileOptions { portable: true, ..Self::default() }
    }

    /// The options as a serialized `CompileOptionsProto`.
    pub fn encoded(&self) -> Vec<u8> {
        let mut proto = Proto::default();
        proto.message(3, &self.build_options());
        proto.int(4, i64::from(self.portable));
        for (name, value) in &self.overrides {
            let mut entry = Proto::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &override_value(value));
            proto.message(7, &entry);
        }
        proto.0
    }

    /// `ExecutableBuildOptionsProto`.
    fn build_options(&self) -> Proto {
        let mut proto = Proto::default();
        // no one device: the assignment names them
        proto.int(1, -1);
        proto.int(4, self.devices.len().max(1) as i64);
        proto.int(5, self.partitions() as i64);
        proto.int(6, i64::from(self.spmd));
        if !self.devices.is_empty() {
            proto.message(9, &self.assignment());
        }
        proto.packed(12, self.propagate_to_results.iter().map(|p| u64::from(*p)));
        proto.int(19, i64::from(self.shardy));
        proto
    }

    fn partitions(&self) -> usize {
        self.devices.first().map_or(1, Vec::len)
    }

    /// `DeviceAssignmentProto`: for each partition, the devices of its replicas.
    fn assignment(&self) -> Proto {
        let mut proto = Proto::default();
        proto.int(1, self.devices.len() as i64);
        proto.int(2, self.partitions() as i64);
        for partition in 0..self.partitions() {
            let mut row = Proto::default();
            row.packed(
                1,
                self.devices.iter().filter_map(|replica| replica.get(partition)).map(|d| i64::from(*d) as u64),
            );
            proto.message(3, &row);
        }
        proto
    }
}

/// `OptionOverrideProto`, which says by the field that is there what the value is, so zeros are written too.
fn override_value(value: &OptionValue) -> Proto {
    let mut proto = Proto::default();
    match value {
        OptionValue::Text(text) => proto.bytes(1, text.as_bytes()),
        OptionValue::Bool(bool) => proto.present(2, u64::from(*bool)),
        OptionValue::Int(int) => proto.present(3, *int as u64),
        OptionValue::Float(float) => proto.double(4, f64::from(*float)),
        OptionValue::Ints(list) => {
            let text: Vec<String> = list.iter().map(i64::to_string).collect();
            proto.bytes(1, text.join(",").as_bytes());
        }
    }
    proto
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        // written out by hand: field 3 { 1: -1, 4: 1, 5: 1, 9: { 1: 1, 2: 1, 3: { 1: [5] } } }
        let build = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 32, 1, 40, 1, 74, 9];
        let assignment = [8, 1, 16, 1, 26, 3, 10, 1, 5];
        let want = [&[26, 26], &build[..], &assignment[..]].concat();
        assert_eq!(CompileOptions::on(5).encoded(), want);
    }

    #[test]
    fn overrides_say_their_type() {
        let value = |v: OptionValue| override_value(&v).0;
        assert_eq!(value("on".into()), [10, 2, b'o', b'n']);
        assert_eq!(value(false.into()), [16, 0]);
        assert_eq!(value(300.into()), [24, 172, 2]);
        assert_eq!(value(OptionValue::Float(1.0)), [33, 0, 0, 0, 0, 0, 0, 240, 63]);
        assert_eq!(value(OptionValue::Ints(vec![1, 2])), [10, 3, b'1', b',', b'2']);
    }

    #[test]
    fn partitions_and_replicas_are_transposed() {
        let options = CompileOptions { devices: vec![vec![0, 1], vec![2, 3]], ..CompileOptions::default() };
        assert_eq!(options.assignment().0, [8, 2, 16, 2, 26, 4, 10, 2, 0, 2, 26, 4, 10, 2, 1, 3]);
    }
}
