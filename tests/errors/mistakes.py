"""Sixty and more mistakes that users make, each a small program, with the words that its error must contain.

A mistake is a function of the library (`jax`), its NumPy (`jnp`) and its `lax`. `@mistake(...)` lists what the text
must say: the function's and the argument's name, both shapes or dtypes, and what to do instead.
"""

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np


@dataclasses.dataclass
class Mistake:
    name: str
    program: Callable
    says: tuple[str, ...]
    devices: int = 1
    jax: type | None = None


MISTAKES: list[Mistake] = []


def mistake(*says, devices=1, jax=None):
    """Registers a program.

    Args:
        *says: words that the error's text contains.
        devices: how many devices the program needs.
        jax: the class that JAX raises, where ferrax's is another one on purpose.
    """

    def register(program):
        MISTAKES.append(Mistake(program.__name__, program, says, devices, jax))
        return program

    return register


# shapes


@mistake("matmul", "(2, 3)", "(4, 5)", "size 3", "size 4")
def matmul_sizes(jax, jnp, lax):
    jnp.ones((2, 3)) @ jnp.ones((4, 5))


@mistake("matmul", "operand 1", "ndim 0")
def matmul_of_a_scalar(jax, jnp, lax):
    jnp.matmul(jnp.ones(3), 2.0)


@mistake("dot", "(3,)", "(4,)")
def dot_sizes(jax, jnp, lax):
    jnp.dot(jnp.ones(3), jnp.ones(4))


@mistake("add", "(3,)", "(4,)")
def add_shapes(jax, jnp, lax):
    jnp.ones(3) + jnp.ones(4)


@mistake("mul", "(2, 3)", "(3, 2)")
def multiply_shapes_under_jit(jax, jnp, lax):
    @jax.jit
    def scale(x, factor):
        return x * factor

    scale(jnp.ones((2, 3)), jnp.ones((3, 2)))


@mistake("where", "(3,)", "(4,)")
def where_shapes(jax, jnp, lax):
    jnp.where(jnp.ones(3) > 0, jnp.ones(4), 0.0)


@mistake("concatenate", "(2, 3)", "(2, 4)", "dimension 0")
def concatenate_sizes(jax, jnp, lax):
    jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])


@mistake("concatenate", "(2, 3)", "(3,)")
def concatenate_ranks(jax, jnp, lax):
    jnp.concatenate([jnp.ones((2, 3)), jnp.ones(3)])


@mistake("at least one array")
def concatenate_nothing(jax, jnp, lax):
    jnp.concatenate([])


@mistake("stack", "(3,)", "(4,)")
def stack_shapes(jax, jnp, lax):
    jnp.stack([jnp.ones(3), jnp.ones(4)])


@mistake("reshape", "(6,)", "(4, 2)", "6", "8")
def reshape_size(jax, jnp, lax):
    jnp.arange(6).reshape(4, 2)


@mistake("reshape", "(7,)", "(2, -1)")
def reshape_unknown(jax, jnp, lax):
    jnp.arange(7).reshape(2, -1)


@mistake("broadcast", "(3,)", "(2, 4)")
def broadcast_to_shape(jax, jnp, lax):
    jnp.broadcast_to(jnp.ones(3), (2, 4))


@mistake("einsum", "(2, 3)", "(4, 5)", "label 'j'")
def einsum_sizes(jax, jnp, lax):
    jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))


@mistake("split", "7", "3")
def split_sections(jax, jnp, lax):
    jnp.split(jnp.arange(7), 3)


@mistake("squeeze", "(2, 3)", "size not equal to one")
def squeeze_axis(jax, jnp, lax):
    jnp.squeeze(jnp.ones((2, 3)), 0)


@mistake("-3")
def negative_shape(jax, jnp, lax):
    jnp.zeros((2, -3))


@mistake("Shapes", "integer", "2.5")
def float_shape(jax, jnp, lax):
    jnp.zeros(2.5)


@mistake("float32[3]", "float32[2]")
def set_shape(jax, jnp, lax):
    jnp.zeros(4).at[:2].set(jnp.ones(3))


@mistake("dot_general", "(2, 3)", "(4, 5)")
def dot_general_sizes(jax, jnp, lax):
    lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 5)), (((1,), (0,)), ((), ())))


