"""HiGHS without its banner."""

import highspy

__all__ = ["QuietHighs"]


class QuietHighs(highspy.Highs):  # type: ignore[misc]
    """HiGHS that prints nothing: the constructor of `highspy.Highs` prints a banner as it enables
    callbacks.
    """

    def enableCallbacks(self) -> None:
        """Called by the constructor."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()
