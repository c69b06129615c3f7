//! The order of a phase's nodes.
//!
//! A program of the machine has one accumulator: a node that follows one which it reads finds an operand there, and what nobody
//! else reads is never stored. So a node's result is followed to one of its readers where one can run, and only then
//! is the first of the others taken, in the order of the graph. Independent chains that stand side by side there,
//! as those of the rows of a state do, run one after the other. No bit of a result changes.

use crate::plan::{NONE, Planner};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fewer nodes stay as they are.
const FROM: u32 = 4;

/// A member of a phase: who reads it, which members it reads, and how many of those are still to run.
#[derive(Default)]
struct Link {
    readers: SmallVec<[u32; 4]>,
    reads: SmallVec<[u32; 3]>,
    missing: u32,
    /// Readers that are still to run.
    left: u32,
    done: bool,
}

impl Planner<'_> {
    /// Puts the members of a phase in the order in which they run.
    pub(super) fn chain(&mut self, start: u32, end: u32) {
        if end - start < FROM {
            return;
        }
        let mut links = self.links(start, end);
        let ready = (0..end - start).filter(|&k| links[k as usize].missing == 0);
        let mut ready: BinaryHeap<Reverse<u32>> = ready.map(Reverse).collect();
        let mut order: Vec<u32> = Vec::with_capacity(links.len());
        let mut next = ready.pop().map(|k| k.0);
        while let Some(at) = next {
            order.push(at);
            links[at as usize].done = true;
            for k in 0..links[at as usize].reads.len() {
                let read = links[at as usize].reads[k];
                links[read as usize].left -= 1;
            }
            for k in 0..links[at as usize].readers.len() {
                let reader = links[at as usize].readers[k];
                links[reader as usize].missing -= 1;
                if links[reader as usize].missing == 0 {
                    ready.push(Reverse(reader));
                }
            }
            next = follower(&links, at)
                .or_else(|| std::iter::from_fn(|| ready.pop()).map(|k| k.0).find(|&k| !links[k as usize].done));
        }
        let members: Vec<_> = order.iter().map(|&k| self.order.members[(start + k) as usize]).collect();
        self.order.members[start as usize..end as usize].copy_from_slice(&members);
    }

    fn links(&mut self, start: u32, end: u32) -> Vec<Link> {
        let mut links: Vec<Link> = (start..end).map(|_| Link::default()).collect();
        for at in start..end {
            let made = self.member_node(at).first.0;
            self.region.member[made as usize] = at - start;
        }
        for at in start..end {
            let node = &self.g.nodes[self.order.members[at as usize].node as usize];
            for &v in &node.inputs {
                let made = self.region.member[self.order.place(v).root as usize];
                if made != NONE {
                    links[made as usize].readers.push(at - start);
                    links[made as usize].left += 1;
                    links[(at - start) as usize].reads.push(made);
                    links[(at - start) as usize].missing += 1;
                }
            }
        }
        for at in start..end {
            let made = self.member_node(at).first.0;
            self.region.member[made as usize] = NONE;
        }
        links
    }
}

/// The reader of a member that runs next: that which is the last for most of its operands, else the first.
fn follower(links: &[Link], at: u32) -> Option<u32> {
    let last = |k: u32| {
        let reads = &links[k as usize].reads;
        reads.iter().filter(|r| links[**r as usize].left as usize == reads.iter().filter(|q| q == r).count()).count()
    };
    let readers = links[at as usize].readers.iter().copied();
    readers
        .filter(|&k| !links[k as usize].done && links[k as usize].missing == 0)
        .max_by_key(|&k| (last(k), Reverse(k)))
}