# axes and indices


@mistake("axis 2", "out of bounds", "2")
def axis_out_of_range(jax, jnp, lax):
    jnp.sum(jnp.ones((2, 3)), axis=2)


@mistake("axis", "0")
def repeated_axis(jax, jnp, lax):
    jnp.sum(jnp.ones((2, 3)), axis=(0, 0))


@mistake("transpose", "(0, 0)")
def repeated_permutation(jax, jnp, lax):
    jnp.transpose(jnp.ones((2, 3)), (0, 0))


@mistake("3", "2", "ind")
def too_many_indices(jax, jnp, lax):
    jnp.ones((2, 3))[0, 0, 0]


@mistake("float", "index")
def float_index(jax, jnp, lax):
    jnp.arange(4)[1.5]


@mistake("list", "jnp.array", "arr[array(seq)]")
def list_index(jax, jnp, lax):
    jnp.arange(4)[[0, 1]]


@mistake("(3,)", "(4,)")
def mask_shape(jax, jnp, lax):
    jnp.arange(4)[jnp.array([True, False, True])]


@mistake("immutable", ".at[")
def assign_item(jax, jnp, lax):
    x = jnp.zeros(3)
    x[0] = 1.0


@mistake("ambiguous")
def truth_of_array(jax, jnp, lax):
    if jnp.array([1, 2]) > 1:
        pass


@mistake("(3,)")
def float_of_array(jax, jnp, lax):
    float(jnp.ones(3))


# dtypes and types


@mistake("sin", "str")
def string_operand(jax, jnp, lax):
    jnp.sin("three")


@mistake("add", "list", "array")
def list_operand(jax, jnp, lax):
    jnp.add([1, 2], 3)


@mistake("None")
def none_operand(jax, jnp, lax):
    jnp.sum(None)


@mistake("object")
def object_array(jax, jnp, lax):
    jnp.array([object()])


@mistake("and", "float32", "integer, bool")
def bitwise_of_floats(jax, jnp, lax):
    jnp.bitwise_and(jnp.ones(3), jnp.ones(3))


@mistake("add", "float32", "int32")
def lax_dtypes(jax, jnp, lax):
    lax.add(jnp.ones(3), jnp.arange(3))


@mistake("floating32")
def unknown_dtype(jax, jnp, lax):
    jnp.zeros(3, dtype="floating32")


@mistake("normalize", "label", "str")
def string_argument_of_jit(jax, jnp, lax):
    @jax.jit
    def normalize(x, label):
        return x / 2

    normalize(jnp.ones(3), "train")


@mistake("normal", "int32", "float")
def integer_dtype_of_normal(jax, jnp, lax):
    jax.random.normal(jax.random.key(0), (3,), dtype=jnp.int32)


@mistake("key", "()", "random.key")
def number_as_key(jax, jnp, lax):
    jax.random.normal(jnp.int32(0), (3,))


# tracers


@mistake("relu", "argument x", "where")
def tracer_bool(jax, jnp, lax):
    @jax.jit
    def relu(x):
        return x if x > 0 else 0.0

    relu(1.0)


@mistake("repeat_sum", "argument times", "fori_loop")
def tracer_range(jax, jnp, lax):
    @jax.jit
    def repeat_sum(x, times):
        for _ in range(times):
            x = x + 1
        return x

    repeat_sum(1.0, 3)


@mistake("to_python", "argument x")
def tracer_float(jax, jnp, lax):
    @jax.jit
    def to_python(x):
        return float(x) + 1

    to_python(1.0)


@mistake("to_python", "argument n")
def tracer_int(jax, jnp, lax):
    @jax.jit
    def to_python(n):
        return int(n) + 1

    to_python(1)


@mistake("wave", "argument x", "pure_callback")
def tracer_numpy(jax, jnp, lax):
    @jax.jit
    def wave(x):
        return np.sin(x)

    wave(jnp.ones(3))


@mistake("positive", "argument x", "where")
def tracer_mask(jax, jnp, lax):
    @jax.jit
    def positive(x):
        return x[x > 0]

    positive(jnp.ones(3))


