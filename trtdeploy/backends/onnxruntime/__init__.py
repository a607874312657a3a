"""ONNX Runtime: the FP32 baseline, emulated models, the target where there is no GPU."""
