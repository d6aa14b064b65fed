"""Every job of a study but the shortest, with the file that it makes and that of its run time.

The rules ask for the results and the report reads all of them, so both are told by one list.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from emo.config import Study
from emo.requests import RowRequest, signal_request
from emo.runs import reference_folder, study_runs

Parts = Callable[[str], Sequence[str]]
"""From the folder of a store to the names of its shards."""

_STORE = "results/{teacher}/store/{texts}"
_SEARCH = "results/{teacher}/{student}/search/{texts}/{method}"
_ROWS = "results/{teacher}/{student}/rows/{texts}/{request}"

RESULTS = {
    "task": "resources/tasks/{task}",
    "texts": "resources/texts/{texts}.parquet",
    "model": "resources/models/{model}",
    "tune": "results/{teacher}/tuned/{texts}/model",
    "doctor": "results/{teacher}/doctor.json",
    "doctor_tuned": "results/{teacher}/tuned/{texts}/doctor.json",
    "teach_basis": f"{_STORE}/basis",
    "teach_shard": f"{_STORE}/{{part}}",
    "teach": f"{_STORE}/store.json",
    "align": "results/{teacher}/{student}/alignment/{texts}/{request}.parquet",
    "teach_rows_shard": f"{_ROWS}/{{part}}",
    "teach_rows": f"{_ROWS}/store.json",
    "trial": f"{_SEARCH}/rate{{rate}}/training.json",
    "evaluate_trial": f"{_SEARCH}/rate{{rate}}/{{task}}/scores.json",
    "choose": f"{_SEARCH}/chosen.json",
    "distil": "results/{teacher}/{student}/trained/{texts}/{method}/seed{seed}/training.json",
    "evaluate": "results/{teacher}/{student}/{task}/{method}/seed{seed}/scores.json",
    "evaluate_reference": reference_folder("{model}", "{task}") + "/scores.json",
    "speed": "results/speed/{model}.json",
}
"""The first output of each rule."""

BENCHMARKS = {
    "task": "{task}",
    "texts": "{texts}",
    "model": "{model}",
    "tune": "{teacher}/{texts}",
    "doctor": "{teacher}",
    "doctor_tuned": "{teacher}/{texts}",
    "teach_basis": "{teacher}/{texts}",
    "teach_shard": "{teacher}/{texts}/{part}",
    "teach": "{teacher}/{texts}",
    "align": "{teacher}/{student}/{texts}/{request}",
    "teach_rows_shard": "{teacher}/{student}/{texts}/{request}/{part}",
    "teach_rows": "{teacher}/{student}/{texts}/{request}",
    "trial": "{teacher}/{student}/{texts}/{method}/rate{rate}",
    "evaluate_trial": "{teacher}/{student}/{texts}/{method}/rate{rate}/{task}",
    "choose": "{teacher}/{student}/{texts}/{method}",
    "distil": "{teacher}/{student}/{texts}/{method}/seed{seed}",
    "evaluate": "{teacher}/{student}/{task}/{method}/seed{seed}",
    "evaluate_reference": "{model}/{task}",
    "speed": "{model}",
}
"""Where Snakemake writes the run time of each rule, below ``results/benchmarks/{rule}``."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job; what does not belong to it is empty.

    Attributes:
        rule: Its rule.
        teacher: Name of the teacher; of a model alone, either this or the student is given.
        student: Name of the student.
        texts: Name of the text set.
        task: Name of the task.
        request: Name of the alignment or of the attention rows.
        method: Name of the method.
        seed: Seed of the training.
        rate: Learning rate of the trial.
        part: Name of the shard.
    """

    rule: str
    teacher: str = ""
    student: str = ""
    texts: str = ""
    task: str = ""
    request: str = ""
    method: str = ""
    seed: int | None = None
    rate: str = ""
    part: str = ""

    @property
    def result(self) -> str:
        """The file or folder that it makes.

        >>> Job("speed", student="minilm").result
        'results/speed/minilm.json'
        """
        return self._filled(RESULTS[self.rule])

    @property
    def benchmark(self) -> str:
        """The file in which Snakemake writes its run time and memory.

        >>> Job("distil", "e5", "minilm", "trec", method="emo", seed=1).benchmark
        'results/benchmarks/distil/e5/minilm/trec/emo/seed1.tsv'
        """
        return f"results/benchmarks/{self.rule}/{self._filled(BENCHMARKS[self.rule])}.tsv"

    def _filled(self, pattern: str) -> str:
        return pattern.format(**asdict(self), model=self.teacher or self.student)


def study_jobs(study: Study, parts: Parts) -> list[Job]:
    """Return the jobs of a study, each once, in the order of the data's way.

    Args:
        study: The study.
        parts: How many shards stores have is not the study's to say.
    """
    chosen, texts_used = study.study, study.trained_texts()
    trained = [task for texts in texts_used for task in study.texts[texts].tasks]
    jobs = [Job("task", task=task) for task in dict.fromkeys([*trained, *chosen.tasks])]
    jobs += [Job("texts", texts=texts) for texts in texts_used]
    jobs += [job for rule in ("model", "speed") for job in _model_jobs(study, rule)]
    for teacher in chosen.teachers:
        for texts in texts_used:
            jobs += [model_job(study, teacher, texts), doctor_job(study, teacher, texts)]
            jobs += _store_jobs(study, teacher, texts, parts)
            for student in chosen.students:
                jobs += _student_jobs(study, teacher, student, texts, parts)
    jobs += _evaluations(study)
    return list(dict.fromkeys(jobs))


def signal_jobs(
    study: Study, teacher: str, student: str, texts: str, method: str
) -> dict[str, Job]:
    """Return the jobs that make what a method asks for, by the options of ``emo distil``.

    They are its ``alignment`` and its ``rows``; online the ``teacher`` and the ``row_alignment``
    instead of rows. A method that asks for none has none.
    """
    request = signal_request(study.methods[method], study.text_family(texts))
    online = study.teachers[teacher].store.states == "online"
    jobs = {}
    if request.alignment:
        jobs["alignment"] = Job("align", teacher, student, texts, request=request.alignment.name)
    if request.rows:
        rows = Job("teach_rows", teacher, student, texts, request=request.rows.name)
        jobs |= {"row_alignment": row_map_job(rows)} if online else {"rows": rows}
    if jobs and online:
        jobs["teacher"] = model_job(study, teacher, texts)
    return jobs


def search_jobs(study: Study, teacher: str, student: str, texts: str, method: str) -> Iterator[Job]:
    """Yield the jobs of a method's search, the choice last; none without a search."""
    if study.search is None:
        return
    choice = Job("choose", teacher, student, texts, method=method)
    for rate in study.search.learning_rate:
        trial = replace(choice, rule="trial", rate=f"{rate:g}")
        yield trial
        for task in study.judged_on(texts):
            yield replace(trial, rule="evaluate_trial", task=task)
    yield choice


