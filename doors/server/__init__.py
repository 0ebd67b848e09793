"""The room ``server``."""
