"""INT8 and FP8 as explicit Q/DQ: what to quantize and why, and the nodes that say so."""
