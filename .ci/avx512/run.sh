#!/usr/bin/env bash
# Runs a static linux/amd64 program on an emulated processor with AVX-512 and
# VNNI, and exits with its status (125: the emulator failed). Works as the
# program of "go test -exec". See docs/decisions/avx512-emulation.md.
#   run.sh [-with PATH]... [-env NAME=VALUE]... [-mem MiB] [-cpu MODEL] [-timeout D] BINARY [ARG]...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export AVX512_CACHE=${AVX512_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/inferflow-avx512}
"$here/setup.sh" >&2
exec "$AVX512_CACHE/avx512emu" "$@"
