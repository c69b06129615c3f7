//! Laws of pytrees, on random trees of the plain Rust host.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrax_tree::prefix::{What, difference, differences, leaf_counts, mismatch};
use ferrax_tree::rust::{Class, RustHost, RustTreeDef, Step, Tree};
use ferrax_tree::{TreeDef, flatten, flatten_up_to, flatten_with_path, matches};
use proptest::prelude::*;

type T = Tree<i32>;

fn class(name: &str, fields: usize) -> Class {
    let fields = (0..fields).map(|i| Arc::from(format!("f{i}"))).collect();
    Class { name: Arc::from(name), fields }
}

fn trees() -> impl Strategy<Value = T> {
    let leaf = prop_oneof![any::<i32>().prop_map(Tree::Leaf), Just(Tree::None)];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let many = prop::collection::vec(inner.clone(), 0..5);
        let keyed = prop::collection::btree_map("[a-d]{1,2}", inner, 0..5);
        prop_oneof![
            many.clone().prop_map(Tree::Tuple),
            many.clone().prop_map(Tree::List),
            keyed.prop_map(|m| Tree::Dict(m.into_iter().map(|(k, v)| (k.into(), v)).collect::<BTreeMap<_, _>>())),
            many.clone().prop_map(|v| Tree::Struct(class("P", v.len()), v)),
            ("[xy]", many).prop_map(|(aux, v)| Tree::Tagged("C".into(), aux.into(), v)),
        ]
    })
}

fn def(tree: &T) -> RustTreeDef {
    tree.structure().unwrap()
}

/// The tree with some subtrees replaced by leaves.
fn prune(tree: &T, choose: &mut impl FnMut() -> bool) -> T {
    if choose() {
        return Tree::Leaf(0);
    }
    let mut all = |v: &[T]| v.iter().map(|t| prune(t, choose)).collect();
    match tree {
        Tree::Leaf(x) => Tree::Leaf(*x),
        Tree::None => Tree::None,
        Tree::Tuple(v) => Tree::Tuple(all(v)),
        Tree::List(v) => Tree::List(all(v)),
        Tree::Struct(c, v) => Tree::Struct(c.clone(), all(v)),
        Tree::Tagged(n, a, v) => Tree::Tagged(n.clone(), a.clone(), all(v)),
        Tree::Dict(m) => Tree::Dict(m.iter().map(|(k, v)| (k.clone(), prune(v, choose))).collect()),
    }
}

proptest! {
    #[test]
    fn unflatten_inverts_flatten(tree in trees()) {
        let (leaves, treedef) = tree.flatten().unwrap();
        let leaves: Vec<i32> = leaves.into_iter().copied().collect();
        prop_assert_eq!(leaves.len(), treedef.num_leaves());
        prop_assert_eq!(Tree::unflatten(&treedef, leaves).unwrap(), tree);
    }

    #[test]
    fn equal_means_same_hash(a in trees(), b in trees()) {
        let (a, b) = (def(&a), def(&b));
        prop_assert!(a.equals((), &a.clone()).unwrap());
        let same = a.equals((), &b).unwrap();
        prop_assert_eq!(same, a.text(()).unwrap() == b.text(()).unwrap());
        if same {
            prop_assert_eq!(a.hash(()).unwrap(), b.hash(()).unwrap());
        }
    }

    #[test]
    fn a_rebuilt_structure_is_the_same(tree in trees()) {
        let a = def(&tree);
        let b = TreeDef::from_children(a.kind().to_kind(), &a.children());
        prop_assert!(a.equals((), &b).unwrap());
        prop_assert_eq!(a.hash(()).unwrap(), b.hash(()).unwrap());
    }

    #[test]
    fn compose_replaces_leaves(outer in trees(), inner in trees()) {
        let (o, i) = (def(&outer), def(&inner));
        let composed = o.compose(&i);
        let nested = {
            let n = o.num_leaves();
            let filled: T = ferrax_tree::unflatten((), &o, std::iter::repeat_n(inner, n)).unwrap();
            def(&filled)
        };
        prop_assert!(composed.equals((), &nested).unwrap());
        prop_assert_eq!(composed.num_leaves(), o.num_leaves() * i.num_leaves());
    }

    #[test]
    fn a_pruned_tree_is_a_prefix(tree in trees(), bits in prop::collection::vec(any::<bool>(), 64)) {
        let mut bits = bits.into_iter().cycle();
        let prefix = prune(&tree, &mut || bits.next().unwrap());
        let (p, t) = (def(&prefix), def(&tree));
        let counts = leaf_counts((), &p, &t).unwrap().ok().unwrap();
        prop_assert_eq!(counts.len(), p.num_leaves());
        prop_assert_eq!(counts.iter().sum::<usize>(), t.num_leaves());
        prop_assert!(difference((), &p, &t).unwrap().is_none());
        prop_assert!(mismatch::<RustHost, _>((), &prefix, &tree, &mut |_| Ok(false)).unwrap().is_none());
        let mut parts: Vec<&T> = Vec::new();
        flatten_up_to((), &p, &tree, &mut |x| parts.push(x)).unwrap();
        prop_assert_eq!(parts.iter().map(|s| def(s).num_leaves()).collect::<Vec<_>>(), counts);
        let whole: T = ferrax_tree::unflatten((), &p, parts.into_iter().cloned()).unwrap();
        prop_assert_eq!(whole, tree);
    }

    #[test]
    fn matches_is_equality_of_structures(a in trees(), b in trees()) {
        let mut leaves: Vec<&T> = Vec::new();
        prop_assert!(matches((), &def(&a), &a, &mut |x| leaves.push(x)).unwrap());
        prop_assert_eq!(leaves.len(), def(&a).num_leaves());
        let same = def(&a).equals((), &def(&b)).unwrap();
        prop_assert_eq!(matches((), &def(&a), &b, &mut |_| ()).unwrap(), same);
        prop_assert_eq!(differences((), &def(&a), &def(&b), 3).unwrap().0.is_empty(), same);
    }

    #[test]
    fn paths_come_in_the_order_of_leaves(tree in trees()) {
        let (leaves, treedef) = tree.flatten().unwrap();
        let mut found: Vec<&i32> = Vec::new();
        let mut paths: Vec<Vec<Step>> = Vec::new();
        let again = flatten_with_path::<RustHost, _>((), &tree, &mut |path, leaf| {
            paths.push(path.to_vec());
            found.extend(leaf.as_leaf());
            Ok(())
        }, None).unwrap();
        prop_assert!(again.equals((), &treedef).unwrap());
        prop_assert_eq!(found, leaves);
        for (i, path) in paths.iter().enumerate() {
            prop_assert_eq!(&treedef.path_of_leaf((), i).unwrap(), path);
        }
        prop_assert!(treedef.path_of_leaf((), paths.len()).is_err());
        let distinct: std::collections::HashSet<_> = paths.iter().collect();
        prop_assert_eq!(distinct.len(), paths.len());
    }
}

