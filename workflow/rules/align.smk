# Requires: a text set, both prepared models.
# Makes: results/{teacher}/{student}/alignment/{texts}/{alignment}.parquet


rule align:
    """Map teacher tokens to student tokens by least edit distance."""
    input:
        texts="resources/texts/{texts}.parquet",
        teacher=teacher_model,
        student="resources/models/{student}",
    output:
        "results/{teacher}/{student}/alignment/{texts}/{alignment}.parquet",
    log:
        "logs/align/{teacher}/{student}/{texts}/{alignment}.log",
    benchmark:
        "results/benchmarks/align/{teacher}/{student}/{texts}/{alignment}.tsv"
    priority: 2
    conda:
        "../../envs/emo.yaml"
    params:
        request=alignment_request,
        code=code_version("emo.alignment.stage"),
    message:
        "Align {wildcards.teacher} with {wildcards.student} on {wildcards.texts}: {wildcards.alignment}"
    shell:
        """
        python -m emo align {input.texts} \
            --teacher {input.teacher} \
            --student {input.student} \
            --method {params.request.method} \
            --text {params.request.text} \
            --out {output} \
            --log {log}
        """
