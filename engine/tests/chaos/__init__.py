"""Kills processes of an agent, and counts what went wrong: ``make chaos``."""
