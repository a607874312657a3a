"""One file per kind of source: each knows how to get a module out of one framework."""
