"""Rules that keep a node in FP32, one class per file.

A rule answers with the nodes it wants kept and a reason for each; it changes nothing. Order is of
no importance for correctness: a node stays FP32 as soon as one rule says so, and the first reason
is the one reported.
"""
