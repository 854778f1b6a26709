import pytest

pytest.importorskip("starlette", reason="needs serving/requirements-http.txt")

from starlette.testclient import TestClient

from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.served_bundle import Opening
from tests.serving.http.served import on_socket


@pytest.fixture(scope="package")
def service(folders):
    """A `Service` of them all."""
    return Service([*folders.items()], Opening(threads=1), log=False)


@pytest.fixture(scope="package")
def client(service):
    with TestClient(Application(service)) as client:
        yield client


@pytest.fixture(scope="package")
def port(service):
    with on_socket(service) as port:
        yield port
