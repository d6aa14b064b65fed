# Requires: a text set, the teacher's signals, the prepared student, what the method asks for.
# Makes: results/{teacher}/{student}/trained/{texts}/{method}/seed{seed}, and a student per task.


rule distil:
    """Train a student; an interrupted training goes on from its last whole checkpoint."""
    input:
        unpack(distil_signals),
        texts="resources/texts/{texts}.parquet",
        student="resources/models/{student}",
        store="results/{teacher}/store/{texts}/store.json",
    output:
        # The folder appears whole. Its student is no declared output: Snakemake would delete it
        # before a new training, and the links to it would dangle if that one failed.
        "results/{teacher}/{student}/trained/{texts}/{method}/seed{seed}/training.json",
    log:
        "logs/distil/{teacher}/{student}/{texts}/{method}/seed{seed}.log",
    benchmark:
        "results/benchmarks/distil/{teacher}/{student}/{texts}/{method}/seed{seed}.tsv"
    priority: 1
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        settings=distil_settings,
        signals=lambda wildcards: as_options(distil_signals(wildcards)),
        runs=distil_runs,
        # Checkpoints lie where no rule declares an output, since outputs are deleted on failure.
        checkpoints="checkpoints/{teacher}/{student}/{texts}/{method}/seed{seed}",
        out=lambda wildcards, output: str(Path(output[0]).parent),
        code=code_version("emo.distil"),
    message:
        "Distil {wildcards.teacher} into {wildcards.student} on {wildcards.texts}: {wildcards.method}, seed {wildcards.seed}"
    shell:
        """
        python -m emo distil {input.texts} \
            --settings {params.settings:q} \
            --student {input.student} \
            --store {input.store} \
            {params.signals} \
            --runs {params.runs:q} \
            --checkpoints {params.checkpoints} \
            --out {params.out} \
            --log {log}
        """


rule student:
    """Show the trained student under each task it serves."""
    input:
        training_record,
    output:
        directory("results/{teacher}/{student}/{task}/{method}/seed{seed}/student"),
    log:
        "logs/student/{teacher}/{student}/{task}/{method}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/emo.yaml"
    params:
        target=student_link,
    message:
        "Link the student of {wildcards.task}: {wildcards.method}, seed {wildcards.seed}"
    shell:
        "ln -s {params.target} {output} > {log} 2>&1"
