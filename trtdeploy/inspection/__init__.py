"""What a file is: ONNX model, engine, or output folder."""
