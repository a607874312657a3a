"""Compiles typed models: one builder for every TensorRT, in a process of its own."""
