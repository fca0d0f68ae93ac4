"""The page is served to its own address and nobody else, and can load nothing from elsewhere."""

import http.client
import json
import threading

import pytest
from plan.making import asked, planner_of
from support.sizes import PATIENCE

from gridveil.planning.server import Server
from gridveil.planning.wind import Wind


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    planner = planner_of(lambda: [Wind()], tmp_path_factory.mktemp("plan") / "ledger.sqlite")
    made = Server(planner)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    planner.close()


def ask(server, path, *, method="GET", body=None, **headers):
    """The status, headers and body of an answer. A header of None is left out."""
    host = f"127.0.0.1:{server.server_port}"
    given = {"Host": host, **{name.replace("_", "-"): one for name, one in headers.items()}}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.putrequest(method, path, skip_host=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, dict(reply.getheaders()), text


def post(server, body=None, **headers):
    path = f"/{server.token}/api/plan"
    own = {"Origin": f"http://127.0.0.1:{server.server_port}", "Content_Type": "application/json"}
    return ask(
        server,
        path,
        method="POST",
        body=json.dumps(asked()).encode() if body is None else body,
        **{**own, **headers},
    )


def test_it_listens_on_the_loopback_address_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("place", ["", "plan.js", "plan.css", "api/start"])
def test_the_page_and_its_parts(server, place):
    status, headers, body = ask(server, f"/{server.token}/{place}")
    assert status == 200
    assert body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in headers


@pytest.mark.parametrize("place", ["", "plan.js", "plan.css"])
def test_the_page_loads_nothing_from_elsewhere(server, place):
    text = ask(server, f"/{server.token}/{place}")[2].decode()
    assert not any(word in text for word in ("http:", "https:", "@import", "url(", "eval("))
    assert "<script>" not in text
    assert "style=" not in text


def test_the_page_answers_itself(server):
    status, _, body = post(server)
    assert status == 200
    assert json.loads(body)["command"].startswith("gridveil wind release scada.csv")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", None])
def test_a_foreign_name_is_refused(server, host):
    assert ask(server, f"/{server.token}/", Host=host)[0] == 403
    assert post(server, Host=host)[0] == 403


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/api/start", "//", "/favicon.ico"])
def test_without_the_token_nothing_is_told(server, path):
    status, _, body = ask(server, path)
    assert status == 403
    assert body == b"Open the address that gridveil plan printed."


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_page_may_not_ask(server, headers):
    status, _, body = post(server, **headers)
    assert status == 403
    assert b"gridveil wind" not in body


def test_localhost_is_the_same_computer(server):
    host = f"localhost:{server.server_port}"
    assert post(server, Host=host, Origin=f"http://{host}")[0] == 200
    assert post(server, Host=host)[0] == 403  # the page's other name is another origin


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_only_json_is_a_question(server, kind):
    assert post(server, Content_Type=kind)[0] == 415


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"[" * 50_000, b"\xff"])
def test_nonsense_is_refused(server, body):
    assert post(server, body)[0] == 400


def test_too_long_a_question_is_refused(server):
    assert post(server, b" " * 70_000)[0] == 400


def test_a_bad_choice_is_answered_in_words(server):
    bad = asked(private=[{"name": "power", "alpha": "0"}])
    status, _, body = post(server, json.dumps(bad).encode())
    assert status == 200
    answer = json.loads(body)
    assert "alpha must be a positive number" in answer["faults"]["alpha-power"]
    assert answer["command"] is None
    status, _, body = post(server, json.dumps(asked(kind="water")).encode())
    assert json.loads(body)["remedy"]


@pytest.mark.parametrize("place", ["../answers.py", "page/index.html", "plan.js/", "api/plan"])
def test_nothing_else_is_there(server, place):
    assert ask(server, f"/{server.token}/{place}")[0] == 404


def test_other_methods_are_not_known(server):
    assert ask(server, f"/{server.token}/", method="DELETE")[0] == 501
