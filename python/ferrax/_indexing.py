"""``x.at[index].apply(f)``: the one update whose function is the user's."""

from ferrax import lax
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
    return apply_counted(x, counts, func, unique_indices)


def apply_counted(x, counts, func, unique):
    """``x`` with ``func`` applied to each entry as often as ``counts`` says.

    Args:
      x: array.
      counts: int32 array of the same shape.
      func: elementwise function of one array.
      unique: no count is above 1.

    Returns:
      Array of the shape and dtype of ``x``.
    """

    def step(carry):
        x, left = carry
        applied = lax.convert_element_type(func(x), x.dtype)
        return lax.select(lax.gt(left, lax.full_like(left, 0)), applied, x), lax.sub(left, lax.full_like(left, 1))

    if unique:
        return step((x, counts))[0]
    return lax.while_loop(lambda c: lax.reduce_max(c[1], tuple(range(c[1].ndim))) > 0, step, (x, counts))[0]
