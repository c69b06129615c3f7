//! Arrays and programs over several devices of a plugin: a buffer on each, and a program that XLA cuts by shardings.
//!
//! What a program computes is said of whole arrays; how its arguments and results lie on the devices is said beside it,
//! and XLA's partitioner finds what each device computes and sends to others.
//!
//! Read next: `xla.rs` for one device, `ferrax_ir::tiles` for which part is where.

use super::xla::{self, Counts, Held, Xla};
use super::{Compiled, Cut, Engine, Inside, Source, Stats};
use ferrax_base::memory::DeviceMemory;
use ferrax_base::{Arg, Buffer, Memory, Outputs, Result, bail, error, long_work};
use ferrax_ir::tiles::{Span, axes, runs};
use ferrax_ir::{DeviceId, Tiles};
use ferrax_loops::{Graph, Type, ValueId};
use ferrax_pjrt::safe::{self, Client, Executable};
use ferrax_pjrt::stablehlo::{Partitions, Places, Target};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How arrays of a type lie on devices.
pub(super) struct Lying {
    ty: Type,
    /// The devices of this process: the places of each among all, and the device's number on its platform.
    own: Vec<(usize, usize)>,
    /// The part that each of those has.
    spans: Vec<Vec<Span>>,
    /// Which of them have all parts together, one each; `None` where devices of other processes alone have some.
    one_each: Option<Vec<usize>>,
}

impl Lying {
    /// Over devices of which those below `count` are this process's.
    pub(super) fn new(ty: Type, (devices, tiles): (&[DeviceId], &Tiles), count: usize) -> Arc<Lying> {
        let numbered = devices.iter().map(|d| d.index()).enumerate();
        let own: Vec<(usize, usize)> = numbered.filter(|&(_, device)| device < count).collect();
        let spans = own.iter().map(|&(place, _)| tiles.spans(tiles.tile_of(place), &ty.shape)).collect();
        let holder = |copies: &[usize]| own.iter().position(|(place, _)| copies.contains(place));
        Arc::new(Lying { one_each: tiles.order.chunks(tiles.copies).map(holder).collect(), ty, own, spans })
    }

    /// Bytes of the part of one of this process's devices.
    fn bytes(&self, own: usize) -> usize {
        self.spans[own].iter().map(|s| s.1).product::<usize>() * self.ty.dtype.size()
    }
}

/// What an array holds of the memory of several devices: of those of this process.
pub(super) struct Parts {
    parts: Vec<Held>,
    lying: Arc<Lying>,
}

impl Parts {
    /// Brings the elements of an array to the devices, to each its part.
    pub(super) fn upload(
        client: &Arc<Client>,
        (elements, ty): (&Buffer, &Type),
        over: (&[DeviceId], &Tiles),
        counts: &Arc<[Counts]>,
    ) -> Result<Memory> {
        let size = ty.dtype.size();
        Parts::of(client, ty, over, counts, |_, spans| {
            let (starts, length) = runs(spans, &ty.shape);
            let run = |at: usize| &elements.bytes()[size * at..size * (at + length)];
            Cow::Owned(starts.into_iter().flat_map(run).copied().collect())
        })
    }

    /// Brings the parts of this process's devices to them.
    pub(super) fn assemble(
        client: &Arc<Client>,
        (parts, ty): (&[&Buffer], &Type),
        over: (&[DeviceId], &Tiles),
        counts: &Arc<[Counts]>,
    ) -> Result<Memory> {
        Parts::of(client, ty, over, counts, |own, _| Cow::Borrowed(parts.get(own).map_or(&[], |part| part.bytes())))
    }

