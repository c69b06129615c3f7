# ruff: noqa: E501 (a table of mistakes)
"""What programs look for in the text of an error: it stands in JAX's message and in ours, and the classes agree."""

import importlib
import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")

# Each mistake is an expression; after `=>` stands what both messages contain.
MISTAKES = """
jnp.linalg.qr(jnp.ones((3, 3), jnp.float16)) => Unsupported dtype float16
jnp.linalg.svd(jnp.ones((3, 3), jnp.bfloat16)) => Unsupported dtype bfloat16
jnp.linalg.solve(jnp.ones(3), jnp.ones(3)) => left hand array must be at least two dimensional; got a.shape=(3,)
jnp.linalg.solve(jnp.ones((2, 3, 3)), jnp.ones((2, 3))) => Invalid shapes for solve: (2, 3, 3), (2, 3).
jnp.linalg.det(jnp.ones((2, 3))) => Argument to _det() must have shape [..., n, n], got (2, 3)
jax.numpy_rank_promotion() => Context manager for numpy_rank_promotion config option requires an argument representing the new value for the config option.
jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(jnp.ones(3), None) => Cannot pass None at locations {1} with signature='(n),(n)->(n)'
grad(lambda x: x)("foo") => Argument
jit(lambda x: x)("foo") => was passed to the function at path x.
jit(lambda x: x)(np.ma.array([1, 2], mask=[True, False])) => numpy masked arrays are not supported
jit(lambda x, y: x, static_argnums=1)(1, np.asarray(1)) => Non-hashable static arguments are not supported
jit(lambda x, y: x, static_argnums=1)(1, NoEq()), jit(FUN, static_argnums=1)(1, NoEq()), jit(FUN, static_argnums=1)(1, NoEq()) => static arguments should be comparable using __eq__
jit(lambda x: x, static_argnums=1) => Jitted function has static_argnums=(1,), but only accepts 1 positional arguments.
jit(lambda x: x, static_argnames="y") => Jitted function has invalid argnames {'y'} in static_argnames. Function does not take these args.
jit(lambda x: x, static_argnames="x", donate_argnames="x") => static_argnames and donate_argnames cannot intersect
jit(staticmethod(lambda x: x)) => staticmethod arguments are not supported
jit(lambda x: x).lower(1.0).compile()([1.0]) => Function compiled with input pytree does not match the input pytree it was called with
jit(lambda x: x).lower(1.0).compile()(1) => Argument 'x' compiled with
vmap(jit(lambda x: x).lower(1.0).compile())(jnp.ones(3)) => Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected
vmap(lambda x, y: x)(jnp.ones(3), jnp.ones(4)) => vmap got inconsistent sizes for array axes to be mapped:\\n  * one axis had size 3: axis 0 of argument x of type float32[3];\\n  * one axis had size 4: axis 0 of argument y of type float32[4]
vmap(lambda x, y: x)(jnp.ones(3), y=jnp.ones(4)) => axis 0 of kwargs['y'] of type float32[4]
vmap(lambda x: x, axis_size=4)(jnp.ones(3)) => * the `axis_size` argument was 4;
vmap(lambda x: x)({}) => vmap wrapped function must be passed at least one argument containing an array
vmap(lambda x: x, in_axes=False)(jnp.ones(3)) => vmap in_axes must be an int, None, or a tuple
vmap(lambda x: x, out_axes="a")(jnp.ones(3)) => vmap out_axes must be an int, None, or (nested) container with those types as leaves
vmap(lambda x: x, out_axes=None)(jnp.ones(3)) => at vmap out_axes
jax.jvp(lambda x, y: x, 0.0, (1.0,)) => primal and tangent arguments to jax.jvp must be tuples or lists; found float and tuple.
jax.jvp(lambda x: x, (1.0,), [1.0]) => primal and tangent arguments to jax.jvp must have the same tree structure
jax.vjp(lambda x: x, 1.0)[1](np.float16(1)) => unexpected JAX type (e.g. shape/dtype) for argument to VJP function
jax.vjp(lambda x: x, 1.0)[1]((1.0, 2.0)) => unexpected tree structure
jax.vjp(lambda x: x, 1.0)[1](1.0, 2.0) => must be called with a single argument
jax.linear_transpose(lambda x: 2.0 * x, 1) => linear_transpose only supports
jax.linear_transpose(lambda x: [x, x], 1.0)(1.0) => cotangent tree does not match
jax.linear_transpose(lambda x: jnp.stack([x, x]), 1.0)(1.0) => cotangent type does not match
jax.linear_transpose(lambda x: x, 1.0)(1j) => cotangent type does not match
jax.linear_transpose(jnp.sin, 1.0)(1.0) => Transpose rule (for reverse-mode differentiation) for 'sin' not implemented
grad(lambda x: x)() => differentiating with respect to argnums=0 requires at least 1 positional arguments to be passed by the caller, but got only 0 positional arguments.
grad(lambda x: x)(1j) => grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got complex64
grad(lambda x: jnp.dot(x, jnp.ones(4)))(jnp.ones(3)) => dot_general requires contracting dimensions to have the same shape, got (3,) and (4,).
lax.cond("foo", lambda x: x, lambda x: x, 1.0) => Pred must be a scalar, got foo of type <class 'str'>
lax.cond((1.0, 1.0), lambda x: x, lambda x: x, 1.0) => Pred must be a scalar, got (1.0, 1.0) of type <class 'tuple'>
lax.cond(lambda x: x, lambda x: x, lambda x: x, 1.0) => Pred type must be either boolean or number, got <function
lax.cond(True, lambda x: dict(a=x), lambda x: dict(a=(x, x)), 1.0) => cond branch outputs must have the same pytree structure, but they differ:
lax.cond(True, lambda x: dict(a=x), lambda x: dict(a=(x, x)), 1.0) => true_fun output at path ['a'] is a pytree leaf but false_fun output at path ['a'] is a <class 'tuple'>, so their Python types differ
lax.cond(True, lambda x: {'a': 1}, lambda x: {'b': 1}, 1.0) => true_fun output is a <class 'dict'> with pytree metadata ('a',) but false_fun output is a <class 'dict'> with pytree metadata ('b',), so the pytree node metadata does not match
lax.cond(True, lambda x: jnp.ones(1), lambda x: jnp.float32(1), 1.0) => The output of true_fun has type float32[1] but the corresponding output of false_fun has type float32[], so the shapes do not match
lax.switch(lambda x: x, [lambda x: x, lambda x: x], 1.0) => Index type must be an integer, got <function
lax.switch(1, [lambda x: (x,), lambda x: (jnp.ones(3),)], 1.0) => The output of branch 0 at path [0] has type float32[] but the corresponding output of branch1 has type float32[3], so the shapes do not match
lax.while_loop(lambda c: (1.0, 1.0), lambda c: c, 0.0) => cond_fun must return a boolean scalar, but got pytree PyTreeDef((*, *)).
lax.while_loop(lambda c: np.float32(1), lambda c: c, np.float32(0)) => cond_fun must return a boolean scalar, but got output type(s) [ShapedArray(float32[])].
lax.while_loop(lambda c: False, lambda c: (1.0, 1.0), 0.0) => while_loop body function carry input and carry output must have the same pytree structure, but they differ:\\n\\nThe input carry c is a
lax.while_loop(lambda c: False, lambda c: (True, True), (np.bool_(True), np.float32(0))) => The input carry component c[1] has type float32[] but the corresponding output carry component has type bool[], so the dtypes do not match.
lax.switch((1.0, 1.0), [lambda x: x, lambda x: x], 1.0) => Branch index must be scalar, got (1.0, 1.0) of shape (2,).
lax.cond(object(), lambda x: x, lambda x: x, 1.0) => Pred type must be either boolean or number, got <object
lax.switch(object(), [lambda x: x, lambda x: x], 1.0) => Index type must be an integer, got <object
lax.scan(lambda c, x: np.float32(0), 0, jnp.ones(3)) => scan body output must be a pair, got float32[].
lax.scan(lambda c, x: c, 0, jnp.ones(3)) => scan body output must be a pair, got ~int32[].
lax.scan(lambda c, x: (c, x), 0, 1.0) => scan got value with no leading axis to scan over: 1.0.
lax.scan(lambda c, x: (c, x), 0, jnp.ones(3), length=4) => scan got `length` argument of 4 which disagrees with leading axis sizes [3].
lax.scan(lambda c, x: (c, x), 0, (jnp.ones(3), jnp.ones(4))) => scan got values with different leading axis sizes: 3, 4.
lax.fori_loop(np.int16(0), jnp.int32(3), lambda i, c: c, 1.0) => arguments to fori_loop must have equal types, got int16 and int32
lax.fori_loop(True, 3, lambda i, c: c, 1.0) => arguments to fori_loop must have equal types, got bool and int32
jax.debug.print("x = 1.0", x=1.0) => You may be passing an f-string
jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=3))(2) => Can only use `unroll` in `fori_loop` if the loop bounds are statically known.
vmap(lambda x: lax.psum(x, "j"), axis_name="i")(jnp.ones(3)) => Found an unbound axis name: j.
jvp_of(lambda p, t: (p[0], jnp.ones(3))) => Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. Expected float32[] (tangent type of float32[]) but got float32[3]
vjp_of(lambda x: (x, x), lambda r, ct: ct) => Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple of the primal function, and in particular must produce a tuple of length equal to the number of arguments to the primal function, but got bwd output structure PyTreeDef(*) for primal input structure PyTreeDef((*,)).
vjp_of(lambda x: (x, x), lambda r, ct: (jnp.ones(3),)) => Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal function, but at output[0] the bwd rule produced an output of type float32[3] corresponding to an input of type float32[], so the shapes do not match
vjp_of(lambda x: x, lambda r, ct: (ct,)) => (i.e. values stored from the forward pass for use on the backward pass), but instead of a pair the fwd rule
grad(3) => Expected a callable value, got 3
vmap(3) => Expected a callable value, got 3
grad(lambda x: x, argnums=(0, 3))(1.0) => differentiating with respect to argnums=(0, 3) requires at least 4 positional arguments
grad(lambda x: x, argnums="a") => 'str' object cannot be interpreted as an integer
grad(lambda x: (x,))(1.0) => Gradient only defined for scalar-output functions. Output was (
jax.jacrev(lambda x: x)(1) => jacrev requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32.
jax.jacrev(lambda x: x)(1j) => jacrev requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got complex64. For holomorphic
jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(3) => The `length` argument to `scan` expects a concrete `int` value
lax.cond(1j, lambda x: x, lambda x: x, 1.0) => Pred type must be either boolean or number, got complex64
jax.ShapeDtypeStruct((2,), "float32", sharding=1) => sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or
vmap(lambda x: x, out_axes=1)(jnp.ones(3)) => axis 1 is out of bounds for array of dimension 1
vmap(lambda x: x, out_axes=None)(jnp.ones(3)) => got axis spec None but output was batched
jax.vjp(lambda x: (x, x), 1.0)[1](1.0, 1.0) => The function returned by `jax.vjp` applied to <lambda> was called with 2 arguments,
vmap(lambda x: x, out_axes=None, axis_name="i")(jnp.ones(3)) => vmap has mapped output (axis_name=i) but out_axes is None
lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCC", "OIH", "NCH")) => dimension_numbers[0] must contain the characters 'N' and 'C' exactly once
lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCX", "OIH", "NCH")) => elements must each have the same set of spatial characters
lax.conv_general_dilated(jnp.ones((1, 2, 3)), jnp.ones((2, 2, 2)), (1,), "SAME", feature_group_count=0) => conv_general_dilated feature_group_count must be a positive integer, got 0.
lax.conv(jnp.ones((1, 2, 3)), jnp.ones((1, 1, 2)), (1,), "SAME") => size divided by feature_group_count must equal the rhs input feature dimension size, but 2 // 1 != 1
lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((0,), (0,)), ((1,), ()))) => dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch (1,) and rhs_batch ().
lax.fft(1j * jnp.ones(3), "fft", (4,)) => FFT input shape (3,) minor dimensions must be equal to fft_lengths (4,)
jnp.broadcast_to(jnp.ones(3), (2,)) => Incompatible types for broadcasting: input type=float32[3] and requested type=float32[2]
jnp.broadcast_to(jnp.ones((2, 3)), (3,)) => Cannot broadcast to shape with fewer dimensions: arr_shape=(2, 3) shape=(3,)
jnp.stack([jnp.ones(2), jnp.ones(3)]) => All input arrays must have the same shape.
jnp.zeros((2, -1)) => shape must have every element be nonnegative, got (2, -1).
jnp.put(jnp.ones(3), 0, 1) => jax.numpy.put cannot modify arrays in-place, because JAX arrays are immutable
jnp.fill_diagonal(jnp.ones((2, 2)), 0) => JAX arrays are immutable, must use inplace=False
jnp.gcd(1.0, 1) => Arguments to jax.numpy.gcd must be integers.
jnp.linalg.slogdet(jnp.ones((2, 3))) => Argument to slogdet() must have shape [..., n, n], got (2, 3)
jax.random.wrap_key_data(jnp.ones(2)) => JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype=float32
lax.with_sharding_constraint(jnp.ones(4), explicit("x")) => The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got spec=P('x',) and mesh=AbstractMesh('x': 1, axis_types=(Explicit,)
jit(lambda x: lax.with_sharding_constraint(x, explicit("x")))(jnp.ones(4)) => can only refer to Auto axes of the mesh. Got spec=P('x',)
under_mesh(lambda: jit(lambda x: lax.with_sharding_constraint(x, jax.P("x")))(jnp.ones(4))) => `with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array sharding: P(None,) did not match the sharding provided: P('x',).
jax.reshard(jnp.ones(3), -1) => `out_sharding` argument of reshard only supports instances of `NamedSharding` or `PartitionSpec`. Got -1 of type: <class 'int'>
written(lambda ref, x: ref.__setitem__(..., x)) => performing a set/swap operation with vmapped value on an unbatched array reference of type Ref{float32[3]}. Move the array reference to be an argument to the vmapped function?
jax.make_jaxpr(lambda x: lax.psum(x, "j"), axis_env=[("i", 3)])(1.0) => Found an unbound axis name: j.
jax.make_jaxpr(lambda x: x, axis_env=3)(1.0) => 'int' object is not iterable
lax.reduce_sum(jax.random.split(jax.random.key(0)), (0,)) => reduce_sum does not accept dtype key<fry>. Accepted dtypes are subtypes of number.
lax.bitcast_convert_type(jax.random.key(0), "int32") => unexpected input: dtype=key<fry>
lax.betainc(*[jax.random.key(0)] * 3) => does not accept dtype key<fry> at position 0. Accepted dtypes at position 0 are subtypes of floating.
"""


