"""The Agent Client Protocol: the same agent in editors.

Guarantees that what an editor shows is what is enforced, and that a closed dialog approves
nothing.
"""
