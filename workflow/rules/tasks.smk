# Requires: the sources of the tasks.
# Makes: resources/tasks/{task}, resources/texts/{texts}.parquet


rule task:
    """Prepare a task: splits without leakage, unusable rows dropped and counted."""
    input:
        source=task_source,
        files=task_files,
    output:
        directory("resources/tasks/{task}"),
    log:
        "logs/task/{task}.log",
    benchmark:
        "results/benchmarks/task/{task}.tsv"
    conda:
        "../../envs/emo.yaml"
    params:
        settings=task_settings,
        code=code_version("emo.tasks"),
    message:
        "Prepare task {wildcards.task}"
    shell:
        """
        python -m emo task {wildcards.task} \
            --source {input.source:q} \
            --settings {params.settings:q} \
            --out {output} \
            --log {log}
        """


rule texts:
    """Gather training texts, without any text that a task of the study tests on."""
    input:
        unpack(texts_given),
        unseen=unseen_tasks,
    output:
        texts="resources/texts/{texts}.parquet",
        report="resources/texts/{texts}.json",
    log:
        "logs/texts/{texts}.log",
    benchmark:
        "results/benchmarks/texts/{texts}.tsv"
    conda:
        "../../envs/emo.yaml"
    params:
        given=texts_options,
        settings=texts_settings,
        unseen=lambda wildcards, input: [f"--unseen={path}" for path in input.unseen],
        code=code_version("emo.training_texts", "emo.labelled_texts"),
    message:
        "Gather the training texts {wildcards.texts}"
    shell:
        """
        python -m emo texts {params.given:q} {params.unseen} \
            --settings {params.settings:q} \
            --out {output.texts} \
            --log {log}
        """
