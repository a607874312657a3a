"""Makes inputs up that a model accepts, by following each input through the graph."""
