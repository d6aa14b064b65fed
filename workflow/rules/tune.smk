# Requires: the prepared teacher, the task that a text set is made of, the tasks of the study.
# Makes: results/{teacher}/tuned/{texts}, of which `model` is the teacher from there on.


rule tune:
    """Tune a teacher on a task; an interrupted tuning goes on from its last whole checkpoint."""
    input:
        teacher="resources/models/{teacher}",
        task=tuning_task,
        unseen=unseen_tasks,
    output:
        # A head, where there is one, lies beside: the folder appears whole.
        model=directory("results/{teacher}/tuned/{texts}/model"),
        record="results/{teacher}/tuned/{texts}/tuning.json",
        history="results/{teacher}/tuned/{texts}/history.jsonl",
    log:
        "logs/tune/{teacher}/{texts}.log",
    benchmark:
        "results/benchmarks/tune/{teacher}/{texts}.tsv"
    # Everything that a teacher says waits for it.
    priority: 3
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        settings=tuning_settings,
        unseen=lambda wildcards, input: [f"--unseen={path}" for path in input.unseen],
        runs=tuning_keys,
        # Checkpoints lie where no rule declares an output, since outputs are deleted on failure.
        checkpoints="checkpoints/{teacher}/tuned/{texts}",
        out=lambda wildcards, output: str(Path(output.record).parent),
        code=code_version("emo.tuning.stage"),
    message:
        "Tune {wildcards.teacher} for {wildcards.texts}"
    shell:
        """
        python -m emo tune {input.teacher} \
            --task {input.task} \
            {params.unseen} \
            --settings {params.settings:q} \
            --runs {params.runs:q} \
            --checkpoints {params.checkpoints} \
            --out {params.out} \
            --log {log}
        """
