"""Starts a service that a setting must stop: one sentence, exit code 2, nothing left behind."""

from pathlib import Path

from tests.service.support.running import START_SECONDS, Service


def stopped_start(folder: Path, **settings: str) -> str:
    """Start a service that must not start; return its output."""
    stopped = Service(folder, **settings).start(wait=False)
    assert stopped.process is not None
    try:
        assert stopped.process.wait(START_SECONDS) == 2, stopped.log
    finally:
        stopped.http.close()
        if stopped.process.poll() is None:
            stopped.kill()
    assert stopped.log.startswith("error: "), stopped.log
    assert "Traceback" not in stopped.log
    return stopped.log
