"""Paths of files."""

from pathlib import Path as Path
