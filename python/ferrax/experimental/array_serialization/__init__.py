"""Arrays kept in TensorStore: the interface that libraries of checkpoints derive from. Read next: `serialization.py`."""
