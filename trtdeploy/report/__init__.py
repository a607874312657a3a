"""What people and CI read: console table, HTML page and JUnit file, all out of ``report.json``."""
