"""``make chat``: the conversation in a terminal.

Guarantees that text of models, tools and files cannot act on the terminal, and that only a key
pressed after a question is shown answers it. Imports ``graph``, ``modeshift.tools.workspace`` and ``modes``;
``modeshift.commands`` alone imports it.
"""

__all__ = ("connection", "conversation", "keyboard", "screen")  # the public modules
