"""Insight: what the records say. `report.report` counts, `render.render` shows it to a person."""
