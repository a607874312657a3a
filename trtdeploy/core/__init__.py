"""Types and helpers that every layer shares; standard library and numpy only."""
