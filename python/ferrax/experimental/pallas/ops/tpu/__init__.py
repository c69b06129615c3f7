"""Kernels for TPUs: names alone. Read next: `ferrax/nn/_attention.py`, whose attention runs everywhere."""