    /// Of the bytes of each of this process's devices' parts.
    fn of<'a>(
        client: &Arc<Client>,
        ty: &Type,
        over: (&[DeviceId], &Tiles),
        counts: &Arc<[Counts]>,
        bytes: impl Fn(usize, &[Span]) -> Cow<'a, [u8]>,
    ) -> Result<Memory> {
        let lying = Lying::new(ty.clone(), over, counts.len());
        let part = |(own, (spans, &(_, device))): (usize, (&Vec<Span>, &(usize, usize)))| {
            let shape: Vec<usize> = spans.iter().map(|s| s.1).collect();
            let bytes = bytes(own, spans);
            let buffer = client.upload(&bytes, ty.dtype, &shape, device)?;
            Ok(Held::new(buffer, bytes.len(), device, counts))
        };
        let parts = lying.spans.iter().zip(&lying.own).enumerate().map(part).collect::<Result<_>>()?;
        Ok(Memory::device(Parts { parts, lying }))
    }

    /// Which of this process's devices have all parts together, one each.
    fn one_each(&self) -> Result<&[usize]> {
        match &self.lying.one_each {
            Some(all) => Ok(all),
            None => bail!(
                Runtime,
                "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. \
                 You can use `jax.experimental.multihost_utils.process_allgather` to print the global array or use \
                 `.addressable_shards` method of jax.Array to inspect the addressable (process local) shards."
            ),
        }
    }

    /// The part of a device, by its place among all.
    pub(super) fn part(memory: &Memory, place: usize) -> Result<Buffer> {
        let Memory::Device(remote) = memory else { bail!(Internal, "an array over devices is in the host's memory") };
        remote.wait()?;
        let parts = remote.memory().as_any().downcast_ref::<Parts>();
        let held = parts.and_then(|p| p.parts.get(p.lying.own.iter().position(|own| own.0 == place)?));
        held.ok_or_else(|| error!(Internal, "this process has no device at place {place} of an array"))?.to_host()
    }
}

impl DeviceMemory for Parts {
    fn bytes(&self) -> usize {
        self.lying.ty.bytes()
    }

    fn ready(&self) -> bool {
        self.parts.iter().all(Held::ready)
    }

    fn wait(&self) -> Result<()> {
        self.parts.iter().try_for_each(Held::wait)
    }

    fn require_all(&self) -> Result<()> {
        self.one_each().map(drop)
    }

