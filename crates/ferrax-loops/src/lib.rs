//! The kernel IR that CPU and CUDA share.
