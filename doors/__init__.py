"""How people and programs reach the agent: the server, editors, commands. Nothing imports it."""
