from emo.methods.emo import EmoMethod
from emo.methods.pooled import PooledMethod


def test_each_form_has_its_class_and_the_projection_on_its_side(build):
    pooled, emo, paper = (build(form) for form in ("pooled", "emo", "emo-paper"))
    assert type(pooled) is PooledMethod
    assert type(emo) is type(paper) is EmoMethod
    for method in (pooled, emo):
        assert not list(method.parameters()), "the head belongs to the student"
    projection = paper.space.projection
    assert projection.weight.shape == (32, 48), "from the teacher's space to the student's"
    assert list(paper.parameters()) == list(projection.parameters())


def test_the_compared_layers_are_the_students_last(build):
    assert build("emo").student_layers == (1,)
    assert build("emo-paper").student_layers == (0, 1)


def test_centres_are_buffers_not_weights(build):
    """They must move to the device and into checkpoints, and never learn."""
    emo = build("emo")
    assert {"space.vector_centre", "space.state_centre"} <= set(dict(emo.named_buffers()))
