"""Which nodes break a precision, and the smallest set that need not have it."""
