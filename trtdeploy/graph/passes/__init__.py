"""Rewrites of a model, one per file. Each pass says in its docstring what holds afterwards."""