fn leaf() -> T {
    Tree::Leaf(1)
}

#[test]
fn text() {
    let tree = Tree::dict([
        ("a", Tree::Tuple(vec![leaf()])),
        ("b", Tree::List(vec![leaf(), Tree::None])),
        ("c", Tree::Struct(class("P", 1), vec![leaf()])),
        ("d", Tree::Tagged("C".into(), "x".into(), vec![])),
    ]);
    let text = "{a: (*,), b: [*, None], c: CustomNode(P, [*]), d: CustomNode(C[x], [])}";
    assert_eq!(def(&tree).text(()).unwrap(), text);
    assert_eq!(def(&tree).short_text((), text.len()).unwrap(), text);
    assert_eq!(def(&tree).short_text((), 12).unwrap(), "{a: (*,), b: [… 2 more], … 2 more}");
}

#[test]
fn differences_are_bounded() {
    let lists = |n| def(&Tree::Tuple((0..9).map(|_| Tree::List(vec![leaf(); n])).collect()));
    let (a, b) = (lists(1), lists(2));
    let (found, more) = differences((), &a, &b, 2).unwrap();
    assert_eq!(found.iter().map(|d| d.path.clone()).collect::<Vec<_>>(), [[Step::Index(0)], [Step::Index(1)]]);
    assert_eq!(more, 7);
}

#[test]
fn leaf_counts_must_fit() {
    let treedef = def(&Tree::Tuple(vec![leaf(), leaf()]));
    let text = |n| Tree::unflatten(&treedef, vec![0; n]).unwrap_err().to_string();
    assert_eq!(text(1), "Too few leaves for PyTreeDef; expected 2, got 1");
    assert_eq!(text(3), "Too many leaves for PyTreeDef; expected 2.");
}

#[test]
fn differences_have_paths() {
    let a = Tree::Tuple(vec![leaf(), Tree::dict([("k", Tree::List(vec![leaf()]))])]);
    let b = Tree::Tuple(vec![leaf(), Tree::dict([("k", Tree::List(vec![leaf(), leaf()]))])]);
    let (a, b) = (def(&a), def(&b));
    let (found, more) = differences((), &a, &b, 5).unwrap();
    assert_eq!((found.len(), more), (1, 0));
    assert_eq!(found[0].what(), What::Lengths);
    assert_eq!(found[0].path.iter().map(ToString::to_string).collect::<String>(), "[1][\"k\"]");
}

#[test]
fn flatten_up_to_says_what_is_wrong() {
    let treedef = def(&Tree::List(vec![leaf(), leaf()]));
    let wrong = Tree::Tuple(vec![leaf()]);
    let error = flatten_up_to((), &treedef, &wrong, &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "expected [*, *], got (*,)");
}

#[test]
fn is_leaf_stops_the_descent() {
    let tree = Tree::Tuple(vec![Tree::List(vec![leaf()]), leaf()]);
    let mut leaves: Vec<&T> = Vec::new();
    let mut is_list = |t: &&T| Ok(matches!(t, Tree::List(_)));
    let treedef = flatten::<RustHost, _, _>((), &tree, &mut |x| leaves.push(x), Some(&mut is_list)).unwrap();
    assert_eq!(treedef.text(()).unwrap(), "(*, *)");
    assert_eq!(*leaves[0], Tree::List(vec![leaf()]));
}

#[test]
fn a_very_deep_tree_is_an_error() {
    let deep = (0..1001).fold(leaf(), |t, _| Tree::Tuple(vec![t]));
    assert!(deep.flatten().unwrap_err().to_string().contains("too deep"));
}
