#!/bin/bash
# cuda.sh [CACHE_DIR]: XLA's CUDA plugin, which compiles for GPUs that are not there.
#
# Downloads its wheel and those of NVIDIA's assembler and of libdevice, which it looks for beside itself (220 MB, once, with
# pip), unpacks them, and prints the plugin's path as its last line.
set -euo pipefail
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pjrt-cuda}
version=0.10.2
folder=$cache/cuda-$version
if [[ ! -f $folder/whole ]]; then
  mkdir -p "$folder"
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$folder" \
    "jax-cuda13-pjrt==$version" "nvidia-cuda-nvcc>=13,<14" "nvidia-nvvm>=13,<14" >&2
  for wheel in "$folder"/*.whl; do python3 -m zipfile -e "$wheel" "$folder"; done
  chmod +x "$folder"/nvidia/cu13/bin/*
  rm "$folder"/*.whl
  touch "$folder/whole"
fi
echo "$folder/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
