//! Programs that call the host, on an engine whose programs cannot: their segments are compiled, and driven from here.
//!
//! `ferrax_loops::passes::segments` says what is compiled and in which order it runs. Arrays stay in the device's memory
//! from step to step; what the host reads (operands of its code, conditions of loops, indices of branches) is copied. The
//! host is called in the call of the program, in the program's order, and an error of its code ends the run. What comes behind the last
//! call runs as the engine's programs do, and may end later than the call.
//! Read next: `ferrax_loops::passes::segments`.

use super::{Compiled, Engine, Options, Source};
use ferrax_base::{Arg, Buffer, DType, Memory, Outputs, Result, bail, error};
use ferrax_loops::passes::segments::{Action, Cut, Plan, Scan, Segment, Step, segments};
use ferrax_loops::{Graph, Type};
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// Compiles a program that calls the host, by an engine that compiles its segments.
pub fn compile<E: Engine + Clone + 'static>(engine: &E, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
    if let Some(target) = source.graph.of_host_calls(&|call| call.0.target().map(str::to_owned)) {
        bail!(
            NotImplemented,
            "the platform {} is not handed the FFI target {target:?}: ferrax runs foreign functions on the CPU engine, \
             jax.devices(\"cpu\")",
            engine.platform()
        );
    }
    let Cut { plan, segments } = segments(source.graph, source.donated)?;
    let compiled = |Segment { graph, donated }: &Segment| engine.compile(&Source { graph, donated, ..*source });
    let aliases = source.graph.aliases(source.donated);
    let results: Vec<Type> = source.graph.outputs.iter().map(|&v| source.graph.ty(v).clone()).collect();
    Ok(Box::new(Driven {
        segments: segments.iter().map(compiled).collect::<Result<_>>()?,
        copies: results.iter().map(|_| OnceLock::new()).collect(),
        reusable: aliases.iter().map(Option::is_some).collect(),
        engine: engine.clone(),
        name: source.name.to_owned(),
        options: source.options.to_vec(),
        plan,
        results,
    }))
}

/// A program in segments.
struct Driven<E> {
    engine: E,
    plan: Plan,
    segments: Vec<Box<dyn Compiled>>,
    reusable: Vec<bool>,
    /// The types of the results.
    results: Vec<Type>,
    /// For each result a program that copies it, where it turned out to be an argument or another result.
    copies: Vec<OnceLock<Box<dyn Compiled>>>,
    name: String,
    options: Vec<(String, super::OptionValue)>,
}

impl<E: Engine> Compiled for Driven<E> {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    fn run(&self, args: &mut [Arg<'_>], device: usize) -> Result<Outputs> {
        let mut held = Vec::with_capacity(args.len());
        for arg in args {
            held.push(match arg {
                Arg::Borrowed(memory) => Held::Theirs(memory),
                Arg::Owned(_) => match std::mem::replace(arg, Arg::Taken) {
                    Arg::Owned(memory) => Held::Ours(Rc::new(memory)),
                    _ => bail!(Internal, "an owned argument changed"),
                },
                Arg::Host(_) | Arg::Taken => bail!(Internal, "an argument is not in the engine's memory"),
            });
        }
        let results = Run { program: self, device }.plan(&self.plan, held)?;
        let given = |(k, held): (usize, Held<'_>)| match held {
            Held::Theirs(memory) => self.copy(k, memory, device),
            Held::Ours(memory) => Rc::try_unwrap(memory).or_else(|shared| self.copy(k, &shared, device)),
        };
        results.into_iter().enumerate().map(given).collect()
    }

    fn queues_itself(&self) -> bool {
        self.segments.iter().any(|s| s.queues_itself())
    }

    fn text(&self) -> Result<String> {
        let mut text = format!("{} segments, driven from the host\n", self.segments.len());
        for (i, segment) in self.segments.iter().enumerate() {
            text += &format!("\nsegment {i}\n{}", segment.text()?);
        }
        Ok(text)
    }

    fn temporary_bytes(&self) -> Option<usize> {
        self.segments.iter().map(|s| s.temporary_bytes()).try_fold(0, |most, bytes| Some(bytes?.max(most)))
    }
}

impl<E: Engine> Driven<E> {
    /// A copy of a result.
    fn copy(&self, k: usize, memory: &Memory, device: usize) -> Result<Memory> {
        let identity = match self.copies[k].get() {
            Some(made) => made,
            None => {
                let param = ferrax_loops::ValueId(0);
                let ty = self.results[k].clone();
                let graph = Arc::new(Graph { params: 1, types: vec![ty], nodes: Vec::new(), outputs: vec![param] });
                let options: &Options = &self.options;
                let source = Source { graph: &graph, donated: &[], device, name: &self.name, options };
                let made = self.engine.compile(&source)?;
                self.copies[k].get_or_init(|| made)
            }
        };
        let mut made = identity.run(&mut [Arg::Borrowed(memory)], device)?;
        made.pop().ok_or_else(|| error!(Internal, "a copy has no result"))
    }
}

/// An array of a run.
#[derive(Clone)]
enum Held<'a> {
    /// The caller's.
    Theirs(&'a Memory),
    /// Of this run, in one slot or several.
    Ours(Rc<Memory>),
}

impl Held<'_> {
    fn memory(&self) -> &Memory {
        match self {
            Held::Theirs(memory) => memory,
            Held::Ours(memory) => memory,
        }
    }
}

