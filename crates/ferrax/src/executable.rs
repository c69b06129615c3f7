//! Executables: a whole program compiled, with its constants bound.
//!
//! Donated arguments whose memory the program can use are taken ([`Array::donate`]); all others stay valid, as in
//! JAX. Memory that somebody else can see (a NumPy view) is never taken.
//!
//! Programs that take long become jobs of the [`queue`], unless they have effects or call the host.

use crate::device::{self, Placement};
use crate::engine::{self, Compiled, Options};
use crate::partitioned::{self, Layout};
use crate::queue::{self, Input, Pace, Work};
use crate::watch::{self, Ran};
use crate::{debug, dispatch, sharded};
use ferrax_base::config::{Flag, watched};
use ferrax_base::list::List;
use ferrax_base::shape::{size, total};
use ferrax_base::{Arg, Aval, DType, Error, Memory, Outputs, Result, Source, bail, error, long_work, scopes};
use ferrax_cache::Cache;
use ferrax_ir::array::{MemoryPin, Taker};
use ferrax_ir::lower::{Said, lower, lower_noted, lower_said};
use ferrax_ir::{Array, Atom, DebugInfo, DeviceId, JaxprRef, Value, Values, spread};
use ferrax_loops::{Graph, Kind, work};
use ferrax_pjrt::stablehlo;
use ferrax_transform::eval::check_count;
use ferrax_transform::passes::optimize;
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock};

/// A compiled program for one set of donated arguments, on one device (all CPU devices share it).
struct Variant {
    compiled: Box<dyn Compiled>,
    device: DeviceId,
    /// The program's constants, there.
    consts: Vec<Array>,
    /// Arguments that may be donated; empty when none may.
    donated: SmallVec<[bool; 8]>,
    /// How it lies on several devices, where it does.
    layout: Option<Layout>,
}

/// A program ready to run.
pub struct Executable {
    jaxpr: JaxprRef,
    in_avals: Vec<Aval>,
    out_avals: Vec<Aval>,
    /// Constants of the optimized program: the leading parameters of the graph.
    consts: Vec<Array>,
    graph: Arc<Graph>,
    /// Elements that a run computes, about.
    elements: usize,
    /// Whether nobody can tell when it runs: no effects, no calls of the host.
    silent: bool,
    pace: Pace,
    /// One for each set of donated arguments and device that was asked for: nearly always one.
    variants: List<Variant>,
    /// What the message of a donated array names.
    function: Arc<DebugInfo>,
    /// What the engine's compiler is told.
    options: Box<Options>,
    /// Whether the program says how values are sharded.
    says_where: bool,
    /// The device that constants are committed to.
    home: Option<DeviceId>,
    /// Where results went, by the shardings of the arguments.
    places: sharded::Known,
}

/// Bytes that a run of a program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// In its arguments.
    pub arguments: usize,
    /// In its results.
    pub results: usize,
    /// Of the results', what donated arguments give.
    pub donated: usize,
    /// Beside these, where the engine knows it.
    pub temporary: Option<usize>,
}

/// Bytes of executables kept for operations that run programs eagerly (a `scan` outside `jit`).
const LIMIT: usize = 64 << 20;

/// Executables by program, by whether rewrites that can change bits were off, and by the compiler's options.
static EXECUTABLES: LazyLock<Cache<(JaxprRef, bool, String), Arc<Executable>>> = LazyLock::new(|| Cache::new(LIMIT));

/// The executable of a program; equal programs share one, except that strict numerics have their own.
pub fn executable(jaxpr: &JaxprRef) -> Result<Arc<Executable>> {
    executable_with(jaxpr, &[])
}

/// As [`executable`], with options of the engine's compiler.
pub fn executable_with(jaxpr: &JaxprRef, options: &Options) -> Result<Arc<Executable>> {
    // floats print as they are
    let named = if options.is_empty() { String::new() } else { format!("{options:?}") };
    let key = (jaxpr.clone(), Flag::StrictNumerics.get(), named);
    if let Some(found) = EXECUTABLES.get(&key) {
        return Ok(found.value.clone());
    }
    let made = Arc::new(Executable::new(jaxpr)?.with_options(options));
    Ok(EXECUTABLES.insert(key, made, jaxpr.bytes(), None).value.clone())
}

