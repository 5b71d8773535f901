"""CP-SAT: optional intervals per mode, cumulatives per resource, retention of staged replicas."""

from optalloc.formulations.cpsat.model import CpsatModel, add_cutoff, add_hint, build, export_cpsat, read_plan

__all__ = ["CpsatModel", "add_cutoff", "add_hint", "build", "export_cpsat", "read_plan"]
