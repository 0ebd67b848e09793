"""The room ``rules``."""
