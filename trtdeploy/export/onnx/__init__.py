"""Files that are ONNX already: cleaned, sizes freed where that is safe, proven by the old file."""
