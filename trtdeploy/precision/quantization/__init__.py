"""INT8 and FP8 as explicit Q/DQ: what to quantize and why, the nodes, an audit of any graph."""
