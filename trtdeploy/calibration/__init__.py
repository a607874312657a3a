"""Samples in, amax out: the largest magnitude that each quantized tensor keeps."""
