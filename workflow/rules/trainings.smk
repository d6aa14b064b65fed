# What the rules distil, evaluate and search share: the settings, files and tracked runs of a
# training, be it one that counts or a trial of a search.


def signal_files(teacher, student, texts, method):
    """What a method asks for: a map and rows, or online the teacher and the map of its rows.

    A term on what the tuned teacher's head says asks for the record beside that head.
    """
    jobs = signal_jobs(study, teacher, student, texts, method)
    files = {name: job.result for name, job in jobs.items()}
    if study.methods[method].logits:
        files["tuning"] = asked_head(study, teacher, texts)
    return files


def trial_signals(wildcards):
    keys = ("teacher", "student", "texts", "method")
    return signal_files(*(wildcards[key] for key in keys))


def distil_signals(wildcards):
    """With a search, what it chose, too."""
    chosen = searched(wildcards)[-1:]
    return trial_signals(wildcards) | {"chosen": job.result for job in chosen}


def as_options(files):
    """Files as options of the command, which have the same names."""
    return [f"--{name.replace('_', '-')}={path}" for name, path in files.items()]


def distil_settings(wildcards):
    """Without the learning rate where a search replaces it: another default changes nothing then."""
    replaced = {"learning_rate"} if study.search else set()
    training = study.training.model_dump(mode="json", exclude=replaced)
    return training_settings(wildcards, int(wildcards.seed), training)


def trial_settings(wildcards):
    search = study.search
    training = study.training.model_dump(mode="json")
    training |= {
        "learning_rate": float(wildcards.rate),
        "steps": search.steps or study.training.steps,
        "collapsed": "keep",  # a rate that is too high comes last, and the search goes on
    }
    return training_settings(wildcards, search.seed, training)


def training_settings(wildcards, seed, training):
    return as_json(
        {
            "method": study.methods[wildcards.method].model_dump(mode="json"),
            "training": training,
            "family": study.text_family(wildcards.texts),
            "seed": seed,
        }
    )


def trial_keys(wildcards):
    """The runs of a trial; of one task where the wildcards name it."""
    keys = ("teacher", "student", "texts", "method", "rate")
    runs = trial_runs(study, *(wildcards[key] for key in keys))
    asked = wildcards.get("task")
    return as_json([asdict(run) for run in runs if asked in (None, run.task)])


def trial_scores(wildcards):
    return [job.result for job in searched(wildcards) if job.task]


def trials(wildcards):
    """Each rate with its score files, as the command wants them; judging a trial has a task."""
    files = {}
    for job in searched(wildcards):
        if job.task:
            files.setdefault(job.rate, []).append(job.result)
    return as_json(
        [
            {"learning_rate": float(rate), "scores": scores}
            for rate, scores in files.items()
        ]
    )


def searched(wildcards):
    keys = ("teacher", "student", "texts", "method")
    return list(search_jobs(study, *(wildcards[key] for key in keys)))


def distil_runs(wildcards):
    keys = training_runs(
        study,
        wildcards.teacher,
        wildcards.student,
        wildcards.texts,
        wildcards.method,
        int(wildcards.seed),
    )
    return as_json([asdict(key) for key in keys])


def training_record(wildcards):
    """The training that serves a task: tasks on the same text set share one."""
    keys = ("teacher", "student", "method", "seed")
    job = Job("distil", **{key: wildcards[key] for key in keys})
    return replace(job, texts=study.tasks[wildcards.task].texts).result


def student_head(wildcards):
    """The head of a student that was trained with labels, which is saved beside it."""
    return head_options(wildcards.task, training_record(wildcards))


def trial_head(wildcards):
    trial = ("teacher", "student", "texts", "method", "rate")
    record = Job("trial", **{key: wildcards[key] for key in trial}).result
    return head_options(wildcards.task, record)


def head_options(task, record):
    """The head beside the record of a training."""
    labelled = study.texts[study.tasks[task].texts].labelled
    return [f"--head={Path(record).with_name('task_head.json')}"] if labelled else []


def student_link(wildcards):
    texts = study.tasks[wildcards.task].texts
    return f"../../../trained/{texts}/{wildcards.method}/seed{wildcards.seed}/student"


def student_runs(wildcards):
    key = {name: wildcards[name] for name in ("teacher", "student", "task", "method")}
    return as_json([key | {"seed": int(wildcards.seed)}])
