"""Names of JAX's insides that libraries cannot live without; each file here is a few of them, under JAX's path.

Nothing of ferrax's own imports from here, and nothing else is promised: what is not here is not part of the interface.
"""
