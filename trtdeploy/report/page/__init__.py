"""The HTML page: one view a part of the report, one Jinja template a view."""
