"""What an engine will make of a graph with Q/DQ pairs, ours or one that came with the model."""
