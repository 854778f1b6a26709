"""The host names of a server: a page of another site may reach it under that site's name.

The browser lets a page ask its own host alone; a name of an attacker that leads to 127.0.0.1 (DNS
rebinding) makes a server on loopback that host. The header Host then has the attacker's name.

Reference: https://www.rfc-editor.org/rfc/rfc9110#section-7.2 (Host), #section-15.5.20 (421)
"""

import functools
import ipaddress
import re
from collections.abc import Sequence


def hosts_of(address: str, allowed: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names, beside loopback names, by which a server is asked; None for any name.

    Args:
        address: which it listens on.
        allowed: what the user allows; "*.NAME" is all names below one.
    """
    return tuple(allowed) if allowed or _is_loopback(address) else None


@functools.lru_cache(maxsize=64)  # clients ask by few names, in every request
def is_asked_by(header: str, hosts: tuple[str, ...]) -> bool:
    """Return whether a header Host has a name of loopback, or one of `hosts`."""
    name = header.strip().lower()
    match = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^:]*?)\.?)(?::\d*)?", name)
    if match is None:
        return False
    name = match[1] or match[2]
    if name == "localhost" or name.endswith(".localhost") or _is_loopback(name):
        return True
    for host in map(str.lower, hosts):
        below = host.removeprefix("*")
        if name == host or (below != host and name.endswith(below) and name != below):
            return True
    return False


def _is_loopback(name):
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