/// Makes the cache, as [`crate::init`] does.
pub(crate) fn make_caches() {
    LazyLock::force(&EXECUTABLES);
}

/// Forgets every executable; those in use live on.
pub fn clear_cache() {
    EXECUTABLES.clear();
}

impl Variant {
    fn compile(of: &Executable, donated: &[bool], device: DeviceId, layout: Option<Layout>) -> Result<Variant> {
        let mask: Vec<bool> = match donated {
            [] => Vec::new(),
            _ => of.mask(donated),
        };
        let (name, options) = (&*of.function.name, &*of.options);
        let said = layout.is_some() && of.says_inside() && !of.graph.calls_host();
        let (graph, said) = if said { of.said()? } else { (of.graph.clone(), Vec::new()) };
        let source = engine::Source { graph: &graph, donated: &mask, device: device.index(), name, options };
        let compiled = partitioned::compile(layout.as_ref(), device, &source, said)?;
        let there = |c: &Array| {
            if dispatch::reachable(c, device) {
                return Ok(c.clone());
            }
            if !device::has_all(c.device())? {
                bail!(
                    Runtime,
                    "Closing over jax.Array that spans non-addressable (non process local) devices is not allowed. Please \
                     pass such arrays as arguments to the function. Got jax.Array: {}",
                    c.aval().long_text()
                );
            }
            device::copied(c, c.aval().weak, device, true)
        };
        let consts = of.consts.iter().map(there).collect::<Result<_>>()?;
        Ok(Variant { compiled, device, consts, donated: SmallVec::from_slice(donated), layout })
    }

    /// Arguments whose memory the program reuses when it is donated.
    fn reusable(&self) -> &[bool] {
        &self.compiled.reusable()[self.consts.len()..]
    }
}

impl Executable {
    /// Optimizes and lowers a program, past the cache. Errors when the program is not well formed.
    pub fn new(jaxpr: &JaxprRef) -> Result<Executable> {
        jaxpr.verify()?;
        let optimized = optimize(jaxpr)?;
        let graph = Arc::new(lower(&optimized)?);
        Ok(Executable {
            in_avals: jaxpr.in_avals(),
            out_avals: jaxpr.out_avals(),
            elements: elements(&graph),
            silent: jaxpr.effects.is_none() && !graph.calls_host(),
            pace: Pace::default(),
            graph,
            consts: optimized.consts.clone(),
            variants: List::new(),
            function: Arc::new(jaxpr.debug.clone()),
            options: Box::default(),
            says_where: sharded::says_where(jaxpr),
            home: device::home(jaxpr),
            places: sharded::Known::default(),
            jaxpr: jaxpr.clone(),
        })
    }

    /// The same, to be compiled with options of the engine's compiler.
    pub fn with_options(self, options: &Options) -> Executable {
        Executable { options: options.into(), ..self }
    }

    /// The program.
    pub fn jaxpr(&self) -> &JaxprRef {
        &self.jaxpr
    }

    /// Types of the results, weak types included.
    pub fn out_avals(&self) -> &[Aval] {
        &self.out_avals
    }

    /// Whether it, or a type of it, says how values lie on devices.
    fn says_inside(&self) -> bool {
        self.says_where || sharded::types_say(&self.jaxpr)
    }

    /// What it computes, with calls of what it says of how values lie on devices.
    fn said(&self) -> Result<(Arc<Graph>, Vec<Said>)> {
        let (graph, said) = lower_said(&*optimize(&self.jaxpr)?)?;
        Ok((Arc::new(graph), said))
    }

    /// The compiled program for this set of donated arguments, for a device.
    #[inline]
    fn variant(&self, donate: &[bool], device: DeviceId) -> Result<&Variant> {
        self.variant_over(donate, dispatch::compiled_for(device), None)
    }