@mistake("make", "argument n", "static_argnames")
def tracer_shape(jax, jnp, lax):
    @jax.jit
    def make(n):
        return jnp.zeros(n)

    make(3)


@mistake("ranged", "argument stop", "arange")
def tracer_arange(jax, jnp, lax):
    @jax.jit
    def ranged(stop):
        return jnp.arange(stop)

    ranged(3)


@mistake("head", "argument n", "dynamic_slice")
def tracer_slice(jax, jnp, lax):
    @jax.jit
    def head(x, n):
        return x[:n]

    head(jnp.ones(3), 2)


@mistake("indices", "argument x", "size")
def tracer_nonzero(jax, jnp, lax):
    @jax.jit
    def indices(x):
        return jnp.nonzero(x)

    indices(jnp.ones(3))


@mistake("step", "kept")
def leaked_tracer(jax, jnp, lax):
    kept = []

    @jax.jit
    def step(x):
        kept.append(x * 2)
        return x

    step(1.0)
    kept[0] + 1


@mistake("item()", "total", "argument x")
def tracer_item(jax, jnp, lax):
    @jax.jit
    def total(x):
        return x.sum().item()

    total(jnp.ones(3))


# jit's arguments


@mistake("scale", "sizes", "hash", "list")
def unhashable_static(jax, jnp, lax):
    @partial(jax.jit, static_argnames="sizes")
    def scale(x, sizes):
        return x * sizes[0]

    scale(1.0, sizes=[1, 2])


@mistake("scale", "faktor", "factor")
def unknown_static_name(jax, jnp, lax):
    def scale(x, factor):
        return x * factor

    jax.jit(scale, static_argnames="faktor")(1.0, 2.0)


@mistake("scale", "static_argnums=(2,)", "x, factor")
def static_number_out_of_range(jax, jnp, lax):
    def scale(x, factor):
        return x * factor

    jax.jit(scale, static_argnums=2)(1.0, 2.0)


@mistake("scale", "factor")
def missing_argument(jax, jnp, lax):
    @jax.jit
    def scale(x, factor):
        return x * factor

    scale(1.0)


@mistake("scale", "fctor")
def wrong_keyword(jax, jnp, lax):
    @jax.jit
    def scale(x, factor):
        return x * factor

    scale(1.0, fctor=2.0)


@mistake("describe", "str")
def string_result(jax, jnp, lax):
    @jax.jit
    def describe(x):
        return {"value": x, "label": "big"}

    describe(1.0)


@mistake("callable")
def jit_of_a_value(jax, jnp, lax):
    jax.jit(jnp.ones(3))


@mistake("deleted", "float32[3]")
def deleted_array(jax, jnp, lax):
    x = jnp.ones(3)
    x.delete()
    x + 1


@mistake("deleted", "float32[5,1,7]", "update", "donated", "result")
def donated_array(jax, jnp, lax):
    def update(x):
        return x + 1

    # of a shape that nothing was added to before: then JAX raises another error
    x = jnp.ones((5, 1, 7))
    jax.jit(update, donate_argnums=0)(x)
    x + 1


# derivatives


@mistake("grad", "int32", "cube", "float")
def grad_of_int(jax, jnp, lax):
    def cube(x):
        return x**3

    jax.grad(cube)(3)


@mistake("scalar", "(3,)", "double", "jnp.sum")
def grad_of_vector(jax, jnp, lax):
    def double(x):
        return x * 2

    jax.grad(double)(jnp.ones(3))


@mistake("scalar", "loss", "has_aux")
def grad_of_pair(jax, jnp, lax):
    def loss(x):
        return x * 2, x

    jax.grad(loss)(1.0)


@mistake("int32", "rounded", "jax.vjp")
def grad_to_int(jax, jnp, lax):
    def rounded(x):
        return x.astype(int)

    jax.grad(rounded)(1.0)


@mistake("argnums=1", "cube")
def grad_argnums(jax, jnp, lax):
    def cube(x):
        return x**3

    jax.grad(cube, argnums=1)(3.0)


@mistake("pair", "tuple", "loss", "has_aux")
def aux_without_pair(jax, jnp, lax):
    def loss(x):
        return x * 2

    jax.grad(loss, has_aux=True)(1.0)


