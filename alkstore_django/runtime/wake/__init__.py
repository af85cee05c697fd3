"""How the clerk waits, and what wakes it."""
