//! Structures read from bytes: what was written comes back; whatever else there is ends in an error or in a structure no
//! larger than its bytes.

use ferrax_base::{ErrorKind, Result};
use ferrax_tree::postorder::Assembler;
use ferrax_tree::proto::{DICT, LEAF, LIST, MAX_NODES, NONE, TUPLE, decode};
use ferrax_tree::rust::{RustHost, RustTreeDef, Tree};
use ferrax_tree::{Kind, KindRef};
use proptest::prelude::*;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn node(tag: u64, arity: usize, keys: &[u64]) -> Vec<u8> {
    let mut node = Vec::new();
    node.push(1 << 3);
    varint(&mut node, arity as u64);
    node.push(2 << 3);
    varint(&mut node, tag);
    let mut ids = Vec::new();
    keys.iter().for_each(|k| varint(&mut ids, *k));
    let mut packed = Vec::new();
    field(&mut packed, 1, &ids);
    field(&mut node, 3, &packed);
    let mut out = Vec::new();
    field(&mut out, 1, &node);
    out
}

fn encode(tree: &RustTreeDef) -> Vec<u8> {
    let (mut out, mut texts) = (Vec::new(), Vec::new());
    for (kind, arity) in tree.postorder() {
        let (tag, keys) = match kind {
            KindRef::Leaf => (LEAF, Vec::new()),
            KindRef::None => (NONE, Vec::new()),
            KindRef::List => (LIST, Vec::new()),
            KindRef::Tuple => (TUPLE, Vec::new()),
            KindRef::Dict(keys) => {
                texts.extend(keys.iter().cloned());
                (DICT, (texts.len() - keys.len()..texts.len()).map(|i| i as u64).collect())
            }
            KindRef::Named(_) | KindRef::Custom(..) => unreachable!("the trees here have none"),
        };
        out.extend(node(tag, arity, &keys));
    }
    texts.iter().for_each(|t| field(&mut out, 2, t.as_bytes()));
    out
}

fn read(bytes: &[u8]) -> Result<RustTreeDef> {
    decode::<RustHost>((), bytes, |text| text.into())
}

/// An error of the caller's input, or a structure that its bytes can hold and that can be used.
fn harmless(bytes: &[u8]) {
    match read(bytes) {
        Ok(tree) => {
            assert!(2 * tree.num_nodes() <= bytes.len(), "{} nodes of {} bytes", tree.num_nodes(), bytes.len());
            let leaves: Vec<i32> = vec![0; tree.num_leaves()];
            assert!(tree.equals((), &tree).unwrap() && tree.hash(()).is_ok());
            Tree::unflatten(&tree, leaves).unwrap();
        }
        Err(e) => assert!(matches!(&*e.0, ErrorKind::Value(_) | ErrorKind::Runtime(_)), "{e}"),
    }
}

fn trees() -> impl Strategy<Value = Tree<i32>> {
    let leaf = prop_oneof![any::<i32>().prop_map(Tree::Leaf), Just(Tree::None)];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let many = prop::collection::vec(inner.clone(), 0..5);
        let keyed = prop::collection::btree_map("[a-d]{1,2}", inner, 0..5);
        prop_oneof![
            many.clone().prop_map(Tree::Tuple),
            many.prop_map(Tree::List),
            keyed.prop_map(|m| Tree::Dict(m.into_iter().map(|(k, v)| (k.into(), v)).collect())),
        ]
    })
}

