"""Runs engines: both TensorRTs behind one session, buffers and sizes by tensor name."""
