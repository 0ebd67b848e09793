"""Tests with the real server of llama.cpp, a real tokenizer, real templates and a real KV cache.

``make local-models`` runs them, in an environment of their own; see ``llama`` and ``templates``.
"""
