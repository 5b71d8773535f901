"""Files: instances in and out, published formats in."""
