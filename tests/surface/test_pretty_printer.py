"""Documents of `jax._src.pretty_printer`: random ones are laid out as JAX lays them out."""

import importlib
import random

import pytest

from ferrax._src import pretty_printer
from tests.recorded import expected

TEXTS = ["", "a", "ab<&", "words of it", "> 'x'"]


def document(pp, rng, depth):
    """A random document."""
    kinds = ["text", "brk", "nil"]
    kind = rng.choice([*kinds, "text", "concat", "concat", "group", "nest", "color", "mark"] if depth else kinds)
    if kind == "text":
        anchor, href = rng.choice([(None, None), ("place", None), (None, "#place")])
        return pp.text(rng.choice(TEXTS), rng.choice([None, None, None, "note"]), anchor, href)
    if kind == "brk":
        return pp.brk(rng.choice([" ", "", "-"]))
    if kind == "nil":
        return pp.nil()
    if kind == "concat":
        return pp.concat([document(pp, rng, depth - 1) for _ in range(rng.randint(0, 5))])
    if kind == "group":
        return pp.group(document(pp, rng, depth - 1))
    if kind == "nest":
        return pp.nest(rng.randint(0, 4), document(pp, rng, depth - 1))
    if kind == "mark":
        return pp.source_map(document(pp, rng, depth - 1), rng.randint(1, 3))
    foreground = rng.choice([None, pp.Color.RED, pp.Color.RESET])
    background, intensity = rng.choice([None, pp.Color.BLUE]), rng.choice([None, pp.Intensity.DIM, pp.Intensity.NORMAL])
    return pp.color(document(pp, rng, depth - 1), foreground, background, intensity)


@pytest.mark.parametrize("seed", range(40))
def test_documents_are_laid_out_as_by_jax(seed):
    def told(jax):
        pp = importlib.import_module(f"{jax.__name__}._src.pretty_printer")
        doc = document(pp, random.Random(seed), 5)
        found = [repr(doc), doc.format(), doc.format(5, use_color=False), doc.format(5, annotation_prefix=" // ")]
        for width in (0, 12):
            for form in pp.OutputFormat:
                for coloured in (False, True):
                    places = []
                    options = {"use_color": coloured, "output_format": form}
                    found.append(doc.format(width, **options, source_map=places))
                    found.append([[list(place) for place in line] for line in places])
                    found.append(doc.format(width, **options, separable_lines=True))
                    if "annotation" not in found[0]:  # JAX leaves colours of lines with annotations open
                        found.append(doc.format(width, **options))
        return found

    import ferrax

    assert told(ferrax) == expected(told)


def test_words_and_types_have_colours():
    pp = pretty_printer
    doc = pp.join(pp.text(" "), [pp.keyword(pp.text("let")), pp.type_annotation(pp.text("f32")), pp.text("x")])
    assert doc.format(use_color=True) == "\x1b[34;1mlet\x1b[39;22m \x1b[35mf32\x1b[39m x"
    assert str(doc) == str(pp.text("let") + pp.text(" f32 x")) == "let f32 x" and str(pp.join(doc, [])) == ""


def test_colours_of_lines_with_annotations_end_before_them():
    pp = pretty_printer
    lines = pp.text("a", annotation="1") + pp.brk() + pp.text("b")
    assert pp.color(lines, pp.Color.RED).format(use_color=True) == (
        "\x1b[31ma\x1b[39m\x1b[2m # 1\x1b[22m\n\x1b[31mb\x1b[39m"
    )


def test_what_is_no_document_is_refused():
    pp = pretty_printer
    x = pp.text("x")
    for make in (
        lambda: pp.text(1),
        lambda: pp.concat([x, "y"]),
        lambda: pp.group("x"),
        lambda: pp.nest("2", x),
        lambda: pp.color(1),
        lambda: pp.source_map(x, None),
        lambda: x + "y",
        pp.Doc,
    ):
        with pytest.raises(TypeError):
            make()
