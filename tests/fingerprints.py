"""Fingerprints of what an oracle is asked: the same question has the same one, on every machine and in every run.

A question is a function with its arguments. Of a function of the tests the fingerprint holds the text (comments and
layout aside), the values it closes over, its defaults, and the globals it names, functions among them by their own
texts; of a function of a library it holds the name. Arrays count by dtype, shape, weak type and bytes. What has no
fingerprint raises a TypeError. `recorded.py` uses this, and is the file to read next.
"""

import ast
import enum
import functools
import hashlib
import pathlib
import types

import numpy as np

TESTS = pathlib.Path(__file__).parent


def fingerprint(*values):
    """A text of 20 letters and digits that only equal values share.

    Args:
        values: numbers, texts, arrays, containers of these, functions.

    Raises:
        TypeError: for a value of another kind.
    """
    walk = _Walk()
    walk.add(values)
    return walk.hash.hexdigest()[:20]


def of_the_tests(filename):
    """Whether a file is among the tests: what it says can change with each commit."""
    return pathlib.Path(filename).is_relative_to(TESTS)


@functools.cache
def _definitions(filename):
    """The functions and lambdas that a file defines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [node for node in ast.walk(ast.parse(pathlib.Path(filename).read_text())) if isinstance(node, kinds)]


def _span(node):
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _is_lambda_of(node, code):
    """Whether a lambda's body is where a code object's instructions are."""
    if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno:
        return False
    start, end = _span(node.body)
    # Instructions of no expression, as those that enter and leave, have no columns or empty ones.
    return all(
        start <= (line, column) and (end_line, end_column) <= end
        for line, end_line, column, end_column in code.co_positions()
        if end_column
    )


@functools.cache
def _source(code):
    """(text, names) of a function's definition."""
    if code.co_name == "<lambda>":
        found = [node for node in _definitions(code.co_filename) if _is_lambda_of(node, code)]
        # Lambdas within others: the innermost body that holds all instructions is its own.
        found.sort(key=lambda node: _span(node.body)[0])
        found = found[-1:]
    else:
        first = lambda node: min([node.lineno, *(d.lineno for d in node.decorator_list)])
        named = [node for node in _definitions(code.co_filename) if getattr(node, "name", None) == code.co_name]
        found = [node for node in named if first(node) == code.co_firstlineno]
    if len(found) != 1:
        raise TypeError(f"no definition of {code.co_qualname} at {code.co_filename}:{code.co_firstlineno}")
    return ast.unparse(found[0]), {node.id for node in ast.walk(found[0]) if isinstance(node, ast.Name)}


def _names(code):
    """The names that a code object and those within it look up outside of functions."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


class _Walk:
    def __init__(self):
        self.hash = hashlib.sha256()
        # Objects met, kept alive so that no other gets the same id.
        self.met = {}

    def put(self, kind, text=b""):
        data = text.encode() if isinstance(text, str) else bytes(text)
        self.hash.update(f"{kind}:{len(data)}:".encode() + data)

    def add(self, value):
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes)):
            if isinstance(value, str) and str(TESTS.parent) in value:
                raise TypeError(f"a question that names this checkout's folder is another one elsewhere: {value!r}")
            self.put(type(value).__name__, repr(value))
        elif isinstance(value, np.dtype):
            self.put("dtype", value.name)
        elif isinstance(value, types.ModuleType):
            self.put("module", value.__name__)
        elif hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
            array = np.asarray(value)
            if array.dtype == object:
                raise TypeError(f"an array of objects has no fingerprint: {value!r}")
            self.put("array", f"{array.dtype.name}{array.shape}{getattr(value, 'weak_type', None)}")
            self.put("bytes", np.ascontiguousarray(array).tobytes())
        elif isinstance(value, tuple):
            # Which of two equal tuples are one object is the interpreter's choice.
            self.add_items(value)
        elif id(value) in self.met:
            self.put("met", str(self.met[id(value)][0]))
        else:
            self.met[id(value)] = len(self.met), value
            self.add_compound(value)

    def add_items(self, value):
        self.put(type(value).__name__, str(len(value)))
        for item in value:
            self.add(item)

    def add_compound(self, value):
        if isinstance(value, list):
            self.add_items(value)
        elif isinstance(value, dict):
            self.put("dict", str(len(value)))
            for key, item in value.items():
                self.add(key)
                self.add(item)
        elif isinstance(value, (set, frozenset)):
            self.put("set", " ".join(sorted(fingerprint(item) for item in value)))
        elif isinstance(value, (range, slice)):
            self.put(type(value).__name__)
            self.add((value.start, value.stop, value.step))
        elif isinstance(value, functools.partial):
            self.put("partial")
            self.add((value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            self.put("method")
            self.add((value.__func__, value.__self__))
        elif isinstance(value, enum.Enum):
            self.put("enum", f"{type(value).__qualname__}.{value.name}")
        elif isinstance(value, types.FunctionType) and of_the_tests(value.__code__.co_filename):
            self.add_function(value)
        elif getattr(value, "__module__", None) and getattr(value, "__qualname__", getattr(value, "__name__", None)):
            self.put("named", f"{value.__module__}.{getattr(value, '__qualname__', value.__name__)}")
        elif type(value).__module__.split(".")[0] == "tests" and hasattr(value, "__dict__"):
            self.put("instance", type(value).__qualname__)
            self.add(vars(value))
        else:
            raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} has no fingerprint: {value!r}")

    def add_function(self, function):
        code = function.__code__
        text, names = _source(code)
        self.put("function", text)
        self.add((function.__defaults__, function.__kwdefaults__))
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        for name in sorted(cells):
            self.put("cell", name)
            # A cell may be empty yet: a function that is defined later.
            if cells[name] != types.CellType():
                self.add(cells[name].cell_contents)
        for name in sorted((names & _names(code)) - set(cells)):
            if name in function.__globals__ and name != "__file__":
                self.put("global", name)
                self.add(function.__globals__[name])
