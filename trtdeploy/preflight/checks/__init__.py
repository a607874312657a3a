"""The checks, one class per file. Each explains in its docstring what it looks for and why."""
