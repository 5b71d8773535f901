"""Mathematics only: from a Problem to a model. No solving, no time limits, no files."""
