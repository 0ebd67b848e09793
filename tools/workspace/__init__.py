"""The room ``workspace``."""
