"""The room ``commands``."""
