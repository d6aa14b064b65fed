# Requires: a text set, the prepared teacher; for rows also the student and an alignment.
# Makes: results/{teacher}/store/{texts}, results/{teacher}/{student}/rows/{texts}/{request}


rule teach:
    """Run the teacher once over a text set; the store serves every student, method and seed."""
    input:
        texts="resources/texts/{texts}.parquet",
        teacher="resources/models/{teacher}",
    output:
        directory("results/{teacher}/store/{texts}"),
    log:
        "logs/teach/{teacher}/{texts}.log",
    benchmark:
        "results/benchmarks/teach/{teacher}/{texts}.tsv"
    # The longest chains start here, so that they do not end a run alone.
    priority: 2
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        dtype=teacher_dtype,
        code=code_version("emo.teach"),
    message:
        "Store the signals of {wildcards.teacher} for {wildcards.texts}"
    shell:
        """
        python -m emo teach {input.texts} \
            --teacher {input.teacher} \
            --dtype {params.dtype} \
            --out {output} \
            --log {log}
        """


rule teach_rows:
    """Add the attention rows that one student's method asks for."""
    input:
        texts="resources/texts/{texts}.parquet",
        teacher="resources/models/{teacher}",
        student="resources/models/{student}",
        store="results/{teacher}/store/{texts}",
        alignment=rows_alignment,
    output:
        directory("results/{teacher}/{student}/rows/{texts}/{request}"),
    log:
        "logs/teach_rows/{teacher}/{student}/{texts}/{request}.log",
    benchmark:
        "results/benchmarks/teach_rows/{teacher}/{student}/{texts}/{request}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        dtype=teacher_dtype,
        code=code_version("emo.attention_rows"),
    message:
        "Store attention rows {wildcards.request} of {wildcards.teacher} for {wildcards.texts}"
    shell:
        """
        python -m emo teach-rows {input.texts} \
            --request {wildcards.request} \
            --teacher {input.teacher} \
            --student {input.student} \
            --store {input.store} \
            --alignment {input.alignment} \
            --dtype {params.dtype} \
            --out {output} \
            --log {log}
        """
