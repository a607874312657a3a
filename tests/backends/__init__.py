"""The compiler backends: the process around them, their proofs, and real TensorRT-RTX."""
