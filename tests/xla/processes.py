"""Programs in processes of their own, with the plugin that the environment names."""

import os
import subprocess
import sys


def plugin():
    """Where the plugin is."""
    return dict(entry.split(":", 1) for entry in os.environ["FERRAX_PJRT_PLUGIN"].split(","))["xla_cpu"]


def run(code, **environment):
    """What a new process prints, which must end well."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ | environment
    )
    return done.stdout.strip()