    fn to_host(&self) -> Result<Buffer> {
        let Lying { ty, spans, .. } = &*self.lying;
        let (size, mut whole) = (ty.dtype.size(), Buffer::allocate(ty.bytes())?);
        for &own in self.one_each()? {
            let (part, (starts, length)) = (self.parts[own].to_host()?, runs(&spans[own], &ty.shape));
            for (at, row) in starts.into_iter().zip(part.bytes().chunks_exact((size * length).max(1))) {
                whole.bytes_mut()[size * at..size * (at + length)].copy_from_slice(row);
            }
        }
        Ok(whole)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The oldest version of StableHLO whose plugins know Shardy.
const SHARDY: [i64; 3] = [1, 8, 0];

/// What XLA is told of how a program's parameters and results, and values inside of it, lie on devices: over the axes of a
/// mesh, for Shardy, or, where no mesh says it or the plugin is too old, by HLO's tiles, for GSPMD.
pub(super) fn places(cut: &Cut, graph: &Graph, target: &Target) -> Places {
    let types = graph.param_types().iter().chain(graph.outputs.iter().map(|&v| graph.ty(v)));
    let types: Vec<&Type> = types.chain(cut.inside.iter().map(|i| i.call.ty(ValueId(0)))).collect();
    let inside = cut.inside.iter().map(|i| &i.tiles);
    let all: Vec<&Tiles> = cut.params.iter().chain(&cut.results).copied().chain(inside).collect();
    let found = if target.version < SHARDY { None } else { axes(cut.devices.len(), &all) };
    let (params, ends) = (cut.params.len(), cut.params.len() + cut.results.len());
    let open = |k: usize, axis: usize| k >= ends && cut.inside[k - ends].open.is_none_or(|open| open.contains(&axis));
    let said = |k: usize| {
        let rank = types[k].shape.len();
        match &found {
            Some(found) => format!("sdy.sharding = {}", by_axes(&found.entries[k], rank, |axis| open(k, axis))),
            None => format!("mhlo.sharding = \"{}\"", all[k].text(rank)),
        }
    };
    let operation = |(i, inside): (usize, &Inside)| {
        let (k, rank) = (ends + i, inside.call.ty(ValueId(0)).shape.len());
        let (name, attributes) = match &found {
            Some(found) => {
                let how = by_axes(&found.entries[k], rank, |axis| open(k, axis));
                ("sdy.sharding_constraint", format!("{{sharding = {how}}}"))
            }
            None => ("stablehlo.custom_call", by_tiles(&said(k), (0..rank).filter(|&axis| open(k, axis)))),
        };
        (inside.call.clone(), name, attributes)
    };
    let partitions = Partitions {
        count: cut.devices.len(),
        parameters: (0..params).map(said).collect(),
        results: (params..ends).map(said).collect(),
        inside: cut.inside.iter().enumerate().map(operation).collect(),
    };
    let mesh = found.as_ref().map(|found| {
        let axes: Vec<String> = found.sizes.iter().enumerate().map(|(i, n)| format!("\"_{i}\"={n}")).collect();
        format!("<[{}]>", axes.join(", "))
    });
    Places { mesh, partitions: Some(partitions), ..Places::default() }
}

/// A sharding over the axes of a mesh, as an attribute.
fn by_axes(entries: &[Vec<usize>], rank: usize, open: impl Fn(usize) -> bool) -> String {
    let entry = |axis: usize| {
        let names = entries.get(axis).into_iter().flatten().map(|i| format!("\"_{i}\""));
        let names: Vec<String> = names.chain(open(axis).then(|| "?".into())).collect();
        format!("{{{}}}", names.join(", "))
    };
    let entries: Vec<String> = (0..rank).map(entry).collect();
    format!("#sdy.sharding<@mesh, [{}]>", entries.join(", "))
}

/// The attributes of the call by which a program says how a value lies, of which some axes may be divided further.
fn by_tiles(sharding: &str, open: impl Iterator<Item = usize>) -> String {
    let open: Vec<String> = open.map(|axis| axis.to_string()).collect();
    let left = if open.is_empty() { String::new() } else { format!("unspecified_dims=[{}]", open.join(",")) };
    format!("{{call_target_name = \"Sharding\", backend_config = \"{left}\", {sharding}}}")
}

/// The donated parameters of a program that a result takes the memory of: one that lies on the devices as they do.
pub(super) fn taken(cut: &Cut, graph: &Graph, donated: &[bool]) -> Vec<bool> {
    let mut taken = donated.to_vec();
    loop {
        let aliases = graph.aliases(&taken);
        let other = |(i, result): (usize, &Option<usize>)| result.is_some_and(|k| cut.params[i] != cut.results[k]);
        match aliases.iter().enumerate().find(|&(i, result)| other((i, result))) {
            Some((i, _)) => taken[i] = false,
            None => return taken,
        }
    }
}

/// A plugin whose arrays all are whole on each of several devices.
#[derive(Clone)]
struct Whole {
    plugin: &'static Xla,
    devices: Arc<[DeviceId]>,
    whole: &'static Tiles,
}

impl Engine for Whole {
    fn platform(&self) -> &'static str {
        self.plugin.platform()
    }

    fn devices(&self) -> Result<usize> {
        self.plugin.devices()
    }

    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
        let all = |n: usize| vec![self.whole; n];
        let (params, results) = (all(source.graph.params), all(source.graph.outputs.len()));
        let cut = Cut { devices: self.devices.clone(), params, results, whole: self.whole, inside: Vec::new() };
        self.plugin.compile_cut(source, &cut)
    }

    fn upload(&self, elements: &Buffer, ty: &Type, _: usize) -> Result<Memory> {
        self.plugin.upload_cut(elements, ty, (&self.devices, self.whole))
    }

    fn stats(&self, device: usize) -> Stats {
        self.plugin.stats(device)
    }
}

/// A program that calls the host, which is driven from it: what lies between two calls is a program over the devices.
/// What passes from one to another is whole on each of them.
pub(super) fn driven(plugin: &&'static Xla, source: &Source<'_>, cut: &Cut) -> Result<Box<dyn Compiled>> {
    let engine = Whole { plugin, devices: cut.devices.clone(), whole: cut.whole };
    let graph = source.graph;
    let moved = |types: Vec<Type>, params: Vec<&'static Tiles>, results: Vec<&'static Tiles>| {
        let outputs = (0..types.len()).map(|i| ValueId(i as u32)).collect();
        let same = Arc::new(Graph { params: types.len(), types, nodes: Vec::new(), outputs });
        let over = Cut { devices: cut.devices.clone(), params, results, whole: cut.whole, inside: Vec::new() };
        plugin.compile_cut(&Source { graph: &same, donated: &[], ..*source }, &over)
    };
    let results = graph.outputs.iter().map(|&v| graph.ty(v).clone()).collect();
    let (all, given) = (vec![cut.whole; graph.params], vec![cut.whole; graph.outputs.len()]);
    Ok(Box::new(Driven {
        gathered: moved(graph.param_types().to_vec(), cut.params.clone(), all)?,
        driven: super::driven::compile(&engine, &Source { donated: &[], ..*source })?,
        spread: moved(results, given, cut.results.clone())?,
        reusable: vec![false; graph.params],
    }))
}

