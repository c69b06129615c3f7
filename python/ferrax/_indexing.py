"""``x.at[index].apply(f)``: the one update whose function is the user's.

An entry that is named c times takes c applications, one after the other, and all entries take theirs side by side. A
few rounds go over the whole array. Entries that are named more often are few, since updates are: they are brought
together, and the more often, the smaller the array that goes on, so that all rounds together cost about as much as
there are updates.
"""

from ferrax import lax
from ferrax._api import eval_shape
from ferrax._boundary import shielded


@shielded
def apply_at(ref, func, indices_are_sorted, unique_indices, mode, wrap_negative_indices):
    """The array of ``ref`` with ``func`` applied to the entries at its index, once for each time it names them.

    Args:
      ref: ``x.at[index]``.
      func: elementwise function of one array.
      indices_are_sorted: promise that indices ascend.
      unique_indices: promise that indices are unique.
      mode: what happens to entries out of bounds.
      wrap_negative_indices: negative integers count from the end.

    Returns:
      Array of the shape and dtype of ``x``.
    """
    x = ref.array
    counts = (
        lax.full(x.shape, 0, "int32")
        .at[ref.index]
        .add(
            1,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=wrap_negative_indices,
        )
    )
    updates = 0 if unique_indices else eval_shape(lambda x: x.at[ref.index].get(), x).size
    return apply_counted(x, counts, func, unique_indices, updates)


#: Rounds over the whole array, and the factor from the rounds of one smaller array to those of the next.
ROUNDS = 8
#: Entries of an array that is not made smaller any more.
FEW = 32


def apply_counted(x, counts, func, unique, updates):
    """``x`` with ``func`` applied to each entry as often as ``counts`` says.

    Args:
      x: array.
      counts: int32 array of the same shape.
      func: elementwise function of one array.
      unique: no count is above 1.
      updates: the most that all counts are together.

    Returns:
      Array of the shape and dtype of ``x``.
    """
    if unique:
        return _round(func, x, counts)[0]
    if updates <= ROUNDS or x.size <= FEW:
        return _rounds(func, x, counts)[0]
    x, left = _rounds(func, x, counts, ROUNDS)
    return lax.cond(_most(left) > 0, lambda: _apply_often(func, x, left, updates), lambda: x)


def _round(func, x, left):
    """One application where any is left, and what is left then."""
    applied = lax.convert_element_type(func(x), x.dtype)
    return lax.select(lax.gt(left, lax.full_like(left, 0)), applied, x), lax.sub(left, lax.full_like(left, 1))


def _most(left):
    return lax.reduce_max(left, tuple(range(left.ndim)))


def _rounds(func, x, left, limit=None):
    """Rounds as long as anything is left, at most `limit`."""
    if limit is None:
        return lax.while_loop(lambda c: _most(c[1]) > 0, lambda c: _round(func, *c), (x, left))
    more = lambda c: lax.bitwise_and(c[0] < limit, _most(c[2]) > 0)
    return lax.while_loop(more, lambda c: (c[0] + 1, *_round(func, *c[1:])), (0, x, left))[1:]


def _apply_often(func, x, left, updates):
    """`x` with what is left after the first rounds: each entry with any has had `ROUNDS` applications."""
    done = ROUNDS
    size = min(updates // (done + 1), x.size)
    flat = lax.reshape(x, (x.size,))
    left, at = lax.top_k(lax.reshape(left, (x.size,)), size)
    values, finished = flat[at], []
    while size > FEW:
        values, left = _rounds(func, values, left, done * (ROUNDS - 1))
        done *= ROUNDS
        size = min(updates // (done + 1), size)
        finished.insert(0, values[size:])
        values, left = values[:size], left[:size]
    values, _ = _rounds(func, values, left)
    return lax.reshape(flat.at[at].set(lax.concatenate([values, *finished], 0), unique_indices=True), x.shape)
