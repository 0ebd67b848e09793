"""How a turn runs on LangGraph: ``agent.py`` wires the nodes."""
