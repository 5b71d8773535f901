"""Schedulers that have learned: they score what `replan-index` may do, and are run through the simulator."""
