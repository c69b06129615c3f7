//! A call of a target from a program: the host call that a graph holds.
//!
//! The handlers of a call site are found when it first runs, and instantiated once. Operands are read where they are
//! and results written where they belong. Handlers see elements below a byte packed, the first in the lowest bits, and
//! keys of random numbers as pairs of `uint32`.

use crate::api::{Failure, Future};
use crate::attributes::{Attributes, Table};
use crate::context::{Context, Slot};
use crate::sys::*;
use crate::targets::{self, Bundle, empty_frame};
use crate::types::code;
use ferrax_base::{Aval, Buffer, DType, Result, error};
use ferrax_loops::{HostCall, Type};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A call of a target.
pub struct ForeignCall {
    target: String,
    attributes: Table,
    /// The handler's dimensions of each operand, which differ from the operand's own where it is laid out otherwise.
    operands: Vec<Vec<usize>>,
    /// As `operands`, of each result.
    results: Vec<Vec<usize>>,
    /// Pairs (operand, result) in one place.
    aliases: Vec<(usize, usize)>,
    site: OnceLock<Site>,
}

/// The handlers of a call site, and what they keep.
struct Site {
    bundle: Bundle,
    instance: Slot,
}

/// Numbers of calls.
static RUNS: AtomicI64 = AtomicI64::new(1);

impl ForeignCall {
    /// A call of `target` with these dimensions of operands and results.
    pub fn new(
        target: &str,
        attributes: &Attributes,
        operands: Vec<Vec<usize>>,
        results: Vec<Vec<usize>>,
        aliases: Vec<(usize, usize)>,
    ) -> Result<ForeignCall> {
        let attributes = Table::new(attributes)?;
        Ok(ForeignCall { target: target.to_owned(), attributes, operands, results, aliases, site: OnceLock::new() })
    }

    /// The call site, instantiated. Where two threads do that at once, the second one's is dropped.
    fn site(&self) -> Result<&Site> {
        if let Some(site) = self.site.get() {
            return Ok(site);
        }
        let bundle = targets::find(&self.target, "cpu").ok_or_else(|| {
            error!(
                Runtime,
                "NOT_FOUND: No FFI handler registered for {} on a platform Host: register it with \
                 jax.ffi.register_ffi_target(name, capsule, platform=\"cpu\") before the call",
                self.target
            )
        })?;
        let site = Site { bundle, instance: Slot::default() };
        if let Some(handler) = bundle.instantiate {
            let context =
                Context { instance: &site.instance, prepared: Slot::default(), initialized: Slot::default(), run: 0 };
            let mut frame = empty_frame();
            frame.attrs = self.attributes.raw();
            stage(handler, &mut frame, &context, XLA_FFI_STAGE_INSTANTIATE)?;
        }
        Ok(self.site.get_or_init(|| site))
    }

    /// Runs the stages of a call on operands and results as the handlers see them.
    fn run(&self, operands: &Buffers, results: &Buffers) -> Result<()> {
        let site = self.site()?;
        let context = Context {
            instance: &site.instance,
            prepared: Slot::default(),
            initialized: Slot::default(),
            run: RUNS.fetch_add(1, Relaxed),
        };
        let stages = [
            (site.bundle.prepare, XLA_FFI_STAGE_PREPARE),
            (site.bundle.initialize, XLA_FFI_STAGE_INITIALIZE),
            (Some(site.bundle.execute), XLA_FFI_STAGE_EXECUTE),
        ];
        for (handler, number) in stages {
            let Some(handler) = handler else { continue };
            let mut frame = empty_frame();
            frame.attrs = self.attributes.raw();
            frame.args.size = operands.raw.len() as i64;
            frame.args.types = operands.types.as_ptr();
            frame.args.args = operands.addresses.as_ptr();
            frame.rets.size = results.raw.len() as i64;
            frame.rets.types = results.types.as_ptr();
            frame.rets.rets = results.addresses.as_ptr();
            stage(handler, &mut frame, &context, number)?;
        }
        Ok(())
    }
}

/// Calls a handler, and waits for its end.
fn stage(handler: XLA_FFI_Handler, frame: &mut XLA_FFI_CallFrame, context: &Context<'_>, number: c_int) -> Result<()> {
    frame.stage = number;
    frame.ctx = std::ptr::from_ref(context).cast();
    // SAFETY: a handler of the interface, by the contract of `register`; what the frame points to outlives the call,
    // and the wait for what the handler left running
    let failure = unsafe {
        let failed = Failure::take(handler(&raw mut *frame));
        let waited = if frame.future.is_null() { Ok(()) } else { Future::wait(frame.future) };
        failed.or(waited.err())
    };
    failure.map_or(Ok(()), |f| Err(f.into_error()))
}

/// Operands or results as handlers see them.
struct Buffers {
    raw: Box<[XLA_FFI_Buffer]>,
    types: Vec<c_int>,
    addresses: Vec<*mut c_void>,
    _dims: Vec<Vec<i64>>,
}

impl Buffers {
    /// Buffers at `data`, of these dtypes and dimensions.
    fn new(dtypes: &[DType], dims: &[Vec<usize>], data: &[*mut u8]) -> Result<Buffers> {
        let mut dims: Vec<Vec<i64>> = dims.iter().map(|d| d.iter().map(|&n| n as i64).collect()).collect();
        let mut raw = Vec::with_capacity(dtypes.len());
        for ((&dtype, dims), &data) in dtypes.iter().zip(&mut dims).zip(data) {
            if dtype == DType::KeyFry {
                dims.push(2);
            }
            raw.push(XLA_FFI_Buffer {
                struct_size: size_of::<XLA_FFI_Buffer>(),
                extension_start: std::ptr::null_mut(),
                dtype: code(dtype)?,
                data: data.cast(),
                rank: dims.len() as i64,
                dims: dims.as_mut_ptr(),
            });
        }
        let mut raw = raw.into_boxed_slice();
        let addresses = raw.iter_mut().map(|b| std::ptr::from_mut(b).cast()).collect();
        let types = vec![XLA_FFI_BUFFER; raw.len()];
        Ok(Buffers { raw, types, addresses, _dims: dims })
    }
}

