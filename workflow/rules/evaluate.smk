# Requires: a model folder, a prepared task.
# Makes: scores.json and predictions.parquet of every run.


rule evaluate:
    """Score a distilled student by its frozen embeddings, or, trained with labels, by its head."""
    input:
        student="results/{teacher}/{student}/{task}/{method}/seed{seed}/student",
        task="resources/tasks/{task}",
    output:
        scores="results/{teacher}/{student}/{task}/{method}/seed{seed}/scores.json",
        predictions="results/{teacher}/{student}/{task}/{method}/seed{seed}/predictions.parquet",
    log:
        "logs/evaluate/{teacher}/{student}/{task}/{method}/seed{seed}.log",
    benchmark:
        "results/benchmarks/evaluate/{teacher}/{student}/{task}/{method}/seed{seed}.tsv"
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        family=task_family,
        head=student_head,
        runs=student_runs,
        out=lambda wildcards, output: str(Path(output.scores).parent),
        code=code_version("emo.evaluate"),
    message:
        "Evaluate {wildcards.method}, seed {wildcards.seed}, on {wildcards.task}"
    shell:
        """
        python -m emo evaluate {input.student} \
            --task {input.task} \
            --family {params.family} \
            {params.head} \
            --runs {params.runs:q} \
            --out {params.out} \
            --log {log}
        """


rule evaluate_reference:
    """Score a teacher, or a student before distillation."""
    input:
        head=reference_head,
        model=reference_model,
        task="resources/tasks/{task}",
    output:
        scores="results/reference/{model}/{task}/scores.json",
        predictions="results/reference/{model}/{task}/predictions.parquet",
    log:
        "logs/evaluate_reference/{model}/{task}.log",
    benchmark:
        "results/benchmarks/evaluate_reference/{model}/{task}.tsv"
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        family=task_family,
        head=lambda wildcards, input: [f"--head={path}" for path in input.head],
        runs=model_runs,
        out=lambda wildcards, output: str(Path(output.scores).parent),
        code=code_version("emo.evaluate"),
    message:
        "Evaluate {wildcards.model} as it is on {wildcards.task}"
    shell:
        """
        python -m emo evaluate {input.model} \
            --task {input.task} \
            --family {params.family} \
            {params.head} \
            --runs {params.runs:q} \
            --out {params.out} \
            --log {log}
        """


rule speed:
    """Measure texts a second of a model, with the machine to itself."""
    input:
        model="resources/models/{model}",
        texts=expand("resources/texts/{texts}.parquet", texts=study.trained_texts()),
    output:
        "results/speed/{model}.json",
    log:
        "logs/speed/{model}.log",
    benchmark:
        "results/benchmarks/speed/{model}.tsv"
    conda:
        "../../envs/emo.yaml"
    threads: all_cores()
    resources:
        gpu=gpus(),
    params:
        texts=lambda wildcards, input: [f"--texts={path}" for path in input.texts],
        code=code_version("emo.speed"),
    message:
        "Measure the speed of {wildcards.model}"
    shell:
        "python -m emo speed {input.model} {params.texts} --out {output} --log {log}"
