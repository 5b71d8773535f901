"""The price bound: a proven lower bound at every size, from prices of capacity over time (Lagrangian relaxation)."""
