"""How a turn runs on LangGraph.

Read ``agent.py`` first: it wires the nodes, and those of the loop are modules beside it. What
holds the guarantees is in the packages, one for each concern. May import ``tools``, ``prompts`` and
``modes``.
"""