def _names(package):
    """What the expressions use, of one of the two packages."""
    j = importlib.import_module(package)

    class NoEq:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise NotImplementedError("cannot be compared")

    def jvp_of(rule):
        f = j.custom_jvp(lambda x: x)
        f.defjvp(rule)
        return j.jvp(f, (1.0,), (1.0,))

    def vjp_of(fwd, bwd):
        f = j.custom_vjp(lambda x: x)
        f.defvjp(fwd, bwd)
        return j.grad(f)(1.0)

    mesh = j.make_mesh((1,), ("x",), axis_types=(j.sharding.AxisType.Explicit,))

    def explicit(*axes):
        return j.NamedSharding(mesh, j.P(*axes))

    def under_mesh(f):
        with j.set_mesh(mesh):
            return f()

    def written(write):
        ref = j.new_ref(j.numpy.zeros(3))
        j.vmap(lambda x: write(ref, x))(j.numpy.ones((2, 3)))

    given = {"jax": j, "jnp": j.numpy, "lax": j.lax, "jit": j.jit, "grad": j.grad, "vmap": j.vmap, "np": np}
    return (
        given
        | {"NoEq": NoEq, "jvp_of": jvp_of, "vjp_of": vjp_of, "FUN": lambda x, y: x}
        | {
            "explicit": explicit,
            "under_mesh": under_mesh,
            "written": written,
        }
    )


