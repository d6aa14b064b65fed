"""Every architecture once: fused in an encoder, and eager with the same weights."""

import pytest

from ...tiny_architectures import CONFIGS, DECODERS, fused_and_eager

VARIANTS = {name: (name, {}) for name in CONFIGS}
VARIANTS |= {f"{name}-bidirectional": (name, {"is_causal": False}) for name in DECODERS}


@pytest.fixture(scope="session", params=list(VARIANTS))
def pair(request):
    """An encoder and its eager oracle."""
    name, changes = VARIANTS[request.param]
    return fused_and_eager(name, **changes)
