#!/bin/sh
# divergence.sh MODEL.gguf BINARY TEXT [WINDOWS]: holds this engine's fast path
# and llama.cpp's against PyTorch's float32 on one text, in one run, and prints
# both mean divergences and perplexities. PYTHON is a Python with torch,
# transformers and gguf; LLAMA_PERPLEXITY llama.cpp's program.
set -eu
model=$1 binary=$2 text=$3 windows=${4:-40} ctx=512
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/ours" "$dir/theirs"
"${LLAMA_PERPLEXITY:-llama-perplexity}" -m "$model" --kl-divergence --kl-divergence-base "$dir/theirs" -c $ctx -b $ctx -t 1 >"$dir/theirs.log" 2>&1 &
(cd "$here/../.." && INFERFLOW_KL_BASE=$dir/ours INFERFLOW_KL_MODEL=$model go test ./internal/model -run TestDivergence -count 1 -timeout 0 -v >"$dir/ours.log" 2>&1) &
"${PYTHON:-python3}" "$here/stream.py" "$model" "$binary" "$text" "$windows" $ctx 2>"$dir/reference.log" | tee "$dir/ours" >"$dir/theirs" || tail -n 5 "$dir/reference.log"
wait
echo "this engine:"; grep 'mean divergence' "$dir/ours.log" | tail -n 1 || tail -n 5 "$dir/ours.log"
echo "llama.cpp:"; grep -E 'Mean +KLD|Maximum KLD|Mean PPL|Same top' "$dir/theirs.log" || tail -n 5 "$dir/theirs.log"
