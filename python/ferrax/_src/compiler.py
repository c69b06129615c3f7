"""Compilation is the core's; there is nothing here to patch."""
