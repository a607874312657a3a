"""A model and a deploy profile become one folder: check, calibrate, type, compile, prove, write."""
