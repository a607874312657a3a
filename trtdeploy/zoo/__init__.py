"""Real models to try: what there is, which Python package carries it, and how to get it."""
