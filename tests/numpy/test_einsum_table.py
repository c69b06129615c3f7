"""The table of an einsum's steps, beside JAX's."""

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
