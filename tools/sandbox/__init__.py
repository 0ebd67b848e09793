"""The room ``sandbox``."""
