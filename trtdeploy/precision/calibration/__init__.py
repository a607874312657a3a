"""Calibration: histograms of activations in one pass, thresholds from them, and their file.

No model is run here; arrays are handed in.
"""
