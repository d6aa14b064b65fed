# Requires: the scores of every run, results/differences.csv, the tracked runs, docs/evidence.md.
# Makes: docs/evidence/{name}, and the table of that name in docs/evidence.md.


rule evidence:
    """Keep what a study found: scores with their tracked runs, differences, a table, a figure."""
    input:
        scores=all_scores,
        differences="results/differences.csv",
    output:
        # What is committed stays until all of the new is there.
        update("docs/evidence/{name}/scores.csv"),
        update("docs/evidence/{name}/differences.csv"),
        update("docs/evidence/{name}/methods.csv"),
        update("docs/evidence/{name}/table.md"),
        update("docs/evidence/{name}/forest.svg"),
    log:
        "logs/evidence/{name}.log",
    wildcard_constraints:
        name=r"[\w-]+",
    localrule: True
    conda:
        "../../envs/emo.yaml"
    params:
        study=as_json(study.model_dump(mode="json")),
        out=lambda wildcards, output: str(Path(output[0]).parent),
        # No input: the tables in it come from here.
        page=evidence_page,
        code=code_version("emo.evidence.stage"),
    message:
        "Keep the evidence of {wildcards.name}"
    shell:
        """
        python -m emo evidence \
            --settings {params.study:q} \
            --differences {input.differences} \
            --page {params.page} \
            --out {params.out} \
            --log {log}
        """