    /// As [`Self::variant`], also for several devices with memories of their own.
    #[inline]
    fn variant_over(&self, donate: &[bool], device: DeviceId, layout: Option<Layout>) -> Result<&Variant> {
        let donate = if donate.contains(&true) { donate } else { &[] };
        let same = |v: &Variant| v.donated.as_slice() == donate && v.device == device && v.layout == layout;
        if let Some(v) = self.variants.find(same) {
            return Ok(v);
        }
        // Two threads may both compile it; either's will do.
        Ok(self.variants.push(Variant::compile(self, donate, device, layout)?))
    }

    /// The variant for a run on these arguments, where it runs, and where its results go if they are not all there.
    fn chosen(
        &self,
        args: &[Value],
        donate: &[bool],
        placement: Placement,
    ) -> Result<(&Variant, Placement, Option<sharded::Places>)> {
        if !self.is_sharded(placement) {
            return Ok((self.variant(donate, placement.device)?, placement, None));
        }
        let operands: SmallVec<[_; 8]> = args.iter().map(sharded::of_value).collect();
        self.chosen_over(&operands, args.iter().map(partitioned::place_of), donate, placement)
    }

    /// Whether a run at a place has to ask where its results go.
    #[inline]
    fn is_sharded(&self, placement: Placement) -> bool {
        placement.device.is_sharded() || self.says_where
    }

    /// As [`Self::chosen`], for arguments that are sharded so, and lie there.
    fn chosen_over(
        &self,
        args: &[Option<DeviceId>],
        lying: impl Iterator<Item = Option<DeviceId>>,
        donate: &[bool],
        placement: Placement,
    ) -> Result<(&Variant, Placement, Option<sharded::Places>)> {
        let places = sharded::of_program(&self.places, &self.jaxpr, args, placement)?;
        let operands = self.consts.iter().map(|c| Some(c.device())).chain(lying);
        match Layout::of(placement, operands, &places) {
            Some(layout) => {
                let place = layout.place();
                Ok((self.variant_over(donate, place.device, Some(layout))?, place, Some(places)))
            }
            None => Ok((self.variant(donate, placement.device)?, placement, Some(places))),
        }
    }

    /// Compiles for this set of donated arguments now, and gives those whose memory no result can use.
    pub fn unusable_donations(&self, donate: &[bool]) -> Result<Vec<usize>> {
        self.check_mask(donate)?;
        let v = self.variant(donate, Placement::uncommitted().device)?;
        let unused = v.donated.iter().zip(v.reusable()).enumerate().filter(|(_, (d, r))| **d && !**r);
        Ok(unused.map(|(i, _)| i).collect())
    }

    /// Errors when an argument that is to be donated cannot be: with the reason.
    pub fn check_donations(&self, args: &[Value], donate: &[bool]) -> Result<()> {
        let unusable = self.unusable_donations(donate)?;
        for (i, arg) in args.iter().enumerate().filter(|(i, _)| donate.get(*i) == Some(&true)) {
            let why = if unusable.contains(&i) {
                "no result of the same shape and dtype is left to take its memory".to_owned()
            } else {
                let Value::Array(a) = arg else {
                    bail!(Value, "{} cannot be donated: a Python number has no memory", self.describe(i));
                };
                let twice = args.iter().enumerate().any(|(j, o)| j != i && matches!(o, Value::Array(o) if o.ptr_eq(a)));
                match a.why_not_donated() {
                    Some(why) => why.to_owned(),
                    None if twice => "the same array is passed twice".to_owned(),
                    None => continue,
                }
            };
            bail!(Value, "{} of {} cannot be donated: {why}", self.describe(i), arg.aval().long_text());
        }
        Ok(())
    }

