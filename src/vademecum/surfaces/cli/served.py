"""Asking the server of the home, which answers before a process of its own has started."""

import json
from collections.abc import Mapping
from typing import Any

from vademecum.settings import Settings

SECONDS = 2.0
"""How long a server is waited for; then we do the work ourselves."""


def answer_of_server(
    settings: Settings, path: str, asked: Mapping[str, object]
) -> dict[str, Any] | None:
    """What the server of this home and database says; None where there is none, or it does not
    answer with a result, and the work is to be done here, with the same result or error."""
    from vademecum.surfaces.http.instance import find_serving, token

    address = find_serving(settings.home, settings.database_url)
    if address is None:
        return None
    import http.client

    connection = http.client.HTTPConnection(address.host, address.port, timeout=SECONDS)
    try:
        connection.request(
            "POST",
            path,
            body=json.dumps(asked),
            headers={
                "Authorization": f"Bearer {token(settings.home)}",
                "Content-Type": "application/json",
            },
        )
        answer = connection.getresponse()
        said = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if answer.status == 200 and isinstance(said, dict) else None
