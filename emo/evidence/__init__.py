"""What a study found, to be kept with the code: each number with the run that it comes from."""

from emo.evidence.stage import write_evidence

__all__ = ["write_evidence"]
