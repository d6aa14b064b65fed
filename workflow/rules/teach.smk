# Requires: a text set, the prepared teacher; for rows also the student and an alignment.
# Makes: results/{teacher}/store/{texts}, results/{teacher}/{student}/rows/{texts}/{request}
# Each is a folder of shards, which jobs fill apart, and store.json, which joins them.


scattergather:
    # `--set-scatter teach=100` spreads a text set over as many jobs.
    teach=2,


rule teach_basis:
    """Fit the components in which token states are stored, for a teacher that asks for fewer."""
    input:
        texts="resources/texts/{texts}.parquet",
        teacher=teacher_model,
        # Another doctor says nothing about signals that are stored already.
        doctor=ancient(teacher_doctor),
    output:
        directory("results/{teacher}/store/{texts}/basis"),
    log:
        "logs/teach_basis/{teacher}/{texts}.log",
    benchmark:
        "results/benchmarks/teach_basis/{teacher}/{texts}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        width=state_width,
        dtype=teacher_dtype,
        code=code_version("emo.teach_basis"),
    message:
        "Fit components of the token states of {wildcards.teacher} on {wildcards.texts}"
    shell:
        """
        python -m emo teach-basis {input.texts} \
            --teacher {input.teacher} \
            --width {params.width} \
            --dtype {params.dtype} \
            --out {output} \
            --log {log}
        """


rule teach_shard:
    """Run the teacher over a part of a text set."""
    input:
        lambda wildcards: store_basis(wildcards.teacher, wildcards.texts),
        texts="resources/texts/{texts}.parquet",
        teacher=teacher_model,
        doctor=ancient(teacher_doctor),
    output:
        directory("results/{teacher}/store/{texts}/{scatteritem}"),
    log:
        "logs/teach_shard/{teacher}/{texts}/{scatteritem}.log",
    benchmark:
        "results/benchmarks/teach_shard/{teacher}/{texts}/{scatteritem}.tsv"
    # The longest chains start here, so that they do not end a run alone.
    priority: 2
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        dtype=teacher_dtype,
        settings=store_settings,
        code=code_version("emo.teach"),
    message:
        "Store the signals of {wildcards.teacher} for {wildcards.texts}, {wildcards.scatteritem}"
    shell:
        """
        python -m emo teach {input.texts} \
            --teacher {input.teacher} \
            --dtype {params.dtype} \
            --settings {params.settings:q} \
            --out {output} \
            --log {log}
        """


rule teach:
    """Check and join the parts; the store serves every student, method and seed."""
    input:
        gather.teach("results/{{teacher}}/store/{{texts}}/{scatteritem}"),
    output:
        "results/{teacher}/store/{texts}/store.json",
    log:
        "logs/teach/{teacher}/{texts}.log",
    benchmark:
        "results/benchmarks/teach/{teacher}/{texts}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    params:
        code=code_version("emo.store"),
    message:
        "Join the signals of {wildcards.teacher} for {wildcards.texts}"
    shell:
        "python -m emo store gather {input} --out {output} --log {log}"


rule teach_rows_shard:
    """Add the attention rows that one student's method asks for, for a part of a text set."""
    input:
        texts="resources/texts/{texts}.parquet",
        teacher=teacher_model,
        student="resources/models/{student}",
        store="results/{teacher}/store/{texts}/store.json",
        alignment=rows_alignment,
    output:
        directory("results/{teacher}/{student}/rows/{texts}/{request}/{scatteritem}"),
    log:
        "logs/teach_rows_shard/{teacher}/{student}/{texts}/{request}/{scatteritem}.log",
    benchmark:
        "results/benchmarks/teach_rows_shard/{teacher}/{student}/{texts}/{request}/{scatteritem}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        dtype=teacher_dtype,
        precision=row_precision,
        code=code_version("emo.attention_rows"),
    message:
        "Store attention rows {wildcards.request} of {wildcards.teacher} for {wildcards.texts}, {wildcards.scatteritem}"
    # Rows that stand in results/{teacher} already, for another student, are the same to the bit:
    # that they are read from there changes no result, so they are no input.
    shell:
        """
        python -m emo teach-rows {input.texts} \
            --request {wildcards.request} \
            --teacher {input.teacher} \
            --student {input.student} \
            --store {input.store} \
            --alignment {input.alignment} \
            --dtype {params.dtype} \
            --precision {params.precision} \
            --reuse results/{wildcards.teacher} \
            --out {output} \
            --log {log}
        """


rule teach_rows:
    """Check and join the parts of the attention rows."""
    input:
        gather.teach(
            "results/{{teacher}}/{{student}}/rows/{{texts}}/{{request}}/{scatteritem}"
        ),
    output:
        "results/{teacher}/{student}/rows/{texts}/{request}/store.json",
    log:
        "logs/teach_rows/{teacher}/{student}/{texts}/{request}.log",
    benchmark:
        "results/benchmarks/teach_rows/{teacher}/{student}/{texts}/{request}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    params:
        code=code_version("emo.store"),
    message:
        "Join attention rows {wildcards.request} of {wildcards.teacher} for {wildcards.texts}"
    shell:
        "python -m emo store gather {input} --out {output} --log {log}"
