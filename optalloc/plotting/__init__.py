"""Pictures of plans. Needs matplotlib: ``pip install optalloc[plot]``."""
