"""Arrays in TensorStore: the interface from which libraries of checkpoints derive. Read next: `serialization.py`."""
