"""The table of an einsum's steps, beside JAX's."""

import numpy as np
import pytest

import ferrax.numpy as jnp

TERMS = [
    ("ij,jk,kl->il", (2, 10), (10, 5), (5, 20)),
    ("ij,jk,k->i", (9, 9), (9, 9), (9,)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 40), (40, 5), (5, 60)),
    ("i,i->", (3,), (3,)),
    ("ij->ji", (2, 3)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ji->", (2, 3), (3, 2)),
    ("ab,cb->ac", (2, 3), (4, 3)),
    ("abc,cb->a", (2, 3, 4), (4, 3)),
    ("ijk,kjl->il", (2, 3, 4), (4, 3, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...a,...ab->...b", (2, 3), (2, 3, 4)),
    ("...i,...i->...", (2, 3, 4), (2, 3, 4)),
    ("ij,j->", (2, 3), (3,)),
    ("ii,i->i", (3, 3), (3,)),
    ("ij,k->ijk", (2, 3), (4,)),
    ("ij,jk", (2, 3), (3, 4)),
]


@pytest.mark.parametrize("subscripts, shapes", [(t, shapes) for t, *shapes in TERMS])
def test_the_table(subscripts, shapes):
    peer = pytest.importorskip("jax").numpy
    path, info = jnp.einsum_path(subscripts, *map(jnp.ones, shapes))
    wanted, theirs = peer.einsum_path(subscripts, *map(peer.ones, shapes))
    assert path == wanted and repr(info) == str(theirs)
    for name in ("eq", "naive_cost", "opt_cost", "largest_intermediate"):
        assert getattr(info, name) == getattr(theirs, name), name


#: Contractions of random operands, seeds of which decide among equals.
SEARCHES = ["auto", "optimal", True, "greedy", "eager", "branch-all", "branch-2", "branch-1"]


def _contraction(seed):
    rng = np.random.RandomState(seed)
    letters = list("abcdefghijkl"[: rng.randint(3, 12)])
    count = rng.randint(3, 17) if seed % 4 == 0 else rng.randint(3, 8)
    most = min(4, len(letters))
    terms = ["".join(sorted(rng.choice(letters, rng.randint(0, most + 1), replace=False))) for _ in range(count)]
    kept = "".join(c for c in sorted(set("".join(terms))) if rng.rand() < 0.3)
    sizes = {c: int(rng.choice([1, 2, 3, 4, 5])) for c in letters}
    return ",".join(terms) + "->" + kept, [np.ones([sizes[c] for c in t], np.float32) for t in terms]


@pytest.mark.parametrize("seed", range(60))
def test_the_order_among_equals(seed):
    peer = pytest.importorskip("jax").numpy
    subscripts, operands = _contraction(seed)
    for search in SEARCHES:
        if len(operands) > 6 and search in ("optimal", True, "branch-all"):
            continue  # these take long
        ours, theirs = (np_.einsum_path(subscripts, *operands, optimize=search)[0] for np_ in (jnp, peer))
        assert ours == theirs, (subscripts, search)


def test_names_of_searches():
    operands = [np.ones(2, np.float32)] * 3
    with pytest.raises(KeyError, match="Path optimizer 'quick' not found"):
        jnp.einsum("i,i,i->", *operands, optimize="quick")
    with pytest.raises(NotImplementedError, match="optimize='dp'"):
        jnp.einsum("i,i,i->", *operands, optimize="dp")
