"""Contract tests: the code that talks to TensorRT, held against the real API of every version."""
