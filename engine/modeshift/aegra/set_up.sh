#!/bin/sh
# Makes .venv-serve for Aegra, which needs Python 3.12: what pyproject.toml names, in the versions of
# requirements.lock, and the engine's extra; once for each contents of these. "is-ready" only says,
# by its exit code, whether that is done. Called by the Makefile.
set -eu
contents=$(cat requirements.lock pyproject.toml | cksum)
if [ -f .venv-serve/.ready ] && [ "$contents" = "$(cat .venv-serve/.ready)" ]; then
    exit
fi
[ "${1:-}" != is-ready ] || exit 1
uv=.venv/bin/uv
python=
# Each is run first: pyenv has programs of these names that fail, and Pythons that are not on PATH.
for candidate in ${PYTHON:-.venv/bin/python python3.12 python3.13 python3.14 python3 \
    "${HOME:-}"/.pyenv/versions/3.1[2-9]*/bin/python}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
# One that uv has installed before; it downloads none that nobody has asked for.
if [ -z "$python" ] && [ -z "${PYTHON:-}" ]; then
    python=$($uv python find --no-python-downloads '>=3.12' 2>/dev/null) || true
fi
if [ -z "$python" ]; then
    echo "Aegra needs Python 3.12 or newer, and ${PYTHON:-python3.12} is missing, older, or does not run; install it, or set PYTHON=/path/to/python3.12" >&2
    exit 1
fi
echo "Setting up .venv-serve for Aegra, when pyproject.toml or requirements.lock have changed"
$uv venv --quiet --clear --no-python-downloads --python "$python" .venv-serve
UV_LINK_MODE=copy $uv pip install --quiet --compile-bytecode --python .venv-serve/bin/python \
    --constraint requirements.lock --verify-hashes --editable "${WITH:-.}" 'modeshift[aegra]'
echo "$contents" > .venv-serve/.ready
