"""Precision as a graph transformation: plan which nodes leave FP32 and why, then rewrite the model.

No backend is imported here; measured ranges are handed in.
"""
