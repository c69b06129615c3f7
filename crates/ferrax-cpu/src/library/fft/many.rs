//! Many transforms at once: which of them blocks take, in which tasks, with which vectors.

use super::block::{self, Block, Way};
use super::butterfly::Constant;
use super::kept::Kept;
use super::plan::Plan;
use crate::pool::{self, Disjoint};
use crate::simd::{dispatch, with_lanes};
use ferrax_base::{Buffer, Result};
use ferrax_linalg::fft::{BackwardPlan, ComplexPlan, ForwardPlan, Fourier};
use std::sync::Arc;

/// A type of numbers that blocks and `ferrax-linalg` transform.
pub trait Element: Constant + Fourier {
    /// Lanes of a block.
    fn lanes() -> usize;
    /// # Safety
    /// As for [`block::run`].
    unsafe fn run(b: &Block<'_, Self>);
    /// The kept plan of blocks.
    fn plan(n: usize, halves: bool) -> Option<Arc<Plan<Self>>>;
    /// The kept plans of rows, of one kind each.
    fn complex(n: usize, inverse: bool) -> Arc<ComplexPlan<Self>>;
    fn forward(n: usize) -> Arc<ForwardPlan<Self>>;
    fn backward(n: usize) -> Arc<BackwardPlan<Self>>;
}

macro_rules! elements {
    ($($T:ty, $wide:ident, $half:ident;)*) => {$(
        impl Element for $T {
            fn lanes() -> usize {
                use crate::simd::lanes::Lanes;
                with_lanes!($T, $wide, $half, L => L::N)
            }
            unsafe fn run(b: &Block<'_, $T>) {
                dispatch!($T, $wide, $half, block::run, b: &Block<'_, $T>, 2 * b.count <= <$T>::lanes());
            }
            fn plan(n: usize, halves: bool) -> Option<Arc<Plan<Self>>> {
                static PLANS: Kept<(usize, bool), Option<Arc<Plan<$T>>>> = Kept::new();
                PLANS.get((n, halves), || Plan::new(n, halves).map(Arc::new))
            }
            fn complex(n: usize, inverse: bool) -> Arc<ComplexPlan<Self>> {
                static PLANS: Kept<(usize, bool), Arc<ComplexPlan<$T>>> = Kept::new();
                PLANS.get((n, inverse), || Arc::new(<$T>::complex_plan(n, inverse)))
            }
            fn forward(n: usize) -> Arc<ForwardPlan<Self>> {
                static PLANS: Kept<usize, Arc<ForwardPlan<$T>>> = Kept::new();
                PLANS.get(n, || Arc::new(<$T>::forward_plan(n)))
            }
            fn backward(n: usize) -> Arc<BackwardPlan<Self>> {
                static PLANS: Kept<usize, Arc<BackwardPlan<$T>>> = Kept::new();
                PLANS.get(n, || Arc::new(<$T>::backward_plan(n)))
            }
        }
    )*};
}
elements! {
    f32, __m512, __m256;
    f64, __m512d, __m256d;
}

/// Fewer transforms than these are left to the other algorithms, one by one, unless they are no longer than `SHORT`.
const FEW: usize = 8;
const SHORT: usize = 64;
/// Longer ones than these are, too.
const LONG: usize = 1 << 14;
/// Elements of a task, about.
const TASK: usize = 1 << 14;

/// The plan for `count` transforms, of length n or of n real numbers, if blocks of them are worth it.
pub fn plan_of<T: Element>(way: Way, n: usize, count: usize) -> Option<Arc<Plan<T>>> {
    let halves = !matches!(way, Way::Complex { .. }) && n.is_multiple_of(2);
    if n == 0 || n > LONG || (count < FEW && n > SHORT) {
        return None;
    }
    T::plan(if halves { n / 2 } else { n }, halves)
}

/// `count` transforms, with results times `scale`; in place where `src` is `dst`, which complex ones may be.
#[derive(Clone, Copy)]
pub struct Many<'a, T> {
    pub plan: &'a Plan<T>,
    pub way: Way,
    pub src: *const T,
    pub dst: *mut T,
    pub count: usize,
    pub scale: T,
}
// SAFETY: tasks read the source, and write disjoint parts of the result.
unsafe impl<T: Sync> Sync for Many<'_, T> {}

impl<T: Element> Many<'_, T> {
    /// Runs the transforms, on several threads where worth it.
    ///
    /// # Safety
    /// As for [`block::run`], for all of the transforms.
    pub unsafe fn run(&self) -> Result<()> {
        // SAFETY: the caller's contract; blocks have as many transforms as the vectors lanes.
        unsafe { self.run_with(T::lanes(), T::run) }
    }

    /// Runs the transforms in blocks of `lanes` by `run`.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn run_with(&self, lanes: usize, run: unsafe fn(&Block<'_, T>)) -> Result<()> {
        let Many { plan, way, count, scale, .. } = *self;
        // Blocks of neighbouring columns end with them.
        let (columns, group) = match way {
            Way::Complex { inner, .. } if inner > 1 && 2 * inner >= lanes => (true, inner),
            _ => (false, count),
        };
        let per_group = group.div_ceil(lanes);
        let blocks = count / group * per_group;
        let step = (TASK / (plan.n * lanes)).max(1);
        let tasks = blocks.div_ceil(step);
        let size = (block::lines(plan) * lanes * size_of::<T>()).next_multiple_of(64);
        let mut scratch = Buffer::allocate(size * pool::threads())?;
        let room = Disjoint(scratch.as_mut_ptr());
        pool::share(estimate(plan.n, count), tasks, &|worker, task| {
            for i in task * step..blocks.min((task + 1) * step) {
                let within = i % per_group * lanes;
                let (first, count) = (i / per_group * group + within, lanes.min(group - within));
                let scratch = room.at(worker * size).cast();
                // SAFETY: the caller's contract; each worker has scratch of its own, and blocks are disjoint.
                unsafe {
                    run(&Block { plan, way, src: self.src, dst: self.dst, scale, first, count, columns, scratch });
                }
            }
        });
        Ok(())
    }
}

/// Nanoseconds that transforms take, about.
fn estimate(n: usize, count: usize) -> u64 {
    (n * count * (n.ilog2() as usize + 6) / 16) as u64
}
