"""How a turn runs on LangGraph.

Read ``agent.py`` first: it wires the nodes, and each node is a module beside it. What holds the
guarantees is in the packages below, one for each concern. May import ``tools``, ``prompts`` and
``modes``.
"""