@mistake("jvp", "(3,)", "(4,)")
def tangent_shape(jax, jnp, lax):
    jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(4),))


@mistake("jvp", "float32", "int32")
def tangent_dtype(jax, jnp, lax):
    jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.arange(3),))


@mistake("float32[4]", "float32[3]")
def cotangent_shape(jax, jnp, lax):
    _, pull = jax.vjp(jnp.sin, jnp.ones(3))
    pull(jnp.ones(4))


@mistake("tree", "tuple")
def cotangent_tree(jax, jnp, lax):
    _, pull = jax.vjp(lambda x: (x, x), jnp.ones(3))
    pull(jnp.ones(3))


@mistake("clip_gradient")
def custom_vjp_without_rules(jax, jnp, lax):
    @jax.custom_vjp
    def clip_gradient(x):
        return x

    jax.grad(clip_gradient)(1.0)


# vmap


@mistake("vmap", "multiply", "argument x", "argument y", "float32[3]", "float32[4]")
def vmap_sizes(jax, jnp, lax):
    def multiply(x, y):
        return x * y

    jax.vmap(multiply)(jnp.ones(3), jnp.ones(4))


@mistake("vmap", "in_axes", "len(in_axes)=3", "len(args)=2")
def vmap_in_axes_tree(jax, jnp, lax):
    def multiply(x, y):
        return x * y

    jax.vmap(multiply, in_axes=(0, 0, 0))(jnp.ones(3), jnp.ones(3))


@mistake("vmap", "axis 1", "(3,)", "argument x", "double")
def vmap_axis_out_of_range(jax, jnp, lax):
    def double(x):
        return x * 2

    jax.vmap(double, in_axes=1)(jnp.ones(3))


@mistake("vmap", "rank", "argument x", "double", "in_axes")
def vmap_of_scalar(jax, jnp, lax):
    def double(x):
        return x * 2

    jax.vmap(double)(1.0)


@mistake("vmap", "None", "double")
def vmap_of_nothing(jax, jnp, lax):
    def double(x):
        return x * 2

    jax.vmap(double, in_axes=None)(jnp.ones(3))


@mistake("out_axes")
def vmap_out_axes(jax, jnp, lax):
    def pair(x):
        return x, x

    jax.vmap(pair, out_axes=(0, 0, 0))(jnp.ones(3))


@mistake("in_axes", "rows")
def vmap_in_axes_type(jax, jnp, lax):
    jax.vmap(jnp.sin, in_axes="rows")(jnp.ones(3))


# control flow


@mistake("scan", "carry total", "float32[]", "float32[3]", "accumulate")
def scan_carry_shape(jax, jnp, lax):
    def accumulate(total, x):
        return total + x, None

    lax.scan(accumulate, 0.0, jnp.ones((2, 3)))


@mistake("scan", "carry total", "tuple", "accumulate")
def scan_carry_tree(jax, jnp, lax):
    def accumulate(total, x):
        return (total, x), None

    lax.scan(accumulate, 0.0, jnp.ones(3))


@mistake("scan", "pair", "accumulate")
def scan_without_pair(jax, jnp, lax):
    def accumulate(total, x):
        return total + x

    lax.scan(accumulate, 0.0, jnp.ones(3))


@mistake("scan", "(2,)", "(3,)")
def scan_lengths(jax, jnp, lax):
    def accumulate(total, xs):
        return total + xs[0] * xs[1], None

    lax.scan(accumulate, 0.0, (jnp.ones(2), jnp.ones(3)))


@mistake("while_loop", "body function", "carry x", "int32[]", "float32[]", "halve")
def while_carry_dtype(jax, jnp, lax):
    def halve(x):
        return x / 2

    lax.while_loop(lambda x: x > 1, halve, jnp.int32(8))


@mistake("while_loop", "cond_fun", "bool", "int32[]")
def while_condition(jax, jnp, lax):
    lax.while_loop(lambda x: x, lambda x: x - 1, 3)


@mistake("cond", "float32[]", "int32[]", "cold", "hot")
def cond_dtypes(jax, jnp, lax):
    def cold(x):
        return x * 1.5

    def hot(x):
        return jnp.int32(3)

    lax.cond(True, cold, hot, 2.0)


