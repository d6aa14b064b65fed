# Requires: the scores of every run, the speed of every model, every store, what every job took.
# Makes: results/summary.csv, results/differences.csv, results/costs.csv, results/report.md,
# results/figures/


rule aggregate:
    """Gather scores, intervals, speeds and costs into tables and a figure."""
    input:
        scores=all_scores,
        # Their run times lie beside and are no input: a lost one is not worth a second training.
        made=intermediate_files(),
    output:
        summary=report(
            "results/summary.csv",
            caption="../report/summary.rst",
            category="Results",
            labels={"what": "every score"},
        ),
        differences=report(
            "results/differences.csv",
            caption="../report/differences.rst",
            category="Results",
            labels={"what": "every difference"},
        ),
        costs=report(
            "results/costs.csv",
            caption="../report/costs.rst",
            category="Results",
            labels={"what": "what each job cost"},
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
        code=code_version("emo.tracked_costs"),
    message:
        "Write the report"
    shell:
        "python -m emo report --settings {params.study:q} --out {params.out} --log {log}"
