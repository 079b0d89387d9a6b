"""Access: foreign hosts and pages are refused, CORS is opt-in, and a token may be needed."""

import asyncio
from functools import partial

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from halfgraph.errors import SettingError
from halfgraph.serving.access import CLIENT, COOKIE, SIGN_IN, AccessControl, AccessRules, read_tokens, sign_in
from server_process import running

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
PAGE = "https://yasgui.org"
HERE = "http://127.0.0.1:8000"
GUARDED = AccessRules(tokens=(TOKEN, OTHER))


def ask(rules: AccessRules, path: str = "/", method: str = "GET", form=None, **headers: str) -> httpx.Response:
    """The answer to a request; underscores of the names of headers are hyphens."""

    async def send() -> httpx.Response:
        app = Starlette(
            routes=[
                Route("/", lambda request: PlainTextResponse(request.scope[CLIENT])),
                Route(SIGN_IN, partial(sign_in, rules=rules), methods=["POST"]),
            ]
        )
        transport = httpx.ASGITransport(AccessControl(app, rules), client=(headers.pop("client", "10.0.0.1"), 1))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, headers=named, data=form)

    return asyncio.run(send())


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:8000", "127.0.0.9", "[::1]:8000", "192.168.1.5", "my.lan"],
)
def test_names_and_addresses_of_the_server_are_served(host):
    assert ask(AccessRules.of(["127.0.0.1", "My.lan"], [], []), host=host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.nip.io",
        "localhost.evil.example",
        "localhost:80@evil",
        "a b",
        "[",
    ],
)
def test_a_name_that_was_rebound_to_the_server_is_refused(host):
    answer = ask(AccessRules(), host=host)
    assert answer.status_code == 403
    assert "--allow-host" in answer.json()["error"]["advice"]


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("origin", [PAGE, "null", "http://127.0.0.1:9000", "http://127.0.0.1", "http://localhost:8000"])
def test_a_page_of_another_origin_is_refused_and_may_read_nothing(origin, method):
    answer = ask(AccessRules(), method=method, origin=origin)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_own_page_is_served_also_behind_a_proxy_with_encryption():
    assert ask(AccessRules(), origin=HERE).status_code == 200
    assert ask(AccessRules(), host="127.0.0.1", origin="https://127.0.0.1").status_code == 200


def test_a_page_cannot_send_blind_requests_but_links_work():
    foreign = partial(ask, AccessRules(), sec_fetch_site="cross-site")
    assert foreign(sec_fetch_dest="image").status_code == 403
    assert foreign(sec_fetch_dest="iframe").status_code == 403
    assert foreign(sec_fetch_dest="document").status_code == 200
    assert ask(AccessRules(), sec_fetch_site="same-origin", sec_fetch_dest="empty").status_code == 200


@pytest.mark.parametrize("origins", [[PAGE], ["*"], [PAGE, "http://x:1"]])
def test_a_page_of_a_given_origin_may_read(origins):
    rules = AccessRules.of([], origins, [TOKEN])
    answer = ask(rules, origin=PAGE, authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ("*" if "*" in origins else PAGE)
    assert "access-control-allow-credentials" not in answer.headers
    assert ("Origin" in answer.headers.get("vary", "")) == ("*" not in origins)
    first = ask(rules, method="OPTIONS", origin=PAGE, access_control_request_method="POST")
    assert first.status_code == 200
    assert "POST" in first.headers["access-control-allow-methods"]
    assert "Authorization" in first.headers["access-control-allow-headers"]
    assert ask(rules, origin=PAGE).headers["access-control-allow-origin"]  # it may read that a token is missing


def test_other_origins_are_refused_also_if_one_is_given():
    answer = ask(AccessRules.of([], [PAGE], []), origin="https://evil.example")
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)
def test_a_request_without_its_token_is_refused(given):
    answer = ask(GUARDED, authorization=given)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["message"]
    assert ask(GUARDED, cookie=f"{COOKIE}=wrong; a=b").status_code == 401
    assert ask(GUARDED, "/nothing").status_code == 401


def test_a_request_with_a_token_is_served():
    assert ask(GUARDED, authorization=f"bearer {TOKEN}").status_code == 200
    assert ask(GUARDED, authorization=f"Bearer {OTHER}").status_code == 200
    assert ask(GUARDED, cookie=f"a=b; {COOKIE}={TOKEN}").status_code == 200


def test_a_browser_signs_in_by_a_form_and_keeps_the_token_in_a_cookie():
    form = ask(GUARDED, accept="text/html")
    assert (form.status_code, 'name="token"' in form.text) == (401, True)
    assert ask(GUARDED, SIGN_IN, "POST", {"token": "wrong"}).status_code == 401
    answer = ask(GUARDED, SIGN_IN, "POST", {"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", f"{COOKIE}={TOKEN}"))
    assert ask(GUARDED, cookie=cookie.split(";")[0]).status_code == 200
    assert ask(AccessRules(), SIGN_IN, "POST", {"token": TOKEN}).status_code == 401  # there is no token


def test_clients_are_told_apart_by_token_and_network():
    clients = {
        ask(GUARDED, authorization=f"Bearer {token}", client=address).text
        for token in (TOKEN, OTHER)
        for address in ("10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:1::", "unknown", "")
    }
    assert len(clients) == 2 * 5


def test_wrong_settings_are_reported(tmp_path):
    for origin in ("yasgui.org", "https://yasgui.org/", "ftp://a", ""):
        with pytest.raises(SettingError, match=r"^cors"):
            AccessRules.of([], [origin], [])
    for token in ("short", "has a space in it", "é" * 20):
        with pytest.raises(SettingError, match=r"^token"):
            AccessRules.of([], [], [token])
    with pytest.raises(SettingError, match="cannot read"):
        read_tokens(tmp_path / "nothing")
    (tmp_path / "empty").touch()
    with pytest.raises(SettingError, match="is empty"):
        read_tokens(tmp_path / "empty")


def test_a_server_for_other_machines_warns_without_a_token_and_takes_those_of_a_file(run_folder, tmp_path):
    (tmp_path / "tokens").write_text(f"{TOKEN}\n{OTHER}\n")
    with running(run_folder, "--host", "0.0.0.0") as open_server:
        assert "warning: anyone who reaches 0.0.0.0" in open_server.logged()
    options = ("--host", "0.0.0.0", "--token-file", str(tmp_path / "tokens"), "--cors", PAGE)
    with running(run_folder, *options) as server:
        assert "warning" not in server.logged()
        answers = [
            httpx.get(f"{server.address}/api/health", headers={"Authorization": f"Bearer {token}", **more}).status_code
            for token in ("wrong", TOKEN)
            for more in ({}, {"Origin": PAGE}, {"Host": "evil.example"})
        ]
        alive = httpx.get(f"{server.address}/api/health/live")
    assert answers == [401, 401, 403, 200, 200, 403]
    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
