from emo.methods.emo import EmoMethod
from emo.methods.emo_paper import EmoPaperMethod
from emo.methods.pooled import PooledMethod


def test_each_form_has_its_class_and_the_projection_on_its_side(build):
    pooled, emo, paper = (build(form) for form in ("pooled", "emo", "emo-paper"))
    assert type(pooled) is PooledMethod
    assert type(emo) is EmoMethod
    assert type(paper) is EmoPaperMethod
    for method in (pooled, emo):
        assert not list(method.parameters()), "the head belongs to the student"
    assert paper.projection.weight.shape == (32, 48), "from the teacher's space to the student's"
    assert paper.layers == 2


def test_signals(build):
    assert build("pooled").signals == {"vectors"}
    assert build("emo").signals == {"vectors", "tokens", "rows"}
    assert build("emo", attention=0.0).signals == {"vectors", "tokens"}
    assert build("emo", transport=0.0).signals == {"vectors", "rows"}
    assert build("emo", attention=0.0, transport=0.0).signals == {"vectors"}
    assert build("emo-paper").signals == {"tokens", "rows"}


def test_centres_are_buffers_not_weights(build):
    """They must move to the device and into checkpoints, and never learn."""
    emo = build("emo")
    assert {"vector_centre", "state_centre"} <= set(dict(emo.named_buffers()))
