"""The header Host: pages of other sites do not reach a server on loopback."""

import pytest

from seqkeras.serving.http.application import Service
from seqkeras.serving.http.hosts import hosts_of, is_asked_by
from tests.serving.http.served import ask, served

LOOPBACK = (
    "localhost localhost:8000 LOCALHOST. app.localhost:1 127.0.0.1:65535 127.8.9.1 [::1] "
    "[::1]:8000 [::ffff:127.0.0.1]:80"
).split()
FOREIGN = (
    "evil.example evil.example:8000 localhost.evil.example evillocalhost 127.0.0.1.evil.example "
    "10.0.0.1 [2001:db8::1]:8000 [::1 [localhost].evil.example localhost:8000:1 "
    "127.0.0.1@evil.example"
).split()


def test_a_service_does_not_show_its_token():
    assert "secret" not in repr(Service([], token="secret"))


def test_a_server_on_loopback_is_asked_by_names_of_loopback():
    assert [hosts_of(address, []) for address in ("127.0.0.1", "127.3.2.1", "::1")] == 3 * [()]
    assert [name for name in [*LOOPBACK, "", *FOREIGN] if is_asked_by(name, ())] == LOOPBACK


def test_other_servers_are_asked_by_any_name_unless_some_are_allowed():
    assert hosts_of("0.0.0.0", []) is None and hosts_of("192.168.1.2", []) is None
    hosts = hosts_of("0.0.0.0", ["Models.example", "*.inner.example"])
    asked = ["models.example:80", "a.inner.example", "b.a.inner.example.", "localhost"]
    others = ["example", "a.models.example", "inner.example", "xinner.example", ".inner.example"]
    assert [name for name in [*asked, *others] if is_asked_by(name, hosts)] == asked


@pytest.mark.parametrize("path", ["/v1/bundles", "/", "/metrics", "/v1/models/letters"])
def test_a_foreign_name_is_refused_in_a_line_on_every_route(folders, path):
    with served({"letters": folders["letters"]}, hosts=()) as port:
        status, content = ask(port, path, headers={"host": "evil.example"})
        assert status == 421 and content["error"].startswith("the header Host must be localhost, ")
        assert content["error"].endswith("--allow-host; received 'evil.example'")
        assert ask(port, path, headers={"host": "localhost:3"})[0] in (200, 404)
        assert ask(port, "/v2/health/ready", headers={"host": "10.1.2.3:80"})[0] == 200  # a probe
