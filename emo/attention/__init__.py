"""Attention rows and importance out of a model that runs fused attention."""

from emo.attention.capture import Capture
from emo.attention.interface import listen
from emo.attention.recorder import Recorder, recording

__all__ = ["Capture", "Recorder", "listen", "recording"]
