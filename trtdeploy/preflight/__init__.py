"""The check before a build: every blocker and hazard of a model at once, nothing built."""
