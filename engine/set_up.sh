#!/bin/sh
# Makes .venv from requirements.lock, hashes checked. Called by the Makefile.
set -eu
python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "Python 3.11 or newer is needed, and ${PYTHON:-python3 is older or missing}; set PYTHON=/path/to/python" >&2
    exit 1
fi
echo "Setting up .venv for the engine's tests, once for each requirements.lock: up to two minutes"
[ -x .venv/bin/pip ] || "$python" -m venv --clear .venv
sed -n '/^uv==/,/[^\\]$/p' requirements.lock > .venv/uv.txt
.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
export UV_LINK_MODE=copy
.venv/bin/uv pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --editable .
