# Requires: what a training requires; rules distil, student and evaluate.
# Makes: results/{teacher}/{student}/search/{texts}/{method}/chosen.json, which distil waits for
# where the study has a search.


use rule distil as trial with:
    input:
        unpack(trial_signals),
        texts="resources/texts/{texts}.parquet",
        student="resources/models/{student}",
        store="results/{teacher}/store/{texts}/store.json",
    output:
        "results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/training.json",
    log:
        "logs/trial/{teacher}/{student}/{texts}/{method}/rate{rate}.log",
    benchmark:
        "results/benchmarks/trial/{teacher}/{student}/{texts}/{method}/rate{rate}.tsv"
    params:
        settings=trial_settings,
        signals=lambda wildcards: as_options(trial_signals(wildcards)),
        runs=trial_keys,
        checkpoints="checkpoints/{teacher}/{student}/{texts}/{method}/rate{rate}",
        out=lambda wildcards, output: str(Path(output[0]).parent),
        code=code_version("emo.distil"),
    message:
        "Try {wildcards.method} with the learning rate {wildcards.rate} on {wildcards.texts}"


use rule student as trial_student with:
    input:
        "results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/training.json",
    output:
        directory(
            "results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/{task}/student"
        ),
    log:
        "logs/trial_student/{teacher}/{student}/{texts}/{method}/rate{rate}/{task}.log",
    params:
        target="../student",
    message:
        "Link the student of {wildcards.task}: {wildcards.method}, learning rate {wildcards.rate}"


use rule evaluate as evaluate_trial with:
    input:
        student="results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/{task}/student",
        task="resources/tasks/{task}",
    output:
        scores="results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/{task}/scores.json",
        predictions="results/{teacher}/{student}/search/{texts}/{method}/rate{rate}/{task}/predictions.parquet",
    log:
        "logs/evaluate_trial/{teacher}/{student}/{texts}/{method}/rate{rate}/{task}.log",
    benchmark:
        "results/benchmarks/evaluate_trial/{teacher}/{student}/{texts}/{method}/rate{rate}/{task}.tsv"
    params:
        family=task_family,
        head=trial_head,
        runs=trial_keys,
        out=lambda wildcards, output: str(Path(output.scores).parent),
        code=code_version("emo.evaluate"),
    message:
        "Evaluate {wildcards.method}, learning rate {wildcards.rate}, on {wildcards.task}"


rule choose:
    """Choose a method's learning rate by the validation splits."""
    input:
        trial_scores,
    output:
        "results/{teacher}/{student}/search/{texts}/{method}/chosen.json",
    log:
        "logs/choose/{teacher}/{student}/{texts}/{method}.log",
    benchmark:
        "results/benchmarks/choose/{teacher}/{student}/{texts}/{method}.tsv"
    localrule: True
    conda:
        "../../envs/emo.yaml"
    params:
        trials=trials,
        code=code_version("emo.search"),
    message:
        "Choose the learning rate of {wildcards.method} on {wildcards.texts}"
    shell:
        "python -m emo choose --settings {params.trials:q} --out {output} --log {log}"
