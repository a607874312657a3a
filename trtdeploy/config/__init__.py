"""Deploy profiles, devices and requested shapes: outside text becomes typed values here."""
