//! Operations and programs over several devices whose memories are their own: which devices, and how operands and results
//! lie on them.
//!
//! The devices of the embedded CPU share one memory and need none of this (`sharded.rs`). Elsewhere a program is compiled
//! for how its operands lie and how its results are to lie, which the host's rules say.
//!
//! Read next: `engine/cut.rs` for what runs.

use crate::device::Placement;
use crate::engine::{self, Compiled, Cut, Inside, Source};
use ferrax_base::{Aval, Result, error};
use ferrax_ir::lower::Said;
use ferrax_ir::{DeviceId, Tiles, Value};
use ferrax_loops::Graph;
use smallvec::SmallVec;
use std::sync::Arc;

/// How a program lies on several devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// The sharding over the devices by which each holds everything: where operands from elsewhere go.
    pub(crate) whole: DeviceId,
    params: SmallVec<[DeviceId; 6]>,
    results: SmallVec<[DeviceId; 2]>,
}

impl Layout {
    /// Of a program that runs at a place, with operands from these places, constants first, and results; `None` where that
    /// is one device.
    pub(crate) fn of(
        place: Placement,
        operands: impl Iterator<Item = Option<DeviceId>>,
        results: &[Placement],
    ) -> Option<Layout> {
        let place =
            Some(place.device).into_iter().chain(results.iter().map(|to| to.device)).find(|d| d.cut().is_some())?;
        let whole = place.replicated();
        let lies = |from: Option<DeviceId>| from.filter(|&from| reachable(from, whole)).unwrap_or(whole);
        Some(Layout {
            whole,
            params: operands.map(lies).collect(),
            results: results.iter().map(|to| to.device).collect(),
        })
    }

    /// The place where it runs.
    pub(crate) fn place(&self) -> Placement {
        Placement { device: self.whole, committed: true }
    }

    /// Bytes that one device has of each argument and of each result, behind so many constants.
    pub(crate) fn bytes(&self, constants: usize, arguments: &[Aval], results: &[Aval]) -> (Vec<usize>, Vec<usize>) {
        let part = |(place, aval): (&DeviceId, &Aval)| match place.cut() {
            Some((_, tiles)) => {
                tiles.spans(0, &aval.shape).iter().map(|span| span.1).product::<usize>() * aval.dtype.size()
            }
            None => aval.bytes(),
        };
        let each = |places: &[DeviceId], avals: &[Aval]| places.iter().zip(avals).map(part).collect();
        (each(&self.params[constants..], arguments), each(&self.results, results))
    }

    fn compile(&self, source: &Source<'_>, said: Vec<Said>) -> Result<Box<dyn Compiled>> {
        let devices = self.whole.devices();
        let tiles = |place: &DeviceId| -> Result<&'static Tiles> {
            let over = place.cut().filter(|(sharding, _)| sharding.devices == devices);
            over.map(|(_, tiles)| tiles).ok_or_else(|| {
                error!(
                    NotImplemented,
                    "{} runs over the devices {devices:?} and gives a result over {:?}: programs whose results are over \
                     other devices are not implemented",
                    source.name,
                    place.devices()
                )
            })
        };
        let each = |places: &[DeviceId]| places.iter().map(tiles).collect::<Result<Vec<_>>>();
        let (params, results, whole) = (each(&self.params)?, each(&self.results)?, tiles(&self.whole)?);
        let inside = said.into_iter().filter_map(|(call, place)| inside(call, place, &devices)).collect();
        let cut = Cut { devices: devices.clone(), params, results, whole, inside };
        engine::of(self.whole)?.compile_cut(source, &cut)
    }
}

/// What a program says of a value inside of it, in terms of its devices; `None` where a sharding says nothing of them.
fn inside(call: Arc<Graph>, place: DeviceId, devices: &[DeviceId]) -> Option<Inside> {
    let sharding = place.sharding()?;
    let tiles = sharding.tiles.as_ref().filter(|tiles| tiles.order.len() == devices.len())?;
    let mut tiles = tiles.clone();
    // those of an abstract mesh are numbered as the program's are
    if sharding.devices.len() == devices.len() {
        for number in &mut tiles.order {
            *number = devices.iter().position(|d| *d == sharding.devices[*number])?;
        }
    }
    Some(Inside { call, tiles, open: sharding.open.as_deref() })
}

/// A program compiled for its layout over several devices, of which it says how values inside of it lie, or for one device.
pub(crate) fn compile(
    layout: Option<&Layout>,
    device: DeviceId,
    source: &Source<'_>,
    said: Vec<Said>,
) -> Result<Box<dyn Compiled>> {
    match layout {
        Some(layout) => layout.compile(source, said),
        None => engine::of(device)?.compile(source),
    }
}

/// Where an operand lies; `None` for a number.
pub(crate) fn place_of(v: &Value) -> Option<DeviceId> {
    if let Value::Array(a) = v { Some(a.device()) } else { None }
}

/// Whether memory at one place is what a run at another one takes.
#[inline]
pub(crate) fn reachable(from: DeviceId, device: DeviceId) -> bool {
    match (from.cut(), device.cut()) {
        (None, None) => from.single() == device.single(),
        (Some((from, _)), Some((to, _))) => from.devices == to.devices,
        _ => false,
    }
}
