# What the rules share: the study, the code version of each stage, and the functions that
# say which files and settings a job gets. Values that change results reach a job through
# params, so that Snakemake runs it again when they change.

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from emo.config import parse_study
from emo.errors import EmoError
from emo.evidence.page import put_table, read_page
from emo.jobs import (
    Job,
    asked_head,
    doctor_job,
    model_job,
    row_map_job,
    search_jobs,
    signal_jobs,
    study_jobs,
)
from emo.provenance import code_version
from emo.requests import ALIGNMENT_PATTERN, ROWS_PATTERN, AlignmentRequest
from emo.runs import (
    reference_runs,
    study_runs,
    training_runs,
    trial_runs,
    tuning_runs,
)
from emo.sources import local_files, location, require_local_sources, slug
from emo.stale_lock import clear_stale_lock
from snakemake.exceptions import WorkflowError

# An unactivated .venv/bin/snakemake has another python on PATH, or none.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
)

try:
    study = parse_study(config)
    require_local_sources(study)
except EmoError as error:
    raise WorkflowError(
        f"The config (config.yaml and --configfile):\n{error}"
    ) from None

if workflow.is_main_process:
    clear_stale_lock(Path.cwd())

SOURCES = {
    slug(source): source
    for source in [
        *(source for model in study.models().values() for source in model.sources),
        *(task.source for task in study.tasks.values()),
        *(texts.corpus.source for texts in study.texts.values() if texts.corpus),
    ]
    if slug(source)
}


wildcard_constraints:
    teacher="|".join(study.teachers),
    student="|".join(study.students),
    model="|".join(study.models()),
    task="|".join(study.tasks),
    texts="|".join(study.texts),
    method="|".join(study.methods),
    alignment=ALIGNMENT_PATTERN,
    request=ROWS_PATTERN,
    seed=r"\d+",
    rate=r"\d+(\.\d+)?(e[+-]\d+)?",
    scatteritem=r"\d+-of-\d+",


def as_json(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def source_settings(wildcards):
    return as_json(SOURCES[wildcards.source].model_dump(mode="json"))


def source_path(source):
    """A local path where it lies, else the folder that rule fetch makes."""
    folder = Path("resources/sources") / (slug(source) or "")
    return str(location(source, folder))


def model_source(wildcards):
    return source_path(study.models()[wildcards.model].source)


def model_adapters(wildcards):
    return [source_path(source) for source in study.models()[wildcards.model].adapters]


def adapter_options(wildcards):
    return [f"--adapter={path}" for path in model_adapters(wildcards)]


def model_files(wildcards):
    sources = study.models()[wildcards.model].sources
    return [file for source in sources for file in local_files(source)]


def model_settings(wildcards):
    """All but how its signals are stored and how it is tuned, which come after it."""
    settings = study.models()[wildcards.model]
    return as_json(settings.model_dump(mode="json", exclude={"store", "tuning"}))


def teacher_model(wildcards):
    """The folder of a teacher as it meets a text set: a tuned one has one for each."""
    return model_job(study, wildcards.teacher, wildcards.texts).result


def reference_model(wildcards):
    return model_job(study, wildcards.model, study.tasks[wildcards.task].texts).result


def teacher_doctor(wildcards):
    """The examination of that folder."""
    return doctor_job(study, wildcards.teacher, wildcards.texts).result


def tuning_task(wildcards):
    return f"resources/tasks/{study.tuned_on(wildcards.teacher, wildcards.texts)}"


def tuning_settings(wildcards):
    return as_json(study.teachers[wildcards.teacher].tuning.model_dump(mode="json"))


def tuning_keys(wildcards):
    keys = tuning_runs(study, wildcards.teacher, wildcards.texts)
    return as_json([asdict(key) for key in keys])


def task_source(wildcards):
    return source_path(study.tasks[wildcards.task].source)


def task_files(wildcards):
    return local_files(study.tasks[wildcards.task].source)


def task_settings(wildcards):
    # Another text set trains other students and leaves the task as it is.
    return as_json(
        study.tasks[wildcards.task].model_dump(mode="json", exclude={"texts"})
    )


def task_family(wildcards):
    return study.tasks[wildcards.task].family


def texts_given(wildcards):
    """The prepared tasks, or the file, that a text set is gathered from."""
    texts = study.texts[wildcards.texts]
    tasks = [f"resources/tasks/{task}" for task in texts.tasks]
    if texts.corpus is None:
        return {"tasks": tasks}
    return {
        "corpus": source_path(texts.corpus.source),
        "files": local_files(texts.corpus.source),
    }


def texts_options(wildcards):
    given = texts_given(wildcards)
    return given["tasks"] if "tasks" in given else [f"--corpus={given['corpus']}"]


def texts_settings(wildcards):
    return as_json(study.texts[wildcards.texts].model_dump(mode="json"))


def unseen_tasks(wildcards):
    return [f"resources/tasks/{task}" for task in sorted(study.study.tasks)]


def teacher_dtype(wildcards):
    return study.teachers[wildcards.teacher].dtype


def store_settings(wildcards):
    return as_json(study.teachers[wildcards.teacher].store.model_dump(mode="json"))


def state_width(wildcards):
    return study.teachers[wildcards.teacher].store.width


def store_basis(teacher, texts):
    """The components in which states are stored, where they are."""
    width = study.teachers[teacher].store.width
    return [] if width is None else [f"results/{teacher}/store/{texts}/basis"]


def row_precision(wildcards):
    full = study.teachers[wildcards.teacher].store.states == "float32"
    return "float32" if full else "float16"


def rows_alignment(wildcards):
    keys = ("teacher", "student", "texts", "request")
    rows = Job("teach_rows", **{key: wildcards[key] for key in keys})
    return row_map_job(rows).result


def alignment_request(wildcards):
    return AlignmentRequest.from_name(wildcards.alignment)


def reference_head(wildcards):
    """The head of a teacher that was tuned on the labels which students learn from."""
    texts = study.tasks[wildcards.task].texts
    record = asked_head(study, wildcards.model, texts)
    return [record] if record else []


def model_runs(wildcards):
    keys = reference_runs(study, wildcards.model, wildcards.task)
    return as_json([asdict(key) for key in keys])


def chosen_models():
    return [*study.study.teachers, *study.study.students]


def shard_names(folder):
    """Names of the parts that a store in a folder is joined from."""
    return [
        os.path.basename(part) for part in gather.teach(f"{folder}/{{scatteritem}}")
    ]


def intermediate_files():
    """What the last files are made from, so that a step that failed half way is made again.

    Snakemake takes a missing intermediate for no longer needed while what follows from it is there.
    """
    return [job.result for job in study_jobs(study, shard_names)]


def all_scores(wildcards):
    return sorted({path for run in study_runs(study) for path in run.files})


def all_cores():
    """More than a run was given is cut down by Snakemake."""
    return os.cpu_count() or 1


def gpus():
    """One where there is one: a CPU machine has nothing to share out one at a time."""
    return int(any(Path(os.sep, "dev").glob("nvidia[0-9]*")))


def evidence_page(wildcards):
    """The page, if it has a place for the table: better said now than after the study."""
    page = Path("docs/evidence.md")
    try:
        put_table(read_page(page), wildcards.name, "", str(page))
    except EmoError as error:
        raise WorkflowError(str(error)) from None
    return str(page)
