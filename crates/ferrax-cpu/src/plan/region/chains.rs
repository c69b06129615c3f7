//! The order of a phase's nodes.
//!
//! A program of the machine has one accumulator: a node that follows one which it reads finds an operand there, and what nobody
//! else reads is never stored. So a node's result is followed to one of its readers where one can run, and only then
//! is the first of the others taken, in the order of the graph. Independent chains that stand side by side there,
//! as those of the rows of a state do, run one after the other. No bit of a result changes.

use crate::plan::{NONE, Planner};
use ferrax_loops::ValueId;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fewer nodes stay as they are.
const FROM: u32 = 4;

/// What is known of the members of a phase, by their numbers in it.
struct Links {
    /// The first link to a reader, and for each link the reader and the next one.
    first: Vec<u32>,
    links: Vec<(u32, u32)>,
    /// The members that each reads.
    reads: Vec<SmallVec<[u32; 3]>>,
    /// How many of those are still to run.
    missing: Vec<u32>,
    /// Readers that are still to run.
    left: Vec<u32>,
    done: Vec<bool>,
}

impl Planner<'_> {
    /// Puts the members of a phase in the order in which they run.
    pub(super) fn chain(&mut self, start: u32, end: u32) {
        let follows = |at: u32| {
            let before = self.member_node(at - 1).first.0;
            self.member_node(at).inputs.iter().any(|&v| self.order.place(v).root == before)
        };
        if end - start < FROM || (start + 1..end).all(follows) {
            return;
        }
        let order = self.links(start, end).order();
        let members: Vec<_> = order.iter().map(|&k| self.order.members[(start + k) as usize]).collect();
        self.order.members[start as usize..end as usize].copy_from_slice(&members);
    }

    fn links(&mut self, start: u32, end: u32) -> Links {
        let n = (end - start) as usize;
        let mut l = Links {
            first: vec![NONE; n],
            links: Vec::with_capacity(2 * n),
            reads: Vec::with_capacity(n),
            missing: Vec::with_capacity(n),
            left: vec![0; n],
            done: vec![false; n],
        };
        for k in 0..end - start {
            let node = &self.g.nodes[self.order.members[(start + k) as usize].node as usize];
            let made = |v: &ValueId| self.region.member[self.order.place(*v).root as usize];
            let reads: SmallVec<[u32; 3]> = node.inputs.iter().map(made).filter(|&m| m != NONE).collect();
            for &m in &reads {
                l.links.push((k, l.first[m as usize]));
                l.first[m as usize] = l.links.len() as u32 - 1;
                l.left[m as usize] += 1;
            }
            l.missing.push(reads.len() as u32);
            l.reads.push(reads);
            self.region.member[node.first.0 as usize] = k;
        }
        for at in start..end {
            let made = self.member_node(at).first.0;
            self.region.member[made as usize] = NONE;
        }
        l
    }
}

impl Links {
    fn order(mut self) -> Vec<u32> {
        let n = self.reads.len() as u32;
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..n).filter(|&k| self.missing[k as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(n as usize);
        while let Some(Reverse(start)) = ready.pop() {
            let mut next = Some(start).filter(|&k| !self.done[k as usize]);
            while let Some(at) = next {
                order.push(at);
                self.run(at, &mut ready);
                next = self.follower(at);
            }
        }
        order
    }

    fn run(&mut self, at: u32, ready: &mut BinaryHeap<Reverse<u32>>) {
        self.done[at as usize] = true;
        for &m in &self.reads[at as usize] {
            self.left[m as usize] -= 1;
        }
        let mut link = self.first[at as usize];
        while link != NONE {
            let (reader, next) = self.links[link as usize];
            self.missing[reader as usize] -= 1;
            if self.missing[reader as usize] == 0 {
                ready.push(Reverse(reader));
            }
            link = next;
        }
    }

    /// The reader of a member that runs next: that which is the last for most of its operands, else the first.
    fn follower(&self, at: u32) -> Option<u32> {
        let last = |k: u32| {
            let reads = &self.reads[k as usize];
            reads.iter().filter(|m| self.left[**m as usize] as usize == reads.iter().filter(|r| r == m).count()).count()
        };
        let link = |at: u32| self.links.get(at as usize).copied();
        let readers = std::iter::successors(link(self.first[at as usize]), |&(_, next)| link(next)).map(|(k, _)| k);
        readers
            .filter(|&k| !self.done[k as usize] && self.missing[k as usize] == 0)
            .max_by_key(|&k| (last(k), Reverse(k)))
    }
}
