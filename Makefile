# Chores. `make demo` and `make test` set up everything they need in .venv; both are quick when nothing changed.
# Variables: PYTHON (the interpreter to make .venv with), PROFILE (the cargo profile of the extension).

PYTHON ?= python3
PROFILE ?= release
VENV := .venv
PY := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
RUST_SOURCES := $(shell find crates tests/engine -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
# PyO3 and maturin look at these
export PYO3_PYTHON := $(abspath $(PY))
export VIRTUAL_ENV := $(abspath $(VENV))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-rust test-python test-live record test-engine test-cuda test-gpu test-xla test-xla-all test-cuda-compile xla-plugin test-nvrtc sanitize unoptimized aarch64 aarch64-tools avx512 avx512-tools lint format develop wheel bench \
  stubs generated fuzz clean bench-crates

help:
	@echo "make demo     set up, build the release extension, train examples/digits.py"
	@echo "make test     set up, cargo tests, pytest"
	@echo "make test-live  pytest against JAX itself, not what is recorded of it"
	@echo "make record   ask JAX again and write tests/recordings"
	@echo "make test-engine  tests of transformations and primitives on the interpreter of tests/engine"
	@echo "make test-cuda  the same on the engine of NVIDIA's GPUs, with a driver whose kernels the host computes"
	@echo "make test-gpu   most of the suite on an NVIDIA GPU"
	@echo "make test-xla the tests of PJRT, and programs on a CPU client of XLA"
	@echo "make test-xla-all   those, and more of the suite on that client"
	@echo "make test-cuda-compile   StableHLO compiled for GPUs that are not there by XLA's CUDA plugin (wheels of 220 MB)"
	@echo "make test-nvrtc  NVIDIA's compiler on what ferrax writes for its GPUs, where the compiler is installed"
	@echo "make sanitize the tests of buffers and of the engine's portable kernels under address sanitizer"
	@echo "make unoptimized  a Rust example, and a thread with little stack, in a build without optimizer, as a service's own debug build is"
	@echo "make aarch64  the engine's tests on AArch64 under emulation"
	@echo "make avx512   the engine's tests on AVX-512 in an emulated machine"
	@echo "make lint     formatting, clippy, ruff, mypy, code lines"
	@echo "make format   format Rust and Python"
	@echo "make develop  build the extension into python/ferrax (PROFILE=dev for a quick build)"
	@echo "make wheel    a wheel in dist/"
	@echo "make fuzz     random programs and odd arguments for hours (START, STOP, JOBS, OPTIONS; tests/fuzz/README.md)"
	@echo "make bench    the benchmark rows against NumPy and JAX"
	@echo "make bench-crates  our own code beside crates that do the same work"
	@echo "make generated  write what the blocks of primitives say: docs/coverage.md, functions in Rust and Python, type stubs"
	@echo "make stubs    of these, what the built extension says: functions in Python and type stubs"

demo: develop
	$(PY) examples/digits.py

test: test-rust test-python test-engine
	$(MAKE) test-cuda CUDA_TESTS="$(CUDA_SHARE)"

# The extension module has no Rust tests: it is tested from Python. An odd number of threads, more than most machines of
# continuous integration have: results depend on it nowhere.
test-rust: $(STAMPS)/deps
	FERRAX_NUM_THREADS=7 PROPTEST_RNG_SEED=20261121 cargo test --workspace --exclude ferrax-python --no-fail-fast

test-python: develop
	$(PY) -m pytest -n auto --dist loadfile --durations 30

# Most tests compare with results of JAX that are recorded (tests/recorded.py): its compiler takes minutes and gigabytes.
test-live: develop
	FERRAX_LIVE=1 $(PY) -m pytest -n auto --dist loadfile

# The files of tests that ask for recorded results. A worker records whole files.
ASKING = $(shell grep -lE '^from tests.*(recorded|numpy.oracle|scipy_oracle)' tests/*/test_*.py)
record: develop
	rm -rf tests/recordings
	FERRAX_RECORD=1 $(PY) -m pytest -n auto --dist loadfile $(ASKING)

# Transformations and primitives on an engine that is not the embedded one (tests/engine), which holds arrays in memory of
# its own and computes them later: what only the embedded engine can do would show.
test-engine: develop
	FERRAX_TEST_ENGINE=async FERRAX_PLATFORMS=interpreter $(PY) -m pytest -n auto --dist loadfile tests/transforms tests/lax/test_shape_and_reduce.py \
	  tests/lax/test_windows.py tests/lax/test_bit_casts.py tests/lax/test_conversion.py

# Programs on NVIDIA's GPUs as far as that goes without one: a driver and an NVRTC whose kernels the host's compiler makes and the
# host computes. Compiled kernels stay in target/fake-cuda. What has no kernel is left out by its name (tests/cuda/session.py).
CUDA_TESTS ?= tests/cuda tests/transforms tests/lax
# What fits a test run; tests/cuda itself is in `make test-python`.
CUDA_SHARE := tests/transforms/test_loops.py tests/transforms/test_programs.py
test-cuda: develop
	@if environment=$$($(PY) -m tests.cuda.fake); then \
	  env $$environment FERRAX_PLATFORMS=cuda $(PY) -m pytest -n auto --dist loadfile $(CUDA_TESTS); \
	else echo "left out: there is no driver for tests here"; fi

# The same on a real GPU.
GPU_TESTS ?= tests/transforms tests/lax tests/numpy tests/nn tests/random tests/scipy tests/spec
test-gpu: develop
	FERRAX_PLATFORMS=cuda $(PY) -m pytest -n auto --dist loadfile $(GPU_TESTS)

# Programs on XLA: a real CPU client of XLA behind the PJRT C API, built from a wheel of another project's (tests/xla), takes
# what the embedded engine takes. The share that fits a test run is the folder of its own tests, the FAQ's programs, functions' accuracy,
# and arrays over several devices.
# Beside ferrax-ir, whose tests ask for the same features of crates as the workspace's, ferrax-pjrt's are built as `make test` built them.
XLA_CACHE := target/xla
XLA_TESTS ?= tests/xla tests/spec tests/lax/test_accuracy.py $(patsubst %,tests/sharding/test_%.py,devices against_jax shown typed results documents_arrays documents_explicit documents_shard_map)
xla-plugin:
	tests/xla/plugin/build.sh $(abspath $(XLA_CACHE)) > /dev/null

test-xla: develop xla-plugin
	plugin=$$(tests/xla/plugin/build.sh $(abspath $(XLA_CACHE)) | tail -n 1) && \
	  FERRAX_PJRT_PLUGIN=xla_cpu:$$plugin cargo test --package ferrax-pjrt --package ferrax-ir -- --include-ignored --skip gpus_that_are_not_there && \
	  FERRAX_PJRT_PLUGIN=xla_cpu:$$plugin FERRAX_PLATFORMS=xla_cpu $(PY) -m pytest -n auto --dist loadfile $(XLA_TESTS)

# More of the suite on XLA. Each small program takes XLA tens of milliseconds, so that no test run has them. Each file has a
# process of its own: what XLA compiles for one takes mappings of memory, of which a process has 65,530, and a
# compiler without any left may end it, JAX's own beside ours too.
XLA_ALL ?= tests/suite tests/lax tests/numpy tests/transforms tests/nn tests/random tests/scipy/test_linalg.py
XLA_JOBS ?= $(shell nproc)
test-xla-all: test-xla
	plugin=$$(tests/xla/plugin/build.sh $(abspath $(XLA_CACHE)) | tail -n 1) && find $(XLA_ALL) -name 'test_*.py' | sort | \
	  FERRAX_PJRT_PLUGIN=xla_cpu:$$plugin FERRAX_PLATFORMS=xla_cpu xargs -n 1 -P $(XLA_JOBS) $(PY) -m pytest -q -p no:xdist

# Nor does XLA's CUDA plugin need a GPU: it compiles what the tests of kinds and the whole programs of benches/ print for two that
# are not there. The plugin is large, and the programs are two thousand, so that no test run has them.
STABLEHLO_PROGRAMS := target/stablehlo-programs
test-cuda-compile: develop xla-plugin
	rm -rf $(STABLEHLO_PROGRAMS) && mkdir -p $(STABLEHLO_PROGRAMS)
	plugin=$$(tests/xla/plugin/build.sh $(abspath $(XLA_CACHE)) | tail -n 1) && \
	  FERRAX_STABLEHLO_PROGRAMS=$(abspath $(STABLEHLO_PROGRAMS)) FERRAX_PJRT_PLUGIN=xla_cpu:$$plugin \
	  cargo test --package ferrax-pjrt --package ferrax-ir --test 'kinds_*' --test 'library_*' -- --include-ignored
	$(PY) tests/xla/write_programs.py $(STABLEHLO_PROGRAMS)
	plugin=$$(tests/xla/plugin/cuda.sh $(abspath $(XLA_CACHE)) | tail -n 1) && \
	  FERRAX_STABLEHLO_PROGRAMS=$(abspath $(STABLEHLO_PROGRAMS)) FERRAX_CUDA_PLUGIN=$$plugin \
	  cargo test --package ferrax-pjrt --package ferrax-ir --test topology -- --ignored gpus_that_are_not_there

# NVRTC needs no GPU to compile for one: it takes the sources that the planner's tests print. NVRTC is a library or its folder;
# a wheel in .venv is found.
NVRTC ?= $(or $(FERRAX_NVRTC),$(patsubst %/,%,$(dir $(firstword $(wildcard $(VENV)/lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*)))))
NVRTC_SOURCES := target/nvrtc-sources
# One source of this many is compiled: there are a thousand of them, and a second or more is spent on each.
NVRTC_SHARE ?= 16
test-nvrtc:
ifeq ($(NVRTC),)
	@echo "left out: there is no NVRTC. '$(PY) -m pip install nvidia-cuda-nvrtc-cu12' brings one, NVRTC=PATH names another"
else
	rm -rf $(NVRTC_SOURCES) && mkdir -p $(NVRTC_SOURCES)
	FERRAX_CUDA_SOURCES=$(abspath $(NVRTC_SOURCES)) cargo test --package ferrax-cuda --test programs --test 'kinds_*' --test library
	FERRAX_CUDA_SOURCES=$(abspath $(NVRTC_SOURCES)) FERRAX_NVRTC=$(abspath $(NVRTC)) FERRAX_TEST_SHARE=$(NVRTC_SHARE) \
	  cargo test --package ferrax-cuda --test driver -- --ignored nvrtc
endif

# Buffers are exact allocations here; handlers of the SIMD machine are no tail calls under the sanitizer, so the machine is
# left out. Only this workspace's crates are instrumented, and optimized less than in other builds: they take longer to
# compile than to run. The engine's tests are one binary (`sanitized` in crates/ferrax-cpu/src/lib.rs says which).
sanitize: export RUSTC_WORKSPACE_WRAPPER := $(abspath tools/sanitized)
sanitize:
	PROPTEST_CASES=32 PROPTEST_RNG_SEED=20261121 ASAN_OPTIONS=allocator_may_return_null=1,detect_leaks=0 \
	  cargo test --config 'profile.dev.package.ferrax-cpu.opt-level=1' --config 'profile.dev.package.ferrax-linalg.opt-level=1' \
	  --package ferrax-base --package ferrax-cpu --features ferrax-cpu/portable --lib

# The engine as the debug build of somebody's service has it: profiles of this workspace do not reach there, so that nothing
# is optimized, handlers of the SIMD machine are no tail calls, and portable kernels run.
UNOPTIMIZED := --config 'profile.dev.opt-level=0' $(foreach crate,ferrax-cpu ferrax-linalg,$(foreach \
	setting,opt-level=0 debug-assertions=true overflow-checks=true,--config 'profile.dev.package.$(crate).$(setting)')) \
	--target-dir target/unoptimized --package ferrax
unoptimized:
	cargo test $(UNOPTIMIZED) --test small_stack
	cargo run $(UNOPTIMIZED) --example logistic

# Another architecture, built here and run by an emulator: that says whether results are right, not how fast they come.
# Only these crates know of architectures.
EMULATED := aarch64-unknown-linux-gnu
# Properties are tested with one case of this many: an emulator is slow.
EMULATED_SHARE ?= 16
# Which tests: all, or `--test '*'` for those that see the crates from outside, which spares a second build of the engine,
# as in `make test`.
EMULATED_TESTS ?= --lib --tests
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
aarch64: aarch64-tools
	FERRAX_TEST_SHARE=$(EMULATED_SHARE) PROPTEST_CASES=16 PROPTEST_RNG_SEED=20261121 \
	  cargo test --target $(EMULATED) --package ferrax-base --package ferrax-loops --package ferrax-cpu \
	  $(EMULATED_TESTS) -- --skip long_ones

aarch64-tools:
	@missing=; \
	command -v aarch64-linux-gnu-gcc >/dev/null || missing="$$missing gcc-aarch64-linux-gnu"; \
	[ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || missing="$$missing libc6-dev-arm64-cross"; \
	command -v qemu-aarch64 >/dev/null || missing="$$missing qemu-user"; \
	if [ -n "$$missing" ]; then echo "AArch64 under emulation needs these packages of Debian:$$missing"; fi; \
	std=$$(rustc --print target-libdir --target $(EMULATED)); \
	if [ ! -d "$$std" ]; then echo "AArch64 needs Rust's library for it: rustup target add $(EMULATED)"; missing=$(EMULATED); fi; \
	[ -z "$$missing" ]

# AVX-512 on any x86-64: the engine's test binaries, those of `make test`, one after another in one emulated machine with
# two threads on its processor. Emulators of single programs have no AVX-512. Left out is what takes seconds on a real one.
AVX512_SHARE ?= 32
avx512: avx512-tools $(STAMPS)/deps
	cargo test --package ferrax-cpu --lib --tests --no-run
	FERRAX_TEST_SHARE=$(AVX512_SHARE) FERRAX_NUM_THREADS=2 PROPTEST_CASES=8 PROPTEST_RNG_SEED=20261121 \
	  tools/avx512/run tests $$(cargo test --package ferrax-cpu --lib --tests --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$$/\1/p') \
	  -- --skip long_ones --skip spans --skip matmul::tests::large

avx512-tools:
	@missing=; \
	command -v $${BOCHS:-bochs} >/dev/null || missing="$$missing bochs"; \
	command -v xorriso >/dev/null || missing="$$missing xorriso"; \
	command -v cpio >/dev/null || missing="$$missing cpio"; \
	command -v busybox >/dev/null || missing="$$missing busybox-static"; \
	[ -e /usr/share/bochs/BIOS-bochs-latest ] || missing="$$missing bochsbios"; \
	[ -e /usr/share/bochs/VGABIOS-lgpl-latest ] || missing="$$missing vgabios"; \
	[ -e /usr/lib/ISOLINUX/isolinux.bin ] || missing="$$missing isolinux"; \
	[ -e /usr/lib/syslinux/modules/bios/ldlinux.c32 ] || missing="$$missing syslinux-common"; \
	ls /boot/vmlinuz-*-amd64 target/avx512/vmlinuz 2>/dev/null | grep -q . || apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 || \
	  missing="$$missing linux-image-cloud-amd64"; \
	if [ -n "$$missing" ]; then echo "AVX-512 under emulation needs these packages of Debian:$$missing"; fi; \
	[ -z "$$missing" ]

# Code lines of all crates, with the words of elementwise functions, primitives of Python's own, shardings, XLA, CUDA and foreign functions; to fall.
MOST_LINES := 102150
lint: $(STAMPS)/deps
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features ferrax-python/test-engine -- -D warnings
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) tools/code_lines.py $(MOST_LINES)

format:
	cargo fmt --all
	$(PY) -m ruff check --fix-only --exit-zero .
	$(PY) -m ruff format .

develop: $(STAMPS)/extension-$(PROFILE)

wheel: $(STAMPS)/deps
	$(PY) -m maturin build --release --out dist

# Seeds of programs, processes at once, and options of `python -m tests.fuzz` beside them.
START ?= 0
STOP ?= 100000
JOBS ?= 2
OPTIONS ?=
fuzz: develop
	$(PY) -m tests.fuzz $(START) $(STOP) --jobs $(JOBS) $(OPTIONS)
	$(PY) -m tests.fuzz $(START) $(STOP) --jobs $(JOBS) --x64 $(OPTIONS)
	$(PY) -m tests.fuzz $(START) $$(($(START) + ($(STOP) - $(START)) / 5)) --jobs $(JOBS) --jax 1 $(OPTIONS)
	$(PY) -m tests.fuzz.bits $(START) $$(($(START) + ($(STOP) - $(START)) / 50)) --isa portable avx2 native --threads 1 2 4
	$(PY) -m tests.fuzz.api --seed $(START) --jobs $(JOBS)
	$(PY) -m tests.fuzz.trials --seed $(START)

bench: develop
	$(PY) benches/imports.py
	$(PY) benches/dispatch.py
	$(PY) benches/compile.py
	$(PY) benches/cpu.py
	$(PY) benches/patterns.py
	$(PY) benches/science.py
	$(PY) benches/programs.py
	$(PY) benches/sharded.py
	$(PY) benches/errors.py

bench-crates:
	cargo run --release --manifest-path benches/crates/Cargo.toml --target-dir target/bench-crates

stubs: develop
	$(PY) tools/stubs.py

# Rust's part comes first: the extension is built from it.
generated: $(STAMPS)/deps
	FERRAX_WRITE_GENERATED=1 cargo test --quiet --package ferrax-ops --test generated
	$(MAKE) stubs

clean:
	rm -rf $(VENV) dist python/ferrax/_ferrax*.so
	cargo clean

$(PY):
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "ferrax needs Python 3.11 or newer"'
	@cargo --version >/dev/null || { echo "ferrax needs Rust 1.95 or newer (cargo was not found)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/deps: pyproject.toml | $(PY)
	@mkdir -p $(STAMPS)
	$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); x = p["project"]; o = x["optional-dependencies"]; \
	  print("\n".join(p["build-system"]["requires"] + x["dependencies"] + o["test"] + o["lint"]))' > $(STAMPS)/requirements.txt
	$(PY) -m pip install --quiet --requirement $(STAMPS)/requirements.txt
	@touch $@

$(STAMPS)/extension-$(PROFILE): $(STAMPS)/deps $(RUST_SOURCES)
	$(PY) -m maturin develop --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),--features test-engine)
	@rm -f $(STAMPS)/extension-*
	@touch $@