/// What is done to good bytes.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Cut(usize, usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(i, b)| Change::Flip(i, b)),
        (any::<usize>(), 1..5usize).prop_map(|(i, n)| Change::Cut(i, n)),
        (any::<usize>(), prop::collection::vec(prop_oneof![Just(0x80), Just(0xFF), any::<u8>()], 1..11))
            .prop_map(|(i, b)| Change::Insert(i, b)),
        (any::<usize>(), 1..40usize).prop_map(|(i, n)| Change::Repeat(i, n)),
    ];
    prop::collection::vec(one, 1..8)
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let n = bytes.len().max(1);
        match change {
            Change::Flip(i, b) if !bytes.is_empty() => bytes[i % n] = *b,
            Change::Cut(i, k) => drop(bytes.drain((i % n).min(bytes.len())..(i % n + k).min(bytes.len()))),
            Change::Insert(i, new) => {
                drop(bytes.splice((i % n).min(bytes.len())..(i % n).min(bytes.len()), new.clone()));
            }
            Change::Repeat(i, k) => {
                let part = bytes[(i % n).min(bytes.len())..(i % n + k).min(bytes.len())].to_vec();
                bytes.extend(part);
            }
            Change::Flip(..) => {}
        }
    }
    bytes
}

proptest! {
    #[test]
    fn what_was_written_comes_back(tree in trees()) {
        let tree = tree.structure().unwrap();
        let again = read(&encode(&tree)).unwrap();
        prop_assert!(again.equals((), &tree).unwrap());
    }

    #[test]
    fn changed_bytes_do_no_harm(tree in trees(), changes in changes()) {
        harmless(&changed(encode(&tree.structure().unwrap()), &changes));
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        harmless(&bytes);
    }
}

/// `count` nodes, each with the one before as its child.
fn chain(count: usize) -> Vec<u8> {
    let mut bytes = node(LEAF, 0, &[]);
    (1..count).for_each(|_| bytes.extend(node(LIST, 1, &[])));
    bytes
}

#[test]
fn depth_and_nodes_are_bounded() {
    assert_eq!(read(&chain(1000)).unwrap().num_nodes(), 1000);
    for count in [1001, 100_000, MAX_NODES + 2] {
        let text = read(&chain(count)).unwrap_err().to_string();
        assert!(text.contains("more than 1000 deep"), "{text}");
    }
    let mut wide: Vec<u8> = node(LEAF, 0, &[]).repeat(MAX_NODES - 1);
    wide.extend(node(TUPLE, MAX_NODES - 1, &[]));
    assert_eq!(read(&wide).unwrap().num_leaves(), MAX_NODES - 1);
    wide.splice(0..0, node(LEAF, 0, &[]));
    let text = read(&wide).unwrap_err().to_string();
    assert!(text.contains("more than 262144 nodes"), "{text}");
}

#[test]
fn nodes_have_the_children_that_they_can_have() {
    let leaf = node(LEAF, 0, &[]);
    let after = |node: Vec<u8>| [leaf.clone(), leaf.clone(), node].concat();
    for bytes in [
        after(node(LEAF, 2, &[])),
        after(node(NONE, 2, &[])),
        after(node(LIST, 3, &[])),
        after(node(LIST, usize::MAX, &[])),
        after(node(LIST, 1, &[])),
        after(node(DICT, 2, &[0, 7])),
        after(node(DICT, 2, &[0])),
        after(node(LIST, 2, &[0, 0])),
        after(node(9, 2, &[])),
        Vec::new(),
    ] {
        assert!(read(&bytes).is_err(), "{bytes:?}");
    }
    let mut nodes = Assembler::<RustHost>::new(10, 10);
    nodes.add(None, 0).unwrap();
    assert!(nodes.add(Some(Kind::Dict(["a".into(), "b".into()].into())), 1).is_err());
}

#[test]
fn texts_that_many_keys_share_are_read_once() {
    let mut bytes: Vec<u8> = node(LEAF, 0, &[]).repeat(20_000);
    bytes.extend(node(DICT, 20_000, &vec![0; 20_000]));
    field(&mut bytes, 2, &vec![b'k'; 1 << 20]);
    let made = std::cell::Cell::new(0);
    let tree = decode::<RustHost>((), &bytes, |text| {
        made.set(made.get() + 1);
        text.into()
    });
    assert_eq!((tree.unwrap().num_leaves(), made.get()), (20_000, 1));
}
