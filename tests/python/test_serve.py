#!/usr/bin/env python3
"""peer.serve: a session says over HTTP what an agent does, until it leaves."""
import _package  # noqa: F401: finds the package
from _peers import ONES, Peers
from _scene import check, run_tests

BODY = f"""
    import urllib.error, urllib.request
    {ONES}

    def ask(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{{port}}{{path}}", timeout=30) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    with join(x) as peer:
        port = peer.serve()
        for _ in range(20):
            peer.mix()
            time.sleep(0.02)
        if RANK == 0:
            print(ask("/readyz?verbose"), ask("/livez"), ask("/x")[0])
            print(ask("/metrics")[1])
        for place, public in (("127.0.0.1:0", False), ("127.0.0.1", False), ("0.0.0.0:0", False)):
            try:
                peer.serve(place, public)
            except starling.Error as error:
                print(error)
        peer.average()
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{{port}}/livez", timeout=30)
    except urllib.error.URLError as over:
        print("over:", over.reason)
"""


def test_a_session_serves_until_it_leaves(scene):
    code, out, said = Peers(scene, BODY).wait()[0]
    check(code == 0, said)
    for words in (
        "(200, '[+]loop ok\\n[+]training ok\\n[+]neighbours ok\\n[+]progress ok\\n",
        "(200, 'ok\\n') 404",
        'rank="0"} 1\n',
        'starling_edge_up{peer="1"} 1\n',
        "serve: this session serves already",
        "serve: '127.0.0.1' is not HOST:PORT",
        "serve: 0.0.0.0 is beyond loopback, where anybody may look, unencrypted, at what is told "
        "here: say public if they may",
        "over: [Errno 111]",
    ):
        check(words in out, f"{words}: {out}")
    check("starling_loss" not in out, out)  # it is the caller's


if __name__ == "__main__":
    run_tests()
