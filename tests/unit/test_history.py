from emo.history import History, read_history


def records(*steps):
    return [{"step": step, "loss": 0.1 * step} for step in steps]


def test_what_is_appended_is_read(tmp_path):
    history = History(tmp_path / "new" / "history.jsonl", last_step=0)
    for record in records(1, 2):
        history.append(record)
    assert read_history(tmp_path / "new" / "history.jsonl") == records(1, 2)


def test_steps_after_the_checkpoint_are_dropped(tmp_path):
    """They are taken again; kept, the curve would hold them twice."""
    path = tmp_path / "history.jsonl"
    first = History(path, 0)
    for record in records(1, 2, 3, 4):
        first.append(record)
    History(path, last_step=2).append({"step": 3, "loss": 9.0})
    assert read_history(path) == [*records(1, 2), {"step": 3, "loss": 9.0}]


def test_a_half_written_line_is_dropped(tmp_path):
    """Killed in the middle of a line."""
    path = tmp_path / "history.jsonl"
    History(path, 0).append(records(1)[0])
    with path.open("a") as stream:
        stream.write('{"step": 2, "lo')
    assert read_history(path) == records(1)
    History(path, last_step=1).append(records(2)[0])
    assert read_history(path) == records(1, 2)


def test_a_file_that_is_not_there_has_no_records(tmp_path):
    assert read_history(tmp_path / "history.jsonl") == []


def test_numbers_come_back_to_the_bit(tmp_path):
    History(tmp_path / "h.jsonl", 0).append({"step": 1, "loss": 0.1 + 0.2})
    assert read_history(tmp_path / "h.jsonl")[0]["loss"] == 0.1 + 0.2
