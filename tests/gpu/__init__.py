"""Tests that need an NVIDIA GPU: ``make test-gpu``."""
