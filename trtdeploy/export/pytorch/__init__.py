"""PyTorch modules to ONNX; every module here imports torch, so load them only for such sources."""
