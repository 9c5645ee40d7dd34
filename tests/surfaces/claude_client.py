"""The real Claude Code, installed once from npm into a cache folder, and run headless."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from anthropic_server import MessagesServer
from npm import installed

VERSION = "2.1.329"


def claude() -> Path:
    """The client's command. Skips the test where it cannot be had."""
    folder = installed("@anthropic-ai/claude-code", VERSION)
    return folder / "node_modules" / ".bin" / "claude"


@dataclass(frozen=True, kw_only=True)
class Client:
    command: Path
    user: Path
    """Its HOME."""
    certificates: Path
    """Of the authority that vouches for the sites it may fetch from."""

    def ask(
        self,
        model: MessagesServer,
        prompt: str = "Look it up.",
        *arguments: str | Path,
        allowed: str = "WebFetch",
        **variables: str,
    ) -> str:
        """One headless session; what it says at the end."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            # Otherwise the model would have to search for WebFetch first.
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NODE_EXTRA_CA_CERTS": str(self.certificates),
        } | variables
        done = subprocess.run(
            [self.command, "-p", prompt, "--allowedTools", allowed, *arguments],
            env=environment,
            cwd=self.user,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()
