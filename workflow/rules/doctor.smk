# Requires: the prepared teacher, or the tuned one.
# Makes: results/{teacher}/doctor.json, for a tuned teacher results/{teacher}/tuned/{texts}/doctor.json,
# without which no signals of the teacher are stored.


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


use rule doctor as doctor_tuned with:
    input:
        "results/{teacher}/tuned/{texts}/model",
    output:
        "results/{teacher}/tuned/{texts}/doctor.json",
    log:
        "logs/doctor_tuned/{teacher}/{texts}.log",
    benchmark:
        "results/benchmarks/doctor_tuned/{teacher}/{texts}.tsv"
    message:
        "Examine {wildcards.teacher}, tuned for {wildcards.texts}"
