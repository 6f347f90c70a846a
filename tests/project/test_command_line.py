"""The command line as a whole: what it lists, and how light it is."""

import json
import subprocess
import sys

from typer.main import get_command

from recollect.api.cli.main import app

HEAVY = [
    *("dateparser", "fastapi", "httpx", "langgraph", "mcp", "openai", "prompt_toolkit", "pydantic", "pymongo"),
    *("markdown_it", "pygments", "qdrant_edge", "rich", "uvicorn"),
]
COMMANDS = {
    *("serve", "worker", "mcp", "chat", "facts", "search", "threads", "stats"),
    *("doctor", "reindex", "eval", "embedder", "learn", "keys"),
    *("import", "export", "sync", "erase"),
}


def test_it_has_every_command_and_each_says_what_it_does() -> None:
    commands = getattr(get_command(app), "commands", {})
    assert set(commands) == COMMANDS
    for name, command in commands.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None) or parameter.name == "help", f"{name} {parameter.name}"


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import json, sys; sys.argv = ['recollect', '--help'];"
        "from recollect.api.cli.main import app; app(standalone_mode=False);"
        "print(json.dumps([name for name in json.loads(sys.stdin.read()) if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(HEAVY), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    headings = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert headings == ["Options:", "Serve and talk:", "Look after:", "Bring and take:"]
    assert "  chat " in done.stdout
    assert json.loads(done.stdout.splitlines()[-1]) == []
