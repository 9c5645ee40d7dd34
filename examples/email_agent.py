"""An agent that answers mail and remembers whom it works for.

    uv run examples/email_agent.py MAIL.eml…

For each message: look the sender up, put their memory into the system prompt, reply, and once the
reply is out, remember the exchange. `reply` is where a language model belongs; here it only names
the subject, so that the example runs without one.
"""

import asyncio
import sys
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parseaddr
from pathlib import Path

from vademecum.app import App
from vademecum.errors import VadeError
from vademecum.settings import load_settings

AGENT = "policy"
PROMPT = "You answer questions about policy. Be polite."


async def answer(app: App, mail: EmailMessage) -> tuple[str, str]:
    """The system prompt with the sender's memory, and the reply."""
    sender = parseaddr(str(mail["From"] or ""))[1]
    body = mail.get_body(("plain",))
    text = body.get_content() if body else ""
    prompt = await app.memory.inject(sender, PROMPT, note=True)
    said = reply(prompt, mail)
    await app.memory.update(
        sender, message=text, reply=said, exchange=str(mail["Message-ID"] or ""), agent=AGENT
    )
    return prompt, said


def reply(prompt: str, mail: EmailMessage) -> str:
    return f"Thank you for your message about {mail['Subject']}."


async def main(paths: list[Path]) -> None:
    """Raises OSError where a file cannot be read."""
    async with App.open(load_settings()) as app:
        for path in paths:
            with path.open("rb") as file:
                mail = BytesParser(EmailMessage, policy=policy.default).parse(file)
            prompt, said = await answer(app, mail)
            print(f"--- {path.name}\n{prompt}\n\n{said}\n")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: email_agent.py MAIL.eml…")
    try:
        asyncio.run(main([Path(name) for name in sys.argv[1:]]))
    except (OSError, VadeError) as error:
        sys.exit(f"email_agent.py: {error}")