@mistake("cond", "tuple", "one", "two")
def cond_trees(jax, jnp, lax):
    def one(x):
        return x

    def two(x):
        return x, x

    lax.cond(True, one, two, 2.0)


@mistake("cond", "(3,)", "jnp.where")
def cond_predicate(jax, jnp, lax):
    lax.cond(jnp.ones(3) > 0, lambda x: x, lambda x: x, 2.0)


@mistake("fori_loop", "carry total", "float32[]", "float32[2]", "grow at", "mistakes.py")
def fori_carry_shape(jax, jnp, lax):
    def grow(i, total):
        return jnp.ones(2) * total

    lax.fori_loop(0, 3, grow, 1.0)


@mistake("fori_loop", "int32 and float32")
def fori_bounds(jax, jnp, lax):
    lax.fori_loop(0, 3.5, lambda i, x: x + 1, 0)


@mistake("switch", "branch")
def switch_nothing(jax, jnp, lax):
    lax.switch(0, [], 1.0)


# trees, devices, settings


@mistake("dict", "b", "c")
def tree_map_keys(jax, jnp, lax):
    jax.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 1, "c": 2})


@mistake("Too many leaves", "2")
def unflatten_leaves(jax, jnp, lax):
    jax.tree.unflatten(jax.tree.structure((1, 2)), [1, 2, 3])


@mistake("devices", "add", "device_put", devices=2)
def mixed_devices(jax, jnp, lax):
    first, second = jax.devices()[:2]
    jax.device_put(jnp.ones(3), first) + jax.device_put(jnp.ones(3), second)


@mistake("jax_enable_x65", "jax_enable_x64")
def unknown_setting(jax, jnp, lax):
    jax.config.update("jax_enable_x65", True)


@mistake("jax_numpy_rank_promotion", "loud")
def wrong_setting(jax, jnp, lax):
    jax.config.update("jax_numpy_rank_promotion", "loud")


@mistake("'ferrax.numpy'", "sine")
def unknown_function(jax, jnp, lax):
    jnp.sine(1.0)


@mistake("'ferrax'", "vmapp")
def unknown_transformation(jax, jnp, lax):
    jax.vmapp(jnp.sin)


@mistake("tpu")
def unknown_platform(jax, jnp, lax):
    jax.devices("tpuu")


@mistake("two dimensions")
def trace_of_vector(jax, jnp, lax):
    jnp.trace(jnp.ones(3))


@mistake("tensor")
def astype_unknown(jax, jnp, lax):
    jnp.ones(3).astype("tensor")


@mistake("0-d")
def iterate_over_scalar(jax, jnp, lax):
    for _ in jnp.float32(1.0):
        pass


@mistake("size 5", "size 3", "replace")
def choice_sizes(jax, jnp, lax):
    jax.random.choice(jax.random.key(0), 3, (5,), replace=False)


@mistake("clip", "(3,)", "(4,)")
def clip_shapes(jax, jnp, lax):
    jnp.clip(jnp.ones(3), jnp.ones(4), 2.0)


# what the library made of a call, in the words of the call


@mistake("policy", "'all'", "checkpoint_policies")
def checkpoint_policy_name(jax, jnp, lax):
    jax.grad(jax.checkpoint(jnp.sin, policy="all"))(1.0)


@mistake("most axes (3 of them) had size 3", "one axis had size 4", "argument c", "float32[4]")
def vmap_one_size_of_four(jax, jnp, lax):
    def total(a, b, c, d):
        return a + b + c + d

    jax.vmap(total)(jnp.ones(3), jnp.ones(3), jnp.ones(4), jnp.ones(3))


@mistake("'4'", "data type", "zeros((3, 4))")
def shape_in_two_arguments(jax, jnp, lax):
    jnp.zeros(3, 4)


@mistake("step", "params['w']", "float32[3]", "float32[4]")
def compiled_for_another_shape(jax, jnp, lax):
    def step(params, rate):
        return params["w"] * rate

    compiled = jax.jit(step).lower({"w": jnp.ones(3)}, 0.1).compile()
    compiled({"w": jnp.ones(4)}, 0.1)


