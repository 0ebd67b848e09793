"""Which mode may lead to which, and under which condition."""
