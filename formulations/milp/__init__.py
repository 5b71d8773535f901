"""The time-indexed mixed-integer linear program: every start of every task in every mode is a binary
column.
"""

from optalloc.formulations.milp.arrays import build_arrays
from optalloc.formulations.milp.export import export_milp
from optalloc.formulations.milp.model import MilpModel, build
from optalloc.formulations.milp.plans import read_plan, start_values

__all__ = ["MilpModel", "build", "build_arrays", "export_milp", "read_plan", "start_values"]
