"""The room ``files``."""
