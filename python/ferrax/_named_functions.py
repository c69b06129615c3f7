"""Functions that operations have as parameters, by the names that equations show.

Read next: `_evaluate.py`, which finds a derivative rule by the printed form of an equation.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

__all__ = ["name_function", "name_of", "named_function"]

_functions: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def name_function(function: Any, name: str, **facts: Any) -> Any:
    """Gives a function the name by which equations show it, which no other has while it lives.

    Args:
      function: a function that an operation has as a parameter.
      name: the name of the user's function.
      **facts: attributes that the function gets.

    Returns:
      The function.

    >>> name_function(lambda x: x, "rule").__name__.startswith("rule at 0x")
    True
    """
    function.__name__ = f"{name} at {id(function):#x}"
    vars(function).update(facts)
    _functions[function.__name__] = function
    return function


def name_of(function: Any, default: str = "<unnamed function>") -> str:
    """The name of a function, also of one that `functools.partial` holds; `default` where there is none.

    >>> import functools
    >>> name_of(functools.partial(sum, [1])), name_of(3)
    ('sum', '<unnamed function>')
    """
    name = getattr(function, "__name__", None)
    if name is not None:
        return str(name)
    return name_of(function.func, default) if isinstance(function, functools.partial) else default


def named_function(name: str) -> Any:
    """The function with a name that `name_function` gave it, or None when there is none any more.

    >>> named_function("nothing") is None
    True
    """
    return _functions.get(name)
