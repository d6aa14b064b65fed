# Requires: the scores of every run, the speed of every model.
# Makes: results/summary.csv, results/report.md, results/figures/


rule aggregate:
    """Gather scores, intervals and speeds into tables and a figure."""
    input:
        scores=all_scores,
        speeds=expand("results/speed/{model}.json", model=chosen_models()),
    output:
        summary=report(
            "results/summary.csv",
            caption="../report/summary.rst",
            category="Results",
            labels={"what": "every score"},
        ),
        table=report(
            "results/report.md",
            caption="../report/results.rst",
            category="Results",
            labels={"what": "table and differences"},
        ),
        png=report(
            "results/figures/score_speed.png",
            caption="../report/figure.rst",
            category="Results",
            labels={"what": "score against speed"},
        ),
        svg="results/figures/score_speed.svg",
    log:
        "logs/aggregate.log",
    localrule: True
    conda:
        "../../envs/emo.yaml"
    params:
        study=as_json(study.model_dump(mode="json")),
        out=lambda wildcards, output: str(Path(output.summary).parent),
        code=code_version("emo.report.study"),
    message:
        "Write the report"
    shell:
        "python -m emo report --settings {params.study:q} --out {params.out} --log {log}"