def model_job(study: Study, model: str, texts: str) -> Job:
    """Return the job that makes a model as it meets a text set: a teacher may be tuned for it."""
    if model in study.students:
        return Job("model", student=model)
    tuned = study.tuned_on(model, texts) is not None
    return Job("tune", model, texts=texts) if tuned else Job("model", model)


def asked_head(study: Study, model: str, texts: str) -> str | None:
    """Return the record of the head that a model as it is answers a labelled text set's task with.

    Only a tuned teacher has one; a student's comes out of its training.
    """
    if study.texts[texts].labelled and study.tuned_on(model, texts) is not None:
        return str(Path(model_job(study, model, texts).result).with_name("tuning.json"))
    return None


def doctor_job(study: Study, teacher: str, texts: str) -> Job:
    """Return the job that examines that model."""
    tuned = study.tuned_on(teacher, texts) is not None
    return Job("doctor_tuned", teacher, texts=texts) if tuned else Job("doctor", teacher)


def row_map_job(rows: Job) -> Job:
    """Return the job that makes the map from which attention rows are selected."""
    return replace(rows, rule="align", request=RowRequest.from_name(rows.request).map.name)


def _model_jobs(study: Study, rule: str) -> list[Job]:
    chosen = study.study
    jobs = [Job(rule, teacher=teacher) for teacher in chosen.teachers]
    return jobs + [Job(rule, student=student) for student in chosen.students]


def _store_jobs(study: Study, teacher: str, texts: str, parts: Parts) -> Iterator[Job]:
    if study.teachers[teacher].store.width is not None:
        yield Job("teach_basis", teacher, texts=texts)
    yield from _gathered(Job("teach", teacher, texts=texts), parts)


def _student_jobs(
    study: Study, teacher: str, student: str, texts: str, parts: Parts
) -> Iterator[Job]:
    for method in study.study.methods:
        for job in signal_jobs(study, teacher, student, texts, method).values():
            if job.rule == "teach_rows":
                yield row_map_job(job)
                yield from _gathered(job, parts)
            else:
                yield job
        yield from search_jobs(study, teacher, student, texts, method)
        for seed in study.study.seeds:
            yield Job("distil", teacher, student, texts, method=method, seed=seed)


def _gathered(job: Job, parts: Parts) -> Iterator[Job]:
    """Yield the jobs that make the shards of a store, then the one that joins them."""
    for part in parts(job.result.removesuffix("/store.json")):
        yield replace(job, rule=f"{job.rule}_shard", part=part)
    yield job


def _evaluations(study: Study) -> Iterator[Job]:
    for run in study_runs(study):
        key = run.key
        if key.method == "teacher":
            yield Job("evaluate_reference", teacher=key.teacher, task=key.task)
        elif key.method == "undistilled":
            yield Job("evaluate_reference", student=key.student, task=key.task)
        else:
            yield Job(
                "evaluate",
                key.teacher,
                key.student,
                task=key.task,
                method=key.method,
                seed=key.seed,
            )
