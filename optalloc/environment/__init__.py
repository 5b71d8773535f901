"""Allocation as a learning environment: Gymnasium, or ragged arrays for learners of one's own (docs/environment.md).

Importing this module registers ``optalloc/Allocation-v0`` with Gymnasium, where that is installed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from optalloc.environment.registration import ENVIRONMENT, register
from optalloc.errors import UnsupportedError

if TYPE_CHECKING:
    from optalloc.environment.episode import Episode
    from optalloc.environment.fleet import Fleet, Outcome
    from optalloc.environment.frame import Frame, frame_of
    from optalloc.environment.gymnasium_env import AllocationEnv
    from optalloc.environment.gymnasium_vector import AllocationVectorEnv
    from optalloc.environment.prepared import Prepared
    from optalloc.environment.sizes import Sizes
    from optalloc.environment.source import Source

__all__ = [
    "ENVIRONMENT", "AllocationEnv", "AllocationVectorEnv", "Episode", "Fleet", "Frame", "Outcome", "Prepared", "Sizes",
    "Source", "frame_of", "register",
]  # fmt: skip

_HOME: Final = {
    "AllocationEnv": "gymnasium_env",
    "AllocationVectorEnv": "gymnasium_vector",
    "Episode": "episode",
    "Fleet": "fleet",
    "Frame": "frame",
    "Outcome": "fleet",
    "Prepared": "prepared",
    "Sizes": "sizes",
    "Source": "source",
    "frame_of": "frame",
}

_HAS_GYMNASIUM = find_spec("gymnasium") is not None

if _HAS_GYMNASIUM:
    register()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOME[name].startswith("gymnasium") and not _HAS_GYMNASIUM:
        raise UnsupportedError(f'{name} needs Gymnasium: pip install "optalloc[rl]".')
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
