//! What runs programs on GPUs, on a driver and a compiler that need none (`tests/fake`).
#![cfg(target_os = "linux")]

mod cubins;
mod faults;
mod harness;
mod loading;
mod memory;
mod nvrtc;
mod planned;
mod programs;
