"""The judge: is a plan allowed, and what is it worth? Knows no formulation and no solver."""

from optalloc.evaluation.checking import Evaluation, evaluate
from optalloc.evaluation.terms import describe_terms, form_value
from optalloc.schedule.model import Violation

__all__ = ["Evaluation", "Violation", "describe_terms", "evaluate", "form_value"]
