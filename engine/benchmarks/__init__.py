"""Speed, against what a user would build instead."""
