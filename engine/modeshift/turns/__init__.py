"""How a turn runs on LangGraph: what a clone's nodes are made of.

``Step`` is what a node gets, ``AgentGraph`` wires the nodes. What holds the guarantees is in the
rooms below, one for each concern.
"""
