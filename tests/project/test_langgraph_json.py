import json
from pathlib import Path

from langgraph_cli.config import validate_config_file

PATH = Path(__file__).parents[2] / "langgraph.json"


def test_it_names_modules_and_the_same_service() -> None:
    config = json.loads(PATH.read_text(encoding="utf-8"))

    assert config["graphs"] == {"recollect": "recollect.graph.workflow:graph"}
    assert config["http"] == {"app": "recollect.api.app:app"}


def test_langgraph_accepts_it() -> None:
    assert validate_config_file(PATH).get("dependencies") == ["."]
