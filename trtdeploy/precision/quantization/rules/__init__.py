"""Rules that keep a layer out of quantization, one class per file.

A rule answers with the layers it wants kept and a reason for each; it changes nothing. The first
rule that objects is the one reported.
"""
