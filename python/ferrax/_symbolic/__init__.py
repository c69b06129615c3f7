"""Symbolic dimensions: sizes of axes that a program leaves open until it is called.

`_expressions.py` has the sizes and their arithmetic, `_scopes.py` what is known of the variables of a program,
`_bounds.py` what follows from it for an expression, `_text.py` how sizes are written, `_solve.py` the variables of a
call's arguments, `_programs.py` programs with open sizes. In the core a symbolic size is a number of its own
(`crates/ferrax-base/src/symbolic.rs`), for which `_core.py` finds the expression. Nothing here is imported before a
symbolic size is made. Read next: `_expressions.py`.
"""