    /// The program compiled for arguments that are committed to places, or to none; for the default device if none are given.
    fn compiled_at(&self, args: &[Option<DeviceId>], donate: &[bool]) -> Result<&Variant> {
        let first = args.iter().flatten().next();
        let placement = first.map_or_else(Placement::uncommitted, |&device| Placement { device, committed: true });
        let placement = placement.or_home(self.home);
        if args.is_empty() || !self.is_sharded(placement) {
            return self.variant(donate, placement.device);
        }
        Ok(self.chosen_over(args, args.iter().copied(), donate, placement)?.0)
    }

    /// The kernels and calls that the program runs on arguments at these places, as text; on the default device if none
    /// are given.
    pub fn kernels(&self, args: &[Option<DeviceId>]) -> Result<String> {
        self.compiled_at(args, &[])?.compiled.text()
    }

    /// The program as StableHLO, as plugins of the PJRT C API are given it; `donate` as for a run.
    pub fn stablehlo(&self, donate: &[bool]) -> Result<String> {
        self.check_mask(donate)?;
        stablehlo::module(&self.graph, &self.mask(donate), &stablehlo::Target::newest())
    }

    /// A program as StableHLO that says how its types are sharded over explicit axes of a mesh, and, if `named`, which
    /// arguments and lines of the user's it has its values from; `donate` as for a run.
    pub fn placed_stablehlo(jaxpr: &JaxprRef, donate: &[bool], named: bool) -> Result<String> {
        let this = Executable::new(jaxpr)?;
        this.check_mask(donate)?;
        let optimized = optimize(jaxpr)?;
        let (mut places, mut end) = (stablehlo::Places::default(), 0);
        let (graph, noted) = lower_noted(&optimized, |eqn, made| {
            end = made.iter().fold(end, |end, v| v.0.max(end));
            for (&v, value) in eqn.outputs.iter().zip(made) {
                if let Some((sharding, mesh)) = spread::sdy(optimized.aval(v).spread) {
                    places.mesh.get_or_insert(mesh);
                    places.shardings.push((value.0, sharding));
                }
            }
            let scopes = scopes::text(&scopes::names(eqn.source.scope));
            let name = [&*format!("jit({})", jaxpr.debug.name), &scopes, eqn.op.name()];
            let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            let line = eqn.source.location().map(|at| (at.file, at.line));
            places.values.push((end, name, line));
        })?;
        places.noted = noted;
        places.parameters.resize(optimized.consts.len(), String::new());
        places.parameters.extend(jaxpr.debug.arg_names.iter().flat_map(|names| names()));
        if !named {
            places.parameters.clear();
            places.values.clear();
        }
        for &v in optimized.constvars.iter().chain(&optimized.invars) {
            let (sharding, mesh) = spread::sdy(optimized.aval(v).spread).unzip();
            places.mesh = places.mesh.take().or(mesh);
            places.parameter_shardings.push(sharding.unwrap_or_default());
        }
        stablehlo::placed_module(&graph, &this.mask(donate), &stablehlo::Target::newest(), Some(&places))
    }

    /// The mask of donated parameters of the graph, constants first, from that of the arguments.
    fn mask(&self, donate: &[bool]) -> Vec<bool> {
        std::iter::repeat_n(false, self.consts.len()).chain(donate.iter().copied()).collect()
    }

    /// What the program computes, counted before any engine fuses it.
    pub fn work(&self) -> work::Work {
        self.graph.work()
    }

    /// Bytes that a run takes on arguments at these places, as for [`Self::kernels`]: arguments, results, those of them that
    /// donated arguments give, and what is temporary where the engine knows it; on one device of several with memories of
    /// their own. `donate` as for a run.
    pub fn memory(&self, args: &[Option<DeviceId>], donate: &[bool]) -> Result<MemoryUse> {
        self.check_mask(donate)?;
        let v = self.compiled_at(args, donate)?;
        let (arguments, results): (Vec<usize>, Vec<usize>) = match &v.layout {
            None => (self.in_avals.iter().map(Aval::bytes).collect(), self.out_avals.iter().map(Aval::bytes).collect()),
            Some(layout) => layout.bytes(self.consts.len(), &self.in_avals, &self.out_avals),
        };
        let given = v.donated.iter().zip(v.reusable()).zip(&arguments).filter(|((d, r), _)| **d && **r);
        Ok(MemoryUse {
            donated: given.map(|(_, bytes)| bytes).sum(),
            arguments: arguments.iter().sum(),
            results: results.iter().sum(),
            temporary: v.compiled.temporary_bytes(),
        })
    }

