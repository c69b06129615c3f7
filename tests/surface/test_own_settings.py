"""Settings that programs make for themselves, and helpers beside them that tests of JAX's import."""

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax._src import api_util, config, core, jaxpr_util
from ferrax.interpreters import mlir


def test_settings_are_changed_everywhere_and_in_blocks():
    state = config.enum_state("ferrax_test_enum", ["default", "xxx", "yyy"], "default", "For tests.")
    jax.config.update("ferrax_test_enum", "xxx")
    assert (
        state.value == state.get_global() == jax.config.ferrax_test_enum == jax.config.read("ferrax_test_enum") == "xxx"
    )
    with state("yyy"):
        assert (state.value, state.get_global()) == ("yyy", "xxx")
    assert state.value == "xxx"

    @state("default")
    def decorated():
        return state.value

    assert (decorated(), decorated(), state.value) == ("default", "default", "xxx")
    for change in (lambda: jax.config.update("ferrax_test_enum", "zzz"), lambda: state("zzz")):
        with pytest.raises(ValueError, match="new enum value must be in"):
            change()
    with pytest.raises(TypeError, match="Context manager for ferrax_test_enum config option requires an argument"):
        state()
    with pytest.raises(Exception, match="Config option ferrax_test_enum already defined"):
        config.bool_state("ferrax_test_enum", True, "For tests.")
    with pytest.raises(TypeError, match="bool"):
        bool(state)
    with pytest.raises(AttributeError, match="Unrecognized config option"):
        jax.config.update("ferrax_test_none", 1)


def test_functions_are_traced_anew_where_a_setting_changes():
    scale = config.float_state("ferrax_test_scale", 2.0, "For tests.", include_in_trace_context=True)
    f = jax.jit(lambda x: x * scale.value)
    assert f(3.0) == 6.0
    with scale(5.0):
        assert f(3.0) == 15.0
    jax.config.update("ferrax_test_scale", 7)
    assert f(3.0) == 21.0


def test_settings_that_are_yes_or_no_are_switched_on_by_a_block():
    state = config.bool_state("ferrax_test_switch", False, "For tests.")
    with state():
        assert state.value
    assert not state.value


def test_hooks_are_told():
    everywhere, here = [], []
    hooks = {"update_global_hook": everywhere.append, "update_thread_local_hook": here.append}
    state = config.int_state("ferrax_test_int", 3, "For tests.", **hooks)
    with state(4), state(5):
        pass
    jax.config.update("ferrax_test_int", 6)
    assert (everywhere, here) == ([3, 6], [4, 5, 4, None])


@pytest.mark.parametrize(
    ("make", "default", "good", "bad"),
    [
        (config.bool_state, True, False, None),
        (config.int_state, 1, 2, "2"),
        (config.string_state, "a", "b", 1),
        (config.optional_string_state, None, "b", 1),
        (config.string_or_object_state, "a", (1, 2), None),
        (lambda n, d, h: config.optional_enum_state(n, ["a", "b"], d, h), None, "a", "c"),
    ],
)
def test_kinds(make, default, good, bad, monkeypatch, request):
    name = f"ferrax_test_kind_{request.node.callspec.indices['make']}"
    state = make(name, default, "For tests.")
    assert state.value == default
    with state(good):
        assert state.value == good
    if bad is not None:
        with pytest.raises((ValueError, TypeError), match=r"must be (in|None or|of type)"):
            state(bad)
        with pytest.raises(TypeError, match=r"Default value must be of type .*, got"):
            make(f"{name}_wrong", 2.5, "For tests.")
    if isinstance(default, (str, int)):
        monkeypatch.setenv(f"{name}_again".upper(), "0" if isinstance(default, int) else "z")
        assert make(f"{name}_again", default, "For tests.").value == ("z" if isinstance(default, str) else 0)


def test_helpers():
    assert api_util.rebase_donate_argnums((3, 3), (0, 1)) == (1,)
    assert api_util.resolve_kwargs(lambda x, y, z=3: 0, (1,), {"y": 2}) == (1, 2, 3)
    with pytest.raises(TypeError, match=r"keyword arguments.*kw"):
        api_util.resolve_kwargs(lambda x, *, kw=1: 0, (1,), {"kw": 2})
    tree = jax.tree.structure({"a": [1, 2], "b": 3})
    assert api_util.flatten_axis_resources("test", tree, {"a": None, "b": None}, False) == (None, None, None)
    assert core.typecompat(jax.typeof(1.0), jax.typeof(jnp.float32(1)))
    assert not core.typecompat(jax.typeof(1.0), jax.typeof(1))
    assert core.typematch(jax.typeof(1.0), jax.typeof(1), no_dtype_check=True)
    with pytest.raises(NotImplementedError, match=r"unknown platform foo. Known platforms are: .*cuda"):
        mlir.register_lowering(jax.lax.sin_p, lambda *a: a, platform="foo")


def test_where_variables_are_made_and_read():
    inner = jax.jit(lambda y: jnp.sin(y))
    program = jax.make_jaxpr(lambda x: (inner(x) + x, x))(1.0).jaxpr
    (own, facts), (inside, _) = jaxpr_util.var_defs_and_refs(program)
    assert own is program
    (x, made, read), *rest = facts
    assert (x, made) == (program.invars[0], None)
    assert [eqn and eqn.primitive.name for eqn in read] == ["jit", "add", None]
    assert [eqn.primitive.name for _, eqn, _ in rest] == ["jit", "add"]
    assert inside.eqns[0].primitive.name == "sin"
    assert [eqn.primitive.name for eqn in jaxpr_util.eqns_using_var(program, x)] == ["sin", "add"]
    plain = jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr
    assert jaxpr_util.var_defs_and_refs(plain)[0] is plain


def test_flags_of_the_environment(monkeypatch):
    flag = config.float_flag("ferrax_test_flag", 1.5, "For tests.")
    assert (flag.value, config.int_env("FERRAX_TEST_FLAG", 3)) == (1.5, 3)
    monkeypatch.setenv("FERRAX_TEST_FLAG", "2")
    assert (flag.value, config.int_env("FERRAX_TEST_FLAG", 3)) == (2.0, 2)
