"""Charts as SVG text, by hand: no scripts, no fonts or images from elsewhere."""
