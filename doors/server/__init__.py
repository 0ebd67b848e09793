"""What stands around LangGraph's dev server: routes, web pages, tokens, owners, answers.

Guarantees that nothing but a known route is reached, that no foreign web page gets in, and that an
answer is for the question that was open when it came. Imports ``graph``; ``langgraph.json`` names
its modules.
"""

__all__ = (  # modules; what is not here is the package's own
    "app",
    "auth",
    "checkpointer",
    "gate",
    "routes",
    "single_resume",
)
