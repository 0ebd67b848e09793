"""The room ``approvals``."""
