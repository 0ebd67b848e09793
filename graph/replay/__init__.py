"""The room ``replay``."""
