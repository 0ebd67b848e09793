"""Ways in: what serves the agent, and what shows it. May import everything of ours."""
