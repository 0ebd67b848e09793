"""``make chat``: the conversation in a terminal.

Guarantees that text of models, tools and files cannot act on the terminal, and that only a key
pressed after a question is shown answers it.
"""