    /// Runs the program on one concrete value per parameter, of its type. `donate[i]` says that the memory of argument i
    /// may be used for results; an empty mask donates nothing.
    pub fn run(self: &Arc<Self>, args: &[Value], donate: &[bool]) -> Result<Values> {
        self.check_args(args.len(), |i| (args[i].dtype(), args[i].shape()))?;
        self.check_mask(donate)?;
        let placement = device::place(args, |i| self.describe(i))?.or_home(self.home);
        if debug::checking() {
            if watched() {
                return watch::around(&Ran::Program(&self.jaxpr), args, || self.run(args, donate));
            }
            return self.run_checked(args, placement);
        }
        let (variant, placement, places) = self.chosen(args, donate, placement)?;
        donated_once(variant, args)?;
        if self.asynchronous(variant) {
            let started = self.start(variant, args, placement, places.as_deref())?;
            return Ok(started.into_iter().map(Value::Array).collect());
        }
        Ok(self.placed(self.run_variant(variant, args, placement)?, placement, places))
    }

    /// Result arrays of what a run gave: each where it goes, or where the program ran.
    fn placed(&self, outs: Outputs, placement: Placement, places: Option<sharded::Places>) -> Values {
        match places {
            Some(places) => dispatch::placed_each(outs, &self.out_avals, &places),
            None => dispatch::placed(outs, &self.out_avals, placement),
        }
    }

    /// As [`Self::run`] for arrays of which none is donated, which is what most calls are; results go to `each`.
    /// Gives false, and does nothing, in the debug modes, where arrays are on other devices, where it is not known yet
    /// how results are sharded, and where they are over devices other than the embedded CPU's.
    pub fn run_arrays(self: &Arc<Self>, args: &[&Array], mut each: impl FnMut(Array)) -> Result<bool> {
        self.check_args(args.len(), |i| (args[i].aval().dtype, &args[i].aval().shape))?;
        if debug::checking() {
            return Ok(false);
        }
        let place = device::place_arrays(args.iter().copied().enumerate(), |i| self.describe(i))?.or_home(self.home);
        let elsewhere = !place.device.on_cpu() && args.iter().any(|a| a.device() != place.device);
        let sharded = self.is_sharded(place);
        let places = if sharded { self.places.find(args.iter().map(|a| sharded::of_array(a)), place) } else { None };
        let several =
            sharded && (!place.device.on_cpu() || places.is_none_or(|all| all.iter().any(|to| !to.device.on_cpu())));
        if elsewhere || several {
            return Ok(false);
        }
        let variant = self.variant(&[], place.device)?;
        if self.asynchronous(variant) {
            let args: SmallVec<[Value; 8]> = args.iter().map(|&a| Value::Array(a.clone())).collect();
            self.start(variant, &args, place, places.map(|p| &**p))?.into_iter().for_each(each);
            return Ok(true);
        }
        let mut pins: SmallVec<[MemoryPin<'_>; 8]> = SmallVec::with_capacity(self.consts.len() + args.len());
        for a in variant.consts.iter().chain(args.iter().copied()) {
            pins.push(a.pin_memory()?);
        }
        let mut buffers: SmallVec<[Arg<'_>; 8]> = pins.iter().map(|p| Arg::Borrowed(p)).collect();
        let outs = self.run_now(variant, &mut buffers, place.device)?;
        for (i, (memory, aval)) in outs.into_iter().zip(&self.out_avals).enumerate() {
            let to = places.map_or(place, |all| all[i]);
            each(Array::placed(aval.clone(), memory, to.device, to.committed));
        }
        Ok(true)
    }

    /// Errors unless there is an argument of its type, weak or not, for every parameter: kernels read as many bytes as
    /// the program says.
    #[inline]
    fn check_args<'a>(&self, count: usize, arg: impl Fn(usize) -> (DType, &'a [usize])) -> Result<()> {
        let fits = |(i, a): (usize, &Aval)| arg(i) == (a.dtype, a.shape.as_slice());
        if count == self.in_avals.len() && self.in_avals.iter().enumerate().all(fits) {
            return Ok(());
        }
        Err(self.misfit(count, &|i| Aval::new(arg(i).0, arg(i).1)))
    }

