"""The GPU: its memory, its streams and the arrays on it, by cuda-python or by PyCUDA."""
