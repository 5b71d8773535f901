"""Makes the environment known to Gymnasium."""

__all__ = ["ENVIRONMENT", "register"]

ENVIRONMENT = "optalloc/Allocation-v0"


def register() -> None:
    """Register the environment with Gymnasium; nothing happens if it is registered already."""
    import gymnasium

    if ENVIRONMENT not in gymnasium.registry:
        gymnasium.register(
            id=ENVIRONMENT,
            entry_point="optalloc.environment.gymnasium_env:AllocationEnv",
            vector_entry_point="optalloc.environment.gymnasium_vector:AllocationVectorEnv",
        )
