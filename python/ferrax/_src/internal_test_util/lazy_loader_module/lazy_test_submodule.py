"""A module with a function."""


def a_function() -> int:
    """Returns: a number."""
    return 42
