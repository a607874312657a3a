"""From a file or an output folder to a session that is safe to run."""
