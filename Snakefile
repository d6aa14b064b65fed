from snakemake.utils import min_version

min_version("9.19")


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/trainings.smk"
include: "workflow/rules/fetch.smk"
include: "workflow/rules/tasks.smk"
include: "workflow/rules/align.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/doctor.smk"
include: "workflow/rules/teach.smk"
include: "workflow/rules/distil.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/search.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/evidence.smk"


rule all:
    default_target: True
    input:
        intermediate_files(),
        "results/summary.csv",
        "results/differences.csv",
        "results/costs.csv",
        "results/report.md",
        "results/figures/score_speed.png",
    localrule: True