    #[cold]
    fn misfit(&self, count: usize, arg: &dyn Fn(usize) -> Aval) -> Error {
        let takes = self.in_avals.len();
        if count != takes {
            return error!(Type, "{} takes {takes} arguments, got {count}", self.jaxpr.debug.describe());
        }
        let Some((i, want)) = self.in_avals.iter().enumerate().find(|(i, a)| !a.same_type(&arg(*i))) else {
            return error!(Internal, "arguments of the right types were refused");
        };
        error!(
            Type,
            "{} must have type {}, got {}. A compiled program runs on the types that it was compiled for: convert the \
             argument, or compile the program for these types.",
            self.describe(i),
            want.long_text(),
            arg(i).long_text()
        )
    }

    /// Errors unless a mask of donated arguments is empty or has an entry for each.
    fn check_mask(&self, donate: &[bool]) -> Result<()> {
        let takes = self.in_avals.len();
        if donate.is_empty() || donate.len() == takes {
            return Ok(());
        }
        Err(error!(
            Value,
            "the mask of donated arguments of {} must have an entry for each of its {takes} arguments, got {}",
            self.jaxpr.debug.describe(),
            donate.len()
        ))
    }

    fn run_variant(&self, variant: &Variant, args: &[Value], placement: Placement) -> Result<Outputs> {
        let consts = &variant.consts;
        let taken = self.take_donations(variant, args, placement.device);
        let mut operands = dispatch::Operands::new(placement.device);
        for c in consts {
            operands.push_array(c)?;
        }
        let mut skipped = taken.iter().map(|(i, _)| *i).peekable();
        for (i, a) in args.iter().enumerate() {
            if skipped.next_if_eq(&i).is_none() {
                operands.push(a)?;
            }
        }
        let mut next = 0;
        let mut borrowed = || {
            next += 1;
            Arg::Borrowed(operands.get(next - 1))
        };
        let mut buffers: SmallVec<[Arg<'_>; 16]> = consts.iter().map(|_| borrowed()).collect();
        let mut taken = taken.into_iter().peekable();
        for i in 0..args.len() {
            buffers.push(match taken.next_if(|(j, _)| *j == i) {
                Some((_, memory)) => Arg::Owned(memory),
                None => borrowed(),
            });
        }
        self.run_now(variant, &mut buffers, placement.device)
    }

    /// Runs a compiled program in the call.
    #[inline]
    fn run_now(&self, variant: &Variant, args: &mut [Arg<'_>], device: DeviceId) -> Result<Outputs> {
        queue::run_now(&self.pace, self.elements, || variant.compiled.run(args, device.index()))
    }

    /// The donated arguments whose memory the program can use, on its device, and that are passed once.
    fn donations(&self, variant: &Variant, args: &[Value], device: DeviceId) -> SmallVec<[usize; 4]> {
        if variant.donated.is_empty() {
            return SmallVec::new();
        }
        let arrays = args.iter().filter_map(|v| if let Value::Array(a) = v { Some(a) } else { None });
        let mut ids: SmallVec<[usize; 16]> = arrays.chain(&variant.consts).map(Array::id).collect();
        ids.sort_unstable();
        let once = |a: &Array| ids.get(ids.partition_point(|id| *id < a.id()) + 1) != Some(&a.id());
        let mine = |a: &Array| dispatch::reachable(a, device) && once(a);
        let reusable = variant.reusable();
        let usable = |i: &usize| reusable[*i] && matches!(&args[*i], Value::Array(a) if mine(a));
        (0..args.len()).filter(usable).collect()
    }

    /// The memory of donated arguments that nobody else sees.
    fn take_donations(&self, variant: &Variant, args: &[Value], device: DeviceId) -> SmallVec<[(usize, Memory); 4]> {
        let mut taken = SmallVec::new();
        let donated = self.donations(variant, args, device);
        let call = if donated.is_empty() { Source::default() } else { Source::here() };
        for i in donated {
            let Value::Array(a) = &args[i] else { continue };
            a.wait();
            if let Some(memory) = self.donated_now(a, &self.taker(i, call)) {
                taken.push((i, memory));
            }
        }
        taken
    }

    /// Whether the next run is to go on while its caller does.
    #[inline]
    fn asynchronous(&self, variant: &Variant) -> bool {
        self.elements >= long_work::LONG && self.silent && !variant.compiled.queues_itself() && self.pace.asynchronous()
    }

    /// Starts the program on the queue; gives the arrays that it will compute.
    fn start(
        self: &Arc<Self>,
        variant: &Variant,
        args: &[Value],
        place: Placement,
        places: Option<&[Placement]>,
    ) -> Result<SmallVec<[Array; 2]>> {
        let mut inputs: SmallVec<[Input; 8]> = SmallVec::with_capacity(variant.consts.len() + args.len());
        for c in &variant.consts {
            inputs.push(Input::Array(c.reserve()?, false));
        }
        let donated = self.donations(variant, args, place.device);
        let call = if donated.is_empty() { Source::default() } else { Source::here() };
        let mut donated = donated.into_iter().peekable();
        for (i, arg) in args.iter().enumerate() {
            inputs.push(match arg {
                Value::Array(a) if donated.next_if_eq(&i).is_some() => self.donated(a, &self.taker(i, call))?,
                Value::Array(a) if dispatch::reachable(a, place.device) => Input::Array(a.reserve()?, false),
                Value::Array(a) => Input::Owned(Some(device::upload(a.aval(), &*a.pin()?, place.device)?)),
                Value::Lit(l) => Input::Owned(Some(dispatch::constant(l, place.device)?)),
                Value::Tracer(_) => bail!(Internal, "a traced value reached the queue"),
            });
        }
        let work = Job { executable: self.clone(), donated: variant.donated.clone(), device: place.device };
        Ok(queue::start(Arc::new(work), inputs, &self.out_avals, |i| places.map_or(place, |all| all[i])))
    }

    /// A donated argument of a job.
    fn donated(&self, a: &Array, taker: &Taker) -> Result<Input> {
        if let Some(memory) = a.donate(taker) {
            return Ok(Input::Owned(Some(memory)));
        }
        if let Some(reservation) = a.reserve_donated(taker) {
            return Ok(Input::Array(reservation, true));
        }
        match self.donated_now(a, taker) {
            Some(memory) => Ok(Input::Owned(Some(memory))),
            None => Ok(Input::Array(a.reserve()?, false)),
        }
    }

    /// The memory of a donated argument, if nobody else sees it. Jobs that read it, if that is what holds it, end first.
    fn donated_now(&self, a: &Array, taker: &Taker) -> Option<Memory> {
        a.donate(taker).or_else(|| {
            queue::drain();
            a.donate(taker)
        })
    }

    /// What those who use a donated argument later are told.
    fn taker(&self, argument: usize, call: Source) -> Taker {
        Taker { function: self.function.clone(), argument: argument as u32, call }
    }

    /// Runs the program, keeping donated arguments for the case that a result is bad.
    fn run_checked(&self, args: &[Value], placement: Placement) -> Result<Values> {
        let (variant, placement, places) = self.chosen(args, &[], placement)?;
        let results = self.placed(self.run_variant(variant, args, placement)?, placement, places);
        for r in &results {
            if debug::found(r)? {
                return Err(crate::blame::program(&self.jaxpr, args, &results));
            }
        }
        Ok(results)
    }

    /// An argument as the message of mixed devices names it.
    fn describe(&self, i: usize) -> String {
        let debug = &self.jaxpr.debug;
        let names = debug.arg_names.as_ref().map(|names| names());
        match names.as_ref().and_then(|n| n.get(i)) {
            Some(name) => format!("argument {name} of {}", debug.name),
            None => format!("argument {i} of {}", debug.name),
        }
    }
}

/// An executable with the arguments that a call donates, and where it runs.
struct Job {
    executable: Arc<Executable>,
    donated: SmallVec<[bool; 8]>,
    device: DeviceId,
}

impl Work for Job {
    fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs> {
        self.executable.variant(&self.donated, self.device)?.compiled.run(args, self.device.index())
    }

    fn pace(&self) -> &Pace {
        &self.executable.pace
    }
}

/// Errors where an array whose memory a result takes is an argument twice.
fn donated_once(variant: &Variant, args: &[Value]) -> Result<()> {
    let taken = |i: usize| variant.donated.get(i) == Some(&true) && variant.reusable()[i];
    for i in (0..variant.donated.len()).filter(|&i| taken(i)) {
        let Value::Array(a) = &args[i] else { continue };
        let Some(j) = (0..args.len()).find(|&j| j != i && matches!(&args[j], Value::Array(o) if o.ptr_eq(a))) else {
            continue;
        };
        let (what, example) = match (taken(j), j < i) {
            (true, _) => ("donate the same buffer twice in", "f(donate(a), donate(a))"),
            (_, true) => ("donate a buffer which is also used by the same call to", "f(a, donate(a))"),
            _ => ("use a buffer that was previously donated in the same call to", "f(donate(a), a)"),
        };
        bail!(
            Runtime,
            "INVALID_ARGUMENT: Attempt to {what} Execute() (flattened argument {}, first use: {}). Toy example for this \
             bug: `{example}`.",
            i.max(j),
            i.min(j)
        );
    }
    Ok(())
}

/// Elements that a run of a graph computes, about; a `while` counts as long.
fn elements(graph: &Graph) -> usize {
    let inner = |kind: &Kind| match kind {
        Kind::While { .. } => long_work::LONG,
        Kind::Scan { body, length, .. } => length.saturating_mul(elements(body)),
        Kind::Switch(branches) => branches.iter().map(|b| elements(b)).max().unwrap_or(0),
        Kind::Call(callee) => elements(callee),
        _ => 0,
    };
    let own = total(graph.types.iter().map(|t| size(&t.shape)));
    graph.nodes.iter().fold(own, |sum, n| sum.saturating_add(inner(&n.kind)))
}

/// Runs a program operation by operation: what `disable_jit` and the debug modes do.
pub fn interpret(jaxpr: &JaxprRef, args: &[Value]) -> Result<Values> {
    jaxpr.verify()?;
    check_count(jaxpr, args.len())?;
    let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
    for (&v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (&v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let read = |env: &[Option<Value>], a: &Atom| match a {
        Atom::Lit(l) => Ok(Value::Lit(*l)),
        Atom::Var(v) => {
            env[v.0 as usize].clone().ok_or_else(|| error!(Internal, "variable {} is used before it is defined", v.0))
        }
    };
    for eqn in &jaxpr.eqns {
        let inputs = eqn.inputs.iter().map(|a| read(&env, a)).collect::<Result<SmallVec<[Value; 4]>>>()?;
        let outs = dispatch::evaluate(&eqn.op, &inputs)?;
        for (&v, out) in eqn.outputs.iter().zip(outs) {
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}

/// The array of a concrete value.
pub fn materialize(v: Value) -> Result<Array> {
    match v {
        Value::Array(a) => Ok(a),
        Value::Lit(l) => dispatch::scalar_array(&l),
        Value::Tracer(_) => Err(error!(Internal, "a traced value where a concrete one must be")),
    }
}
