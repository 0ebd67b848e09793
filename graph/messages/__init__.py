"""The room ``messages``."""
