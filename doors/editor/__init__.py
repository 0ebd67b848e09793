"""The agent in an editor, over the Agent Client Protocol; ``doors.acp_agent`` starts it."""
