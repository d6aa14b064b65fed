# Requires: the prepared teacher.
# Makes: results/{teacher}/doctor.json, without which no signals of the teacher are stored.


rule doctor:
    """Examine a teacher before hours are spent on its signals; a fault stops the run."""
    input:
        "resources/models/{teacher}",
    output:
        "results/{teacher}/doctor.json",
    log:
        "logs/doctor/{teacher}.log",
    benchmark:
        "results/benchmarks/doctor/{teacher}.tsv"
    # Before what other chains could do meanwhile: a broken teacher is known early.
    priority: 3
    conda:
        "../../envs/emo.yaml"
    resources:
        gpu=gpus(),
    params:
        dtype=teacher_dtype,
        code=code_version("emo.doctor.examine"),
    message:
        "Examine {wildcards.teacher}"
    shell:
        "python -m emo doctor {input} --dtype {params.dtype} --out {output} --log {log}"
