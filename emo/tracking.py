"""Show trainings in MLflow: one run for each teacher, student, task, method and seed.

The files are the truth and MLflow is a view of them: once a stage is under way, a store that
cannot be reached costs a warning, never a training.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from emo.errors import ConfigError
from emo.interruption import Interruption
from emo.live_runs import FOLDER, LiveRuns, dead_runs
from emo.outputs import atomic_file, exclusive
from emo.process import ProcessIdentity
from emo.run_tags import COMMIT, RunKey, owner_tags, state_tags
from emo.tolerance import Tolerance, reason
from emo.tracking_uri import DEFAULT, VARIABLE, TrackingUri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)

__all__ = [
    "RunGroup",
    "RunKey",
    "TrackedRun",
    "close_dead_runs",
    "current_runs",
    "tracking_after",
]

EXPERIMENT = "emo"

_METRICS, _PARAMS = 1000, 100  # how many MLflow takes in one call
_SCORES, _COSTS = "eval/", "cost/"
_Entry = tuple[str, float, int, int]  # name, value, milliseconds since 1970, step


class RunGroup:
    """The runs that one process feeds together; a context manager.

    A run with the same key and identity is reopened, whatever stage or attempt opened it before;
    another identity begins a new run and marks the older ones of its key ``emo.current`` = no.
    At the end the runs are FINISHED, after an exception FAILED, after SIGTERM or SIGINT KILLED (the
    process then ends with 143 or 130). After ``kill -9``, :func:`close_dead_runs` closes them.
    """

    def __init__(
        self,
        keys: Sequence[RunKey],
        identity: str,
        params: Mapping[str, Any],
        config: Mapping[str, Any],
        uri: str | None = None,
    ) -> None:
        """Check the address; nothing is opened yet.

        Args:
            keys: the runs.
            identity: digest of settings and code.
            params: flat settings for MLflow's table; written once for each run.
            config: the whole configuration, attached as ``config.yaml`` unless empty.
            uri: tracking address; by default ``MLFLOW_TRACKING_URI``, then ``results/mlflow.db``.

        Raises:
            ConfigError: MLflow has no such kind of store.
        """
        self._keys, self._identity = tuple(keys), identity
        self._params = {name: str(value) for name, value in params.items()}
        self._config = dict(config)
        self._uri = TrackingUri.resolve(uri)
        self._owner = ProcessIdentity.current()
        self._interruption = Interruption()
        self._client: MlflowClient | None = None
        self._run_ids: dict[RunKey, str] = {}
        self._logged: dict[RunKey, dict[str, int]] = {}
        self._pending: dict[RunKey, list[_Entry]] = {key: [] for key in self._keys}
        self._record: Path | None = None
        self._tolerance = Tolerance(
            "MLflow is not being written (%s): the result files are complete without it; see that "
            f"{self._uri.public} can be reached and is not locked by another program"
        )

    def __enter__(self) -> Self:
        """Open the runs; without any, no store is touched.

        Raises:
            ConfigError: the user named the store and it cannot be reached.
        """
        self._interruption.__enter__()
        try:
            if self._keys:
                self._tolerance.attempt(self._start)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what is pending, close the runs and put the signal handlers back."""
        status = _status(error, interrupted=self._interruption.received is not None)
        self._tolerance.attempt(lambda: self._close(status), last_chance=True)
        self._interruption.__exit__(kind, error, traceback)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Log one optimiser step's metrics to all runs; a step logged earlier is passed over."""
        for key in self._keys:
            self._add(key, metrics, step)
        if self._keys:
            self._tolerance.attempt(self._send)

    def log_scores(self, key: RunKey, metrics: Mapping[str, float]) -> None:
        """Log a task's scores to its run, as ``eval/{metric}``."""
        self._add(key, {f"{_SCORES}{name}": value for name, value in metrics.items()}, step=0)
        self._tolerance.attempt(self._send)

    def log_costs(self, costs: Mapping[str, float]) -> None:
        """Log what was paid to all runs, as ``cost/{name}``; the last measurement counts."""
        for key in self._keys:
            self._add(key, {f"{_COSTS}{name}": value for name, value in costs.items()}, step=0)
        if self._keys:
            self._tolerance.attempt(self._send)

    def _add(self, key: RunKey, metrics: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        self._pending[key] += [(name, value, now, step) for name, value in metrics.items()]

    def _start(self) -> None:
        try:
            self._open()
        except Exception as error:  # whatever lies beneath MLflow may raise: files, SQL, HTTP
            if not self._uri.chosen or "locked" in str(error):
                raise
            raise _unusable(self._uri, error) from error

    def _open(self) -> None:
        # First the record: a process killed among its runs would leave those it had opened.
        if self._record is None:
            self._record = LiveRuns(self._owner, self._uri.public).save(FOLDER)
        self._client, experiment_id = _connect(self._uri)
        for key in self._keys:
            if key not in self._logged:
                self._open_run(self._client, experiment_id, key)

    def _open_run(self, client: "MlflowClient", experiment_id: str, key: RunKey) -> None:
        query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in key.tags.items())
        run, attempt = None, 1
        for known in client.search_runs([experiment_id], query):
            if known.data.tags.get("emo.identity") == self._identity:
                run = known
                # A finished run is reopened by the next stage; any other was interrupted.
                # This process may try twice to open one, which is no other attempt.
                interrupted = known.info.status != "FINISHED" and key not in self._run_ids
                attempt = int(known.data.tags["emo.attempt"]) + interrupted
            elif known.data.tags.get("emo.current") == "yes":
                client.set_tag(known.info.run_id, "emo.current", "no")
        tags = key.tags | state_tags(self._owner, self._identity, attempt)
        if run is not None:
            # Who comes back adds scores or costs to it; the code that made it is the first one's.
            tags[COMMIT] = run.data.tags.get(COMMIT, tags[COMMIT])
        else:
            run = client.create_run(experiment_id, tags=tags, run_name=key.name)
        run_id = run.info.run_id
        self._run_ids[key] = run_id
        for name, value in tags.items():
            if run.data.tags.get(name) != value:
                client.set_tag(run_id, name, value)
        # After the tags: a run that is RUNNING always names the process that feeds it.
        client.update_run(run_id, status="RUNNING")
        self._write_params(client, run)
        if self._config:
            client.log_dict(run_id, self._config, "config.yaml")
        self._logged[key] = _last_steps(client, run)

    def _write_params(self, client: "MlflowClient", run: "Run") -> None:
        for name, value in self._params.items():
            stored = run.data.params.get(name)
            if stored is None:
                client.log_param(run.info.run_id, name, value)
            elif stored != value:
                logger.warning(
                    "MLflow keeps %s = %s, not %s: params are final", name, stored, value
                )

    def _send(self) -> None:
        from mlflow.entities import Metric

        if self._client is None or len(self._logged) < len(set(self._keys)):
            self._open()
        assert self._client is not None
        for key, entries in self._pending.items():
            last = self._logged[key]
            while entries:
                batch = entries[:_METRICS]
                metrics = [Metric(*entry) for entry in batch if entry[3] > last.get(entry[0], -1)]
                self._client.log_batch(self._run_ids[key], metrics=metrics)
                del entries[: len(batch)]

    def _close(self, status: str) -> None:
        if any(self._pending.values()):
            self._send()
        for run_id in self._run_ids.values():
            assert self._client is not None
            self._client.set_terminated(run_id, status)
        if self._record is not None:
            self._record.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run as the tracking store has it.

    Attributes:
        run_id: Its number in the store.
        identity: Digest of the settings, inputs and code that it was made with.
        commit: Commit of the code, ``-dirty`` behind it if files differed, or ``unknown``.
        scores: Its scores by metric.
    """

    run_id: str
    identity: str
    commit: str
    scores: Mapping[str, float]


def current_runs(teacher: str, student: str, uri: str | None = None) -> dict[RunKey, TrackedRun]:
    """Return the runs of a teacher and a student, without those that newer ones have replaced.

    A database that is not there is not made.

    Args:
        teacher: Name of the teacher.
        student: Name of the student.
        uri: Tracking address, as for :class:`RunGroup`.

    Raises:
        ConfigError: The store cannot be reached.
    """
    where = TrackingUri.resolve(uri)
    if where.database is not None and not where.database.exists():
        return {}
    tags = {"emo.teacher": teacher, "emo.student": student, "emo.current": "yes"}
    query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    found: list[Run] = []
    try:
        client, experiment_id = _connect(where)
        page = client.search_runs([experiment_id], query)
        found += page
        while page.token:
            page = client.search_runs([experiment_id], query, page_token=page.token)
            found += page
    except Exception as error:  # as in RunGroup
        raise _unusable(where, error) from error
    return {RunKey.from_tags(run.data.tags): _tracked(run) for run in found}


def _tracked(run: "Run") -> TrackedRun:
    tags, metrics = run.data.tags, run.data.metrics
    scores = {
        name.removeprefix(_SCORES): value
        for name, value in metrics.items()
        if name.startswith(_SCORES)
    }
    return TrackedRun(run.info.run_id, tags["emo.identity"], tags[COMMIT], scores)


@contextmanager
def tracking_after(written: str) -> Iterator[None]:
    """Track results whose files are written: a store that cannot be used is warned of.

    Failing then would cost the files, since Snakemake deletes what a failed job has written.

    Args:
        written: What is written and what MLflow lacks, for the warning.
    """
    try:
        yield
    except ConfigError as error:
        logger.warning("%s: %s", written, error)


def close_dead_runs(folder: Path = FOLDER) -> int:
    """Mark as KILLED the runs whose process has died on this machine without closing them.

    Cheap when there are none: MLflow is then not even imported.

    Returns:
        The number of runs closed.
    """
    closed = 0
    for path, record in dead_runs(folder).items():
        try:
            closed += _close_dead(record)
        except Exception as error:  # as in RunGroup: a store out of reach stops nothing
            logger.warning(
                "runs of a killed process stay open in %s: %s", record.uri, reason(error)
            )
            continue
        path.unlink(missing_ok=True)
    return closed


def _close_dead(record: LiveRuns) -> int:
    uri = TrackingUri.resolve(None)
    if uri.public != record.uri:  # the record leaves passwords out
        uri = TrackingUri(record.uri, chosen=False)
    if uri.database is not None and not uri.database.exists():
        return 0
    client, experiment_id = _connect(uri)
    # A successor may have reopened a run; its tags then name the successor.
    tags = [f"tags.`{name}` = '{value}'" for name, value in owner_tags(record.owner).items()]
    query = " and ".join(["attributes.status = 'RUNNING'", *tags])
    found = client.search_runs([experiment_id], query)
    for run in found:
        client.set_terminated(run.info.run_id, "KILLED")
    return len(found)


def _connect(uri: TrackingUri) -> tuple["MlflowClient", str]:
    """Return a client and the experiment's number, made by one process at a time.

    MLflow itself guards neither the making of its tables nor that of an experiment.
    """
    # An unreachable server should cost seconds, and no usage data should leave the machine.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "15")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    database = uri.database
    with exclusive(database or FOLDER / "tracking", "the tracking store"):
        if database is not None and not database.exists():
            # A process killed while it makes the tables would leave a file that stays broken.
            with atomic_file(database) as temporary:
                MlflowClient(f"sqlite:///{temporary}").search_experiments()
        client = MlflowClient(uri.value)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is not None:
            return client, experiment.experiment_id
        artifacts = str(database.parent / "mlartifacts") if database else None
        # The page then opens with runs, params and metrics, and not with traces.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        return client, client.create_experiment(EXPERIMENT, artifacts, tags)


def _unusable(uri: TrackingUri, error: Exception) -> ConfigError:
    return ConfigError(
        f"tracking store {uri.public} cannot be used ({reason(error)}); start the server, mend the "
        f"address, or unset `{VARIABLE}` to use {DEFAULT}"
    )


def _status(error: BaseException | None, interrupted: bool) -> str:
    if error is None:
        return "FINISHED"
    return "KILLED" if interrupted or isinstance(error, KeyboardInterrupt) else "FAILED"


def _last_steps(client: "MlflowClient", run: "Run") -> dict[str, int]:
    """Return the last step of each training metric that the run already holds."""
    return {
        name: max(metric.step for metric in client.get_metric_history(run.info.run_id, name))
        for name in run.data.metrics
        if not name.startswith((_SCORES, _COSTS))
    }
