"""Options beyond the two forms: each changes what it says and leaves the forms as they are."""

import pytest
import torch

from emo.config_methods import EmoPaperSettings, EmoSettings

EMO = EmoSettings(form="emo")
TEXTS = [0, 3, 4, 17, 18, 19, 21, 23]


@pytest.fixture
def losses(student_for, collator_for, build_for):
    """Return the terms of a method on the texts."""

    def losses(**changes):
        settings = EmoSettings(form="emo", **changes)
        return build_for(settings)(student_for(settings), collator_for(settings)(TEXTS)).losses

    return losses


@pytest.mark.parametrize("power", [0.0, 0.5, 2.0])
def test_a_power_of_the_masses_moves_the_transport_and_nothing_else(losses, power):
    usual, other = losses(), losses(mass_power=power)
    assert not torch.isclose(usual.pop("transport"), other.pop("transport"), rtol=1e-4)
    assert all(torch.equal(term, other[name]) for name, term in usual.items())


def test_a_power_of_softmax_masses_is_refused():
    assert EmoPaperSettings(form="emo-paper").mass_power == 1.0
    with pytest.raises(ValueError, match="`mass_power: 2.0` needs `masses: share`"):
        EmoPaperSettings(form="emo-paper", mass_power=2.0)
