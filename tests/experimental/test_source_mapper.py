"""Source maps of programs' texts."""

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import source_mapper
from ferrax.experimental.source_mapper import hlo


def two_steps(x, y):
    z = jnp.sin(x) @ y
    return jax.lax.cond(z.sum() > 0, lambda: jnp.cos(z), lambda: z)


# lines are counted from 0: the first of the function's body
LINE = two_steps.__code__.co_firstlineno


def of(name, fun, *args, **kwargs):
    (dump,) = source_mapper.generate_sourcemaps(fun, source_mapper.filter_passes(name))(*args, **kwargs)
    assert dump.pass_name == name and dump.source_map.version == 3
    return dump


def places(dump):
    """Columns, lines and columns of the source by lines of the text."""
    lines, last = dump.generated_code.split("\n"), [0, 0, 0]
    assert len(dump.source_map.mappings) == len(lines) + 1
    found = []
    for line, segments in zip(lines, dump.source_map.mappings, strict=False):
        at = 0
        for column, file, source_line, source_column in segments:
            at += column
            last = [a + b for a, b in zip(last, (file, source_line, source_column), strict=True)]
            found.append((line[at:], *last))
    return found


def test_programs():
    dump = of("jaxpr", two_steps, jnp.ones((2, 2)), y=jnp.ones((2, 2)))
    assert list(dump.source_map.sources) == [__file__]
    found = {text.split(" = ")[1].split("[")[0].split()[0]: rest for text, *rest in places(dump)}
    assert found["sin"] == [0, LINE, 8] and found["dot_general"] == [0, LINE, 8]
    assert found["cos"] == [0, LINE + 1, 45] and found["cond"] == [0, LINE + 1, 11]


@pytest.mark.parametrize("name, operation", [("hlo:stable-hlo", "stablehlo.sine"), ("hlo:original", " sine(")])
def test_lowered_programs(name, operation):
    dump = of(name, two_steps, jnp.ones((2, 2)), jnp.ones((2, 2)))
    assert list(dump.source_map.sources) == [__file__]
    (line,) = {rest[1] for text, *rest in places(dump) if operation in text}
    assert line == LINE


TABLES = """HloModule m

FileNames
1 "a.py"
2 "b.py"

FunctionNames
1 "main"

FileLocations
1 {file_name_id=2 function_name_id=1 line=7 end_line=7 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY e {
  x = f32[] parameter(0)
  y = f32[] sine(x), metadata={op_name="sin" stack_frame_id=2}
  ROOT z = f32[] cosine(y), metadata={op_name="cos" source_file="c.py" source_line=9}
}"""


def test_texts_of_hlo():
    found = hlo.parse_hlo_dump(TABLES)
    assert list(found.sources) == ["a.py", "c.py"]
    assert [m for m in found.mappings if m] == [[(2, 0, 2, 0)], [(2, 1, 6, 0)]]


def test_texts_of_mlir():
    text = 'f {\n  a loc(#loc3)\n  b loc("x"("p.py":4:2))\n  c loc(unknown)\n}\n'
    text += '#loc1 = loc("q.py":8:1 to :3)\n#loc2 = loc("f"(#loc1))\n#loc3 = loc(callsite(#loc2 at #loc9))'
    found = source_mapper.create_mlir_sourcemap(text)
    assert list(found.sources) == ["q.py", "p.py"]
    assert [m for m in found.mappings if m] == [[(2, 0, 7, 1)], [(2, 1, -4, 1)]]


def test_passes():
    names = [p.name for p in source_mapper.all_passes()]
    assert names == ["jaxpr", "hlo:stable-hlo", "hlo:original"]
    assert [p.name for p in source_mapper.filter_passes("hlo")] == names[1:]
    with pytest.raises(ValueError, match="Pass jaxpr already registered"):
        source_mapper.register_pass(source_mapper.all_passes()[0])
    assert len(source_mapper.generate_sourcemaps(jnp.sin, source_mapper.all_passes())(1.0)) == 3