impl From<Memory> for Held<'_> {
    fn from(memory: Memory) -> Self {
        Held::Ours(Rc::new(memory))
    }
}

/// A run of a program.
struct Run<'p, E> {
    program: &'p Driven<E>,
    device: usize,
}

impl<E: Engine> Run<'_, E> {
    /// The results of a plan on these arguments.
    fn plan<'a>(&self, plan: &Plan, args: Vec<Held<'a>>) -> Result<Vec<Held<'a>>> {
        let mut slots: Vec<Option<Held<'a>>> = args.into_iter().map(Some).collect();
        slots.resize(plan.slots, None);
        let empty = || error!(Internal, "a step reads a slot that is empty");
        for step in &plan.steps {
            let mut inputs = Vec::with_capacity(step.inputs.len());
            for (&slot, &last) in step.inputs.iter().zip(&step.last) {
                let held = if last { slots[slot].take() } else { slots[slot].clone() };
                inputs.push(held.ok_or_else(empty)?);
            }
            for (slot, result) in slots[step.first..].iter_mut().zip(self.step(step, inputs)?) {
                *slot = Some(result);
            }
        }
        plan.outputs.iter().map(|&slot| slots[slot].clone().ok_or_else(empty)).collect()
    }

    fn step<'a>(&self, step: &Step, inputs: Vec<Held<'a>>) -> Result<Vec<Held<'a>>> {
        match &step.action {
            Action::Run(number) => self.segment(*number, inputs),
            Action::Host { call, operands, results } => {
                let buffers = inputs.iter().map(|x| x.memory().host()).collect::<Result<Vec<_>>>()?;
                let args: Vec<(&Type, &Buffer)> = operands.iter().zip(buffers).collect();
                let wanted: Vec<&Type> = results.iter().collect();
                let given = call.call(&args, &wanted)?;
                given.iter().zip(results).map(|(buffer, ty)| self.upload(buffer, ty)).collect()
            }
            Action::While { cond, body, cond_consts, body_consts } => {
                self.while_loop((cond, *cond_consts), (body, *body_consts), inputs)
            }
            Action::Scan(scan) => self.scan(scan, inputs),
            Action::Switch(branches) => {
                let index = inputs[0].memory().host()?.typed::<i32>()[0].max(0) as usize;
                let branch = branches.get(index).or(branches.last());
                let branch = branch.ok_or_else(|| error!(Internal, "a switch without branches"))?;
                self.plan(branch, inputs.into_iter().skip(1).collect())
            }
        }
    }

    fn upload<'a>(&self, elements: &Buffer, ty: &Type) -> Result<Held<'a>> {
        self.program.engine.upload(elements, ty, self.device).map(Held::from)
    }

    /// Runs a segment; what is nobody else's is donated to it.
    fn segment<'a>(&self, number: usize, inputs: Vec<Held<'a>>) -> Result<Vec<Held<'a>>> {
        let compiled = &self.program.segments[number];
        let mut parts: SmallVec<[(Option<Memory>, Option<Held<'a>>); 8]> = SmallVec::with_capacity(inputs.len());
        for (held, reusable) in inputs.into_iter().zip(compiled.reusable()) {
            parts.push(match held {
                Held::Ours(memory) if *reusable => match Rc::try_unwrap(memory) {
                    Ok(memory) => (Some(memory), None),
                    Err(shared) => (None, Some(Held::Ours(shared))),
                },
                held => (None, Some(held)),
            });
        }
        let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::with_capacity(parts.len());
        for (memory, held) in &mut parts {
            args.push(match (memory.take(), held) {
                (Some(memory), _) => Arg::Owned(memory),
                (None, Some(held)) => Arg::Borrowed(held.memory()),
                (None, None) => Arg::Taken,
            });
        }
        Ok(compiled.run(&mut args, self.device)?.into_iter().map(Held::from).collect())
    }

    fn while_loop<'a>(
        &self,
        (cond, cond_consts): (&Plan, usize),
        (body, body_consts): (&Plan, usize),
        mut inputs: Vec<Held<'a>>,
    ) -> Result<Vec<Held<'a>>> {
        let mut carry = inputs.split_off(cond_consts + body_consts);
        let for_body = inputs.split_off(cond_consts);
        loop {
            let asked = self.plan(cond, inputs.iter().chain(&carry).cloned().collect())?;
            let [go] = &asked[..] else { bail!(Internal, "a loop's condition has {} results", asked.len()) };
            if go.memory().host()?.bytes()[0] == 0 {
                return Ok(carry);
            }
            carry = self.plan(body, for_body.iter().cloned().chain(carry).collect())?;
        }
    }

    fn scan<'a>(&self, scan: &Scan, mut inputs: Vec<Held<'a>>) -> Result<Vec<Held<'a>>> {
        let xs = inputs.split_off(scan.consts + scan.carry);
        let mut changes = inputs.split_off(scan.consts);
        changes.extend(self.segment(scan.zeros, Vec::new())?);
        let ty = Type::new(scan.index, &[]);
        for step in 0..scan.length {
            let at = if scan.reverse { scan.length - 1 - step } else { step };
            let at = match scan.index {
                DType::I32 => Buffer::from_slice(&[at as i32])?,
                _ => Buffer::from_slice(&[at as i64])?,
            };
            let fixed = inputs.iter().chain(&xs).cloned().chain([self.upload(&at, &ty)?]);
            changes = self.plan(&scan.body, fixed.chain(changes).collect())?;
        }
        Ok(changes)
    }
}
