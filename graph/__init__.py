"""How a turn runs on LangGraph: state, nodes, wiring, models, settings.

``agent.py`` wires; each node has a module of its own. May import ``tools``,
``prompts`` and ``modes``.
"""
