"""Serves a model as ``llama-server`` does, until the standard input ends; prints the address.

Run with the Python of ``.venv-local``: serve.py JSON; see ``tests.local.llama.running``.
"""

import json
import sys

from xllamacpp import CommonParams, Server


def main(model: str, template: str, window: int, threads: int) -> None:
    params = CommonParams()
    params.model.path = model
    params.chat_template = template
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.fit_params = params.warmup = params.ui = False  # slow, and of no use here
    params.verbosity = 0
    server = Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


main(**json.loads(sys.argv[1]))
