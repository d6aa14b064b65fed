"""The same trainings with a teacher that is asked for each batch instead of read."""

from emo.config_store import StoreSettings
from emo.distil_inputs import DistilInputs

from ..stores import make_store
from .tiny_training import settings

ONLINE = StoreSettings(states="online")


def online_store(files):
    """The teacher's signals without token states, made when they are first asked for."""
    folder = files.folder / "online"
    if not folder.exists():
        make_store(files.teacher, files.texts, folder, settings=ONLINE)
    return folder / "store.json"


def online_inputs(files, form="emo", method=None, **changes):
    request = settings(form, method=method).request
    asked = request.alignment or request.rows
    inputs = {
        "student": files.student,
        "texts": files.texts,
        "store": online_store(files),
        "alignment": files.alignment(request.alignment.name) if request.alignment else None,
        "rows": None,
        "teacher": files.teacher if asked else None,
        "row_alignment": files.alignment(request.rows.map.name) if request.rows else None,
    }
    return DistilInputs(**inputs | changes)


def stored_inputs(files, form="emo", method=None):
    request = settings(form, method=method).request
    return DistilInputs(
        student=files.student,
        texts=files.texts,
        store=files.store,
        alignment=files.alignment(request.alignment.name) if request.alignment else None,
        rows=files.rows(request.rows.name) if request.rows else None,
    )
