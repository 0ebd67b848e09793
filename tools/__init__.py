"""What the agent can do: the tools, the toolbox that checks calls, the workspace.

To add a tool, write a function in a module here, wrap it with ``Tool.of`` and add it
to ``toolbox.py``. May import ``modes`` and ``prompts``, nothing else of ours.
"""
