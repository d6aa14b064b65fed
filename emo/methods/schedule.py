"""How the weights of the terms on tokens move over a training."""

from emo.config_token_options import TokenSchedule

TURN = 0.5
"""Share of the steps at which a schedule has come to its end."""


def token_share(schedule: TokenSchedule, progress: float) -> float:
    """Return the share of its weight that each term on tokens has.

    Formula:
        fade(x) = max(0, 1 - 2 x), grow(x) = min(1, 2 x), x the share of the steps that are done

    Args:
        schedule: Which of them.
        progress: x, 0 at the first step.

    Example:
        >>> [token_share("fade", done) for done in (0.0, 0.25, 0.5, 0.9)]
        [1.0, 0.5, 0.0, 0.0]
        >>> [token_share("grow", done) for done in (0.0, 0.25, 0.5, 0.9)]
        [0.0, 0.5, 1.0, 1.0]
    """
    passed = min(1.0, progress / TURN)
    return {"constant": 1.0, "fade": 1.0 - passed, "grow": passed}[schedule]