/// How many bits an element has, where that is less than a byte.
fn bits(dtype: DType) -> Option<usize> {
    match dtype {
        DType::I2 | DType::U2 => Some(2),
        DType::I4 | DType::U4 | DType::F4E2M1FN => Some(4),
        _ => None,
    }
}

/// Elements of `bits` bits, packed.
fn pack(bytes: &[u8], bits: usize) -> Result<Buffer> {
    let each = 8 / bits;
    let mut out = Buffer::allocate(bytes.len().div_ceil(each))?;
    for (packed, group) in out.bytes_mut().iter_mut().zip(bytes.chunks(each)) {
        let low = |b: u8| b & ((1 << bits) - 1);
        *packed = group.iter().enumerate().fold(0, |all, (i, &b)| all | low(b) << (i * bits));
    }
    Ok(out)
}

/// Elements of a dtype of `bits` bits, one a byte as the host has them: signed ones with their sign.
fn unpack(packed: &[u8], dtype: DType, bits: usize, out: &mut [u8]) {
    let each = 8 / bits;
    for (i, o) in out.iter_mut().enumerate() {
        let top = packed[i / each] << (8 - bits * (i % each + 1));
        *o = if dtype.is_signed() { (top.cast_signed() >> (8 - bits)).cast_unsigned() } else { top >> (8 - bits) };
    }
}

impl HostCall for ForeignCall {
    fn call(&self, args: &[(&Aval, &Buffer)], results: &[Aval]) -> Result<Vec<Buffer>> {
        let arg_types: Vec<Type> = args.iter().map(|(aval, _)| Type::from(*aval)).collect();
        let result_types: Vec<Type> = results.iter().map(Type::from).collect();
        let ins: Vec<(&Type, &[u8])> = arg_types.iter().zip(args).map(|(ty, (_, b))| (ty, b.bytes())).collect();
        let mut outs: Vec<Buffer> = results.iter().map(|r| Buffer::allocate(r.bytes())).collect::<Result<_>>()?;
        let mut places: Vec<(&Type, &mut [u8])> =
            result_types.iter().zip(&mut outs).map(|(ty, b)| (ty, b.bytes_mut())).collect();
        self.call_in_place(&ins, &mut places)?;
        Ok(outs)
    }

    fn call_in_place(&self, args: &[(&Type, &[u8])], results: &mut [(&Type, &mut [u8])]) -> Result<bool> {
        let mut packed_args = Vec::new();
        let mut ins: Vec<*mut u8> = Vec::with_capacity(args.len());
        for (ty, bytes) in args {
            ins.push(match bits(ty.dtype) {
                None => bytes.as_ptr().cast_mut(),
                Some(bits) => {
                    packed_args.push(pack(bytes, bits)?);
                    packed_args.last().map_or(std::ptr::null_mut(), |b| b.as_ptr().cast_mut())
                }
            });
        }
        let mut packed_results: Vec<Option<Buffer>> = Vec::with_capacity(results.len());
        for (ty, _) in results.iter() {
            packed_results.push(bits(ty.dtype).map(|bits| pack(&vec![0; ty.size()], bits)).transpose()?);
        }
        let outs: Vec<*mut u8> = results
            .iter_mut()
            .zip(&mut packed_results)
            .map(|((_, bytes), packed)| packed.as_mut().map_or(bytes.as_mut_ptr(), Buffer::as_mut_ptr))
            .collect();
        for &(i, o) in &self.aliases {
            let ty = args[i].0;
            let bytes = bits(ty.dtype).map_or(ty.bytes(), |bits| ty.size().div_ceil(8 / bits));
            // SAFETY: an operand and a result of one type, which do not overlap
            unsafe { std::ptr::copy_nonoverlapping(ins[i], outs[o], bytes) };
            ins[i] = outs[o];
        }
        let dtypes = |types: Vec<&Type>| types.iter().map(|ty| ty.dtype).collect::<Vec<_>>();
        let operands = Buffers::new(&dtypes(args.iter().map(|a| a.0).collect()), &self.operands, &ins)?;
        let places = Buffers::new(&dtypes(results.iter().map(|r| r.0).collect()), &self.results, &outs)?;
        self.run(&operands, &places)?;
        for ((ty, bytes), packed) in results.iter_mut().zip(&packed_results) {
            if let (Some(packed), Some(bits)) = (packed, bits(ty.dtype)) {
                unpack(packed.bytes(), ty.dtype, bits, bytes);
            }
        }
        Ok(true)
    }

    fn name(&self) -> String {
        format!("ffi_call[target_name={}]", self.target)
    }

    fn target(&self) -> Option<&str> {
        Some(&self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_come_back() {
        for (dtype, bits, values) in [(DType::I4, 4, [1, 2, 3, 0xfc, 5]), (DType::I2, 2, [1, 0, 0xff, 0xfe, 1])] {
            let packed = pack(&values, bits).unwrap();
            let mut back = [0; 5];
            unpack(packed.bytes(), dtype, bits, &mut back);
            assert_eq!(back, values);
        }
        assert_eq!(pack(&[1, 2, 3, 0xfc, 5], 4).unwrap().bytes(), [0x21, 0xc3, 5]);
    }
}
