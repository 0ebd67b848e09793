"""The room ``configuration``."""
