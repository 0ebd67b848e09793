"""The room ``models``."""
