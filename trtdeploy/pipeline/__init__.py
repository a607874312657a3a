"""From a model and a deploy profile to an output folder: ordered steps, one manifest."""
