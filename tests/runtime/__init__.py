"""Tests of loading: what is refused, and what is said about it."""