/// A program that calls the host, between what brings its arguments together and what cuts its results.
struct Driven {
    gathered: Box<dyn Compiled>,
    driven: Box<dyn Compiled>,
    spread: Box<dyn Compiled>,
    reusable: Vec<bool>,
}

impl Compiled for Driven {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    fn run(&self, args: &mut [Arg<'_>], device: usize) -> Result<Outputs> {
        let owned = |outs: Outputs| outs.into_iter().map(Arg::Owned).collect::<Vec<_>>();
        let mut whole = owned(self.gathered.run(args, device)?);
        let mut results = owned(self.driven.run(&mut whole, device)?);
        self.spread.run(&mut results, device)
    }

    fn queues_itself(&self) -> bool {
        true
    }

    fn text(&self) -> Result<String> {
        self.driven.text()
    }
}

/// How many runs over several processes have not ended on devices of this one.
static RUNS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts as one of them until dropped.
struct Run;

impl Run {
    fn begun() -> Run {
        *RUNS.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Run
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        *RUNS.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNS.1.notify_all();
    }
}

/// Waits until no run over several processes goes on here, or for so long; gives whether none does.
pub(super) fn wait_for_runs(patience: Duration) -> bool {
    let runs = RUNS.0.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = RUNS.1.wait_timeout_while(runs, patience, |runs| *runs > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}

/// A compiled program of several devices.
pub(super) struct Program {
    pub(super) executable: Executable,
    pub(super) reusable: Vec<bool>,
    /// Parameters that the program may take the memory of; empty when there are none.
    pub(super) donated: Vec<bool>,
    /// This process's devices, by their numbers.
    pub(super) own: Vec<usize>,
    /// Whether there are others, with which a run may have to wait for its like in other processes.
    pub(super) others: bool,
    pub(super) results: Vec<Arc<Lying>>,
    pub(super) counts: Arc<[Counts]>,
}

impl Compiled for Program {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    fn run(&self, args: &mut [Arg<'_>], _: usize) -> Result<Outputs> {
        let mut lists: Vec<SmallVec<[&safe::Buffer; 8]>> = vec![SmallVec::with_capacity(args.len()); self.own.len()];
        for arg in args.iter() {
            let memory = arg.device::<Parts>().filter(|m| m.parts.len() == self.own.len());
            let memory = memory.ok_or_else(|| error!(Internal, "an argument is not on the program's devices"))?;
            for ((list, part), &device) in lists.iter_mut().zip(&memory.parts).zip(&self.own) {
                if part.device() != device {
                    bail!(Internal, "an argument of device {device} is on device {}", part.device());
                }
                list.push(part.buffer());
            }
        }
        let each: Vec<&[&safe::Buffer]> = lists.iter().map(|l| &l[..]).collect();
        let run = || self.executable.execute_all(&each, &xla::kept(args, &self.donated));
        let given = if self.others { long_work::run(long_work::LONG, run) } else { run() }?;
        drop(each);
        drop(lists);
        xla::take(args, &self.reusable);
        let mut parts: Vec<Vec<Held>> = self.results.iter().map(|_| Vec::with_capacity(self.own.len())).collect();
        for (buffers, (own, &device)) in given.into_iter().zip(self.own.iter().enumerate()) {
            if self.others
                && let Some(end) = buffers.first().map(safe::Buffer::ready_event).transpose()?.flatten()
            {
                let run = Run::begun();
                end.on_ready(move |_| drop(run))?;
            }
            for ((buffer, list), lying) in buffers.into_iter().zip(&mut parts).zip(&self.results) {
                list.push(Held::new(buffer, lying.bytes(own), device, &self.counts));
            }
        }
        let whole = |(parts, lying): (Vec<Held>, &Arc<Lying>)| Memory::device(Parts { parts, lying: lying.clone() });
        Ok(parts.into_iter().zip(&self.results).map(whole).collect())
    }

    fn queues_itself(&self) -> bool {
        true
    }

    fn text(&self) -> Result<String> {
        self.executable.about().text()
    }

    fn temporary_bytes(&self) -> Option<usize> {
        xla::temporary_bytes(&self.executable)
    }
}
