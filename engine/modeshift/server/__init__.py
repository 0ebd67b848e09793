"""What stands between clients and LangGraph's dev server: the gate, tokens, decisions.

Guarantees that only known routes can be reached and no foreign web page gets in, that with tokens
each user has only his own threads, and that a decision is for the question that was open when it
came in.
"""