def _message(package, expression):
    """Classes, the builtin ones alone, and text of the error that an expression raises."""
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        eval(expression, _names(package))
    builtin = [c.__name__ for c in type(caught.value).__mro__ if c.__module__ == "builtins"]
    return builtin[0], str(caught.value)


@pytest.mark.parametrize("row", MISTAKES.strip().splitlines())
def test_heads(row):
    expression, fragment = row.split(" => ")
    fragment = fragment.replace("\\n", "\n")
    (their_class, theirs), (our_class, ours) = (_message(p, expression) for p in ("jax", "ferrax"))
    assert fragment in theirs, theirs
    assert fragment in ours, ours
    assert our_class == their_class


#: Calls of functions with `out_sharding`, and how errors name the function.
SHARDED = """
jnp.arange(3, out_sharding=S) => jnp.arange
jnp.zeros(3, out_sharding=S) => jnp.zeros
jnp.ones(3, out_sharding=S) => jnp.ones
jnp.full(3, 1.0, out_sharding=S) => full
jnp.ones_like(jnp.ones(3), out_sharding=S) => jnp.ones_like
jnp.full_like(jnp.ones(3), 2, out_sharding=S) => full_like
jnp.asarray([1, 2], out_sharding=S) => jnp.array
jnp.bincount(jnp.arange(3), length=3, out_sharding=S) => jnp.bincount
jnp.einsum("i,i->i", jnp.ones(3), jnp.ones(3), out_sharding=S) => einsum
jnp.dot(jnp.ones(3), jnp.ones(3), out_sharding=S) => dot_general
jnp.matmul(jnp.ones(3), jnp.ones(3), out_sharding=S) => dot_general
jnp.tensordot(jnp.ones(3), jnp.ones(3), 1, out_sharding=S) => dot_general
jnp.reshape(jnp.ones(4), (2, 2), out_sharding=S) => reshape
jnp.ones((2, 2)).ravel(out_sharding=S) => reshape
jnp.broadcast_to(jnp.ones(3), (2, 3), out_sharding=S) => jnp.broadcast_to
jnp.repeat(jnp.ones(3), 2, out_sharding=S) => repeat
lax.broadcasted_iota("int32", (3,), 0, out_sharding=S) => broadcasted_iota
lax.dot_general(jnp.ones(3), jnp.ones(3), (((0,), (0,)), ((), ())), out_sharding=S) => dot_general
lax.reshape(jnp.ones(4), (2, 2), out_sharding=S) => reshape
lax.broadcast(jnp.ones(4), (2,), out_sharding=S) => broadcast_in_dim
lax.empty((3,), "float32", out_sharding=S) => lax.empty
jax.random.uniform(jax.random.key(0), (3,), out_sharding=S) => uniform
jax.random.randint(jax.random.key(0), (3,), 0, 4, out_sharding=S) => randint
"""