@mistake("step", "pytree", "'w'", "'v'")
def compiled_for_another_tree(jax, jnp, lax):
    def step(params):
        return params["w"]

    jax.jit(step).lower({"w": jnp.ones(3)}).compile()({"v": jnp.ones(3)})


@mistake("scale", "([1],)", "unhashable type: 'list'")
def unhashable_inside_static(jax, jnp, lax):
    @partial(jax.jit, static_argnums=1)
    def scale(x, sizes):
        return x * sizes[0][0]

    scale(1.0, ([1],))


@mistake("reduce", "non-scalar initial value", "(2,)")
def reduce_from_a_vector(jax, jnp, lax):
    lax.reduce(jnp.ones(3), jnp.ones(2), lax.add, (0,))


@mistake("linearized function", "float32[3]", "float32[4]")
def linearized_shape(jax, jnp, lax):
    _, linear = jax.linearize(jnp.sin, jnp.ones(3))
    linear(jnp.ones(4))


@mistake("segment_sum", "(3,)", "(4,)")
def segment_ids_of_another_size(jax, jnp, lax):
    jax.ops.segment_sum(jnp.ones(4), jnp.array([0, 1, 2]))


@mistake("where", "position 2", "x and y")
def where_of_two(jax, jnp, lax):
    jnp.where(jnp.ones(3) > 0, jnp.ones(3))


@mistake("__delitem__", "immutable", "jnp.delete")
def delete_item(jax, jnp, lax):
    x = jnp.ones(3)
    del x[0]


@mistake("scale", "argument path is cfg['n']", "1099511627776", "int32")
def integer_too_large_for_jit(jax, jnp, lax):
    @jax.jit
    def scale(x, cfg):
        return x * cfg["n"]

    scale(1.0, {"n": 2**40})


@mistake("add", "operand 1", "1099511627776", "int32")
def integer_too_large_for_add(jax, jnp, lax):
    jnp.ones(3) + 2**40


@mistake("describe at", "mistakes.py", "str", "['label'][0]")
def string_deep_in_a_result(jax, jnp, lax):
    @jax.jit
    def describe(x):
        return {"value": x, "label": ("big", x)}

    describe(1.0)


@mistake("block_until_ready", "float32[3]")
def waiting_for_a_tracer(jax, jnp, lax):
    jax.jit(lambda x: (x + 1).block_until_ready())(jnp.ones(3))


@mistake("config.update", "jax_enable_x64")
def assigned_setting(jax, jnp, lax):
    jax.config.jax_enable_x64 = True


@mistake("no_such_setting")
def read_unknown_setting(jax, jnp, lax):
    jax.config.no_such_setting


# where library code stands between the user's lines


@mistake("-1")
def scalar_out_of_range(jax, jnp, lax):
    jnp.uint8(-1)


@mistake("no_such_method")
def backward_rule_raises(jax, jnp, lax):
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (ct.no_such_method(),))
    jax.grad(f)(1.0)


@mistake("f_bwd", "float32[2]", "float32[]", "argument x of f")
def backward_rule_shape(jax, jnp, lax):
    @jax.custom_vjp
    def f(x):
        return x

    def f_bwd(_, ct):
        return (jnp.ones(2),)

    f.defvjp(lambda x: (x, None), f_bwd)
    jax.grad(f)(1.0)


@mistake("nondiff_argnums", "traced")
def traced_nondiff_argument(jax, jnp, lax):
    f = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * n, None), lambda n, _, ct: (ct * n,))
    jax.jit(f)(2.0, 1.0)


@mistake("scale", "Expected: int32, Actual: float32")
def callback_dtype(jax, jnp, lax):
    def scale(x):
        return 1.7

    jax.jit(lambda x: jax.pure_callback(scale, jax.ShapeDtypeStruct((), np.int32), x))(1.0).block_until_ready()


@mistake("mul", "(3,)", "(4,)")
def rows_of_operands_under_vmap(jax, jnp, lax):
    jax.vmap(lambda m: m * jnp.ones(4))(jnp.ones((2, 3)))


@mistake("shapes=[(3, 4), (3,)]", "add")
def add_a_column_as_a_row(jax, jnp, lax):
    jnp.ones((3, 4)) + jnp.ones(3)
