"""What a study with labelled text sets must say, and what it cannot mean."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emo.config import Study


def check_labelled(study: "Study") -> None:
    """Check that students of labelled text sets have something to learn and to be judged by.

    Args:
        study: The study, whose names are known.

    Raises:
        ValueError: It cannot be; the message names the key.
    """
    for name, task in study.tasks.items():
        settings = study.texts[task.texts]
        if settings.labelled and settings.tasks != [name]:
            raise ValueError(
                f"tasks.{name}.texts: the text set `{task.texts}` has the labels of "
                f"{settings.tasks[0]}, whose head cannot answer {name}; give {name} a text set of "
                "its own"
            )
    for texts in study.trained_texts():
        for name in study.study.methods:
            _check_method(study, name, texts)
        for name in study.study.teachers:
            _check_teacher(study, name, texts)


def _check_method(study: "Study", name: str, texts: str) -> None:
    method, labelled = study.methods[name], study.texts[texts].labelled
    if labelled and not (method.task or method.logits):
        raise ValueError(
            f"methods.{name}.task: the text set `{texts}` is labelled, and without `task` or "
            "`logits` the student's head would stay random; give one of them a weight above 0"
        )
    if method.logits and not labelled:
        raise ValueError(
            f"methods.{name}.logits: the text set `{texts}` has no labels, so that the student "
            f"has no head to teach; set `texts.{texts}.labelled: true`, or leave `logits` out"
        )


def _check_teacher(study: "Study", name: str, texts: str) -> None:
    if not study.texts[texts].labelled:
        return
    tuning = study.teachers[name].tuning
    asking = [method for method in study.study.methods if study.methods[method].logits]
    if tuning is None and asking:
        raise ValueError(
            f"methods.{asking[0]}.logits: the teacher `{name}` has no head that could be asked; "
            f"give `teachers.{name}` a `tuning`, or leave `logits` out"
        )
    if (
        tuning is not None
        and tuning.pairs == "apart"
        and study.text_family(texts) != "classification"
    ):
        raise ValueError(
            f"teachers.{name}.tuning.pairs: the text set `{texts}` is labelled, and its students "
            "read the two texts of a row as one sequence; set it to joint"
        )