@pytest.mark.parametrize("row", SHARDED.strip().splitlines())
def test_out_sharding_is_a_named_one(row):
    expression, name = row.split(" => ")
    for given in ("-1", "jax.sharding.SingleDeviceSharding(jax.devices()[0])"):
        called = expression.replace("=S", f"={given}")
        (their_class, theirs), (our_class, ours) = (_message(p, called) for p in ("jax", "ferrax"))
        fragment = (
            f"`out_sharding` argument of {name} only supports instances of `NamedSharding` or `PartitionSpec`. Got "
        )
        assert fragment in theirs and fragment in ours, (theirs, ours)
        assert our_class == their_class == "TypeError"


@pytest.mark.parametrize("numbers", [3, None, (1, 2)])
def test_dimension_numbers_of_another_type(numbers):
    lax, jnp = _names("ferrax")["lax"], _names("ferrax")["jnp"]
    x, at = jnp.ones((3, 3)), jnp.zeros((1, 1), "int32")
    with pytest.raises(TypeError, match="dimension_numbers must be an instance of GatherDimensionNumbers"):
        lax.gather(x, at, numbers, (1, 3))
    for scatter in (lax.scatter, lax.scatter_add, lax.scatter_max):
        with pytest.raises(TypeError, match="dimension_numbers must be an instance of ScatterDimensionNumbers"):
            scatter(x, at, jnp.ones((1, 3)), numbers)


@pytest.mark.parametrize("numbers", [np.dtype("int8"), {"a": 1}, 5, "ab", ((1,), (0,))])
def test_numbers_of_products_of_no_kind(numbers):
    lax, jnp = _names("ferrax")["lax"], _names("ferrax")["jnp"]
    x = jnp.ones((3, 3))
    with pytest.raises(TypeError, match="scaled_dot dimension_numbers must be"):
        lax.scaled_dot(x, x, dimension_numbers=numbers)
    with pytest.raises(TypeError, match="must be an instance of RaggedDotDimensionNumbers"):
        lax.ragged_dot_general(x, x, jnp.array([3]), numbers)
    with pytest.raises(TypeError):
        lax.conv_shape_tuple((4, 3, 9), np.dtype("int8"), (1,), "VALID")
