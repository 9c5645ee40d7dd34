"""Scripts and the declarations of their packages: what is deprecated, and which call means what."""

import json
from pathlib import Path

import pytest

from graph.environments import install, project
from vademecum.app import App
from vademecum.graph.nodes import APIReference
from vademecum.graph.packages import Packages
from vademecum.graph.sources.typescript_api import read_package
from vademecum.graph.watch import radar

DECLARATIONS = {
    "package.json": json.dumps({"name": "@shop/lib", "version": "2.1.0", "types": "./types/main"}),
    "types/main.d.ts": """
        import { Base } from './base';
        export * from './base.js';
        export { inner as outer } from './inner';
        export * as tools from './inner';

        /** Sends it.
         * @example
         * send(1)
         */
        export declare function send(x: number): Answer;
        /** @deprecated since 2.0. Use {@link send} instead. */
        export declare function post(x: number): Answer;

        /** @deprecated */
        export function mixed(x: string): void;
        export function mixed(x: number): void;

        export interface Answer extends Base {
            text(): string;
            /** @deprecated Use `text` instead. */
            body(): string;
        }
        export declare class Client {
            constructor(url: string);
            get(path: string): Answer;
        }
        declare const client: Client;
        export default client;
        """,
    "types/base.d.ts": """
        export interface Base {
            /**
             * Closes.
             * @deprecated will be removed in 3.0
             */
            close(): void;
        }
        """,
    "types/inner.d.ts": """
        /** @deprecated use `send` */
        declare function inner(): void;
        export { inner };
        """,
}
WHOLE = {
    "package.json": json.dumps({"name": "chart.js", "version": "1.0.0"}),
    "index.d.ts": """
        declare function chart(x: number): void;
        declare namespace chart {
            /** @deprecated use `draw` */
            export function plot(): void;
        }
        export = chart;
        """,
}
CODE = {
    "a.ts": """
        import client, { Client, post, outer, mixed } from '@shop/lib';
        import * as shop from '@shop/lib';
        import chart from 'chart.js';
        const old = require('chart.js');

        function f(c: Client) {
            post(1);
            outer();
            mixed('x');
            c.get('/').body();
            client.get('/').close();
            new Client('u').get('/').text();
            shop.tools.inner();
            chart.plot();
            old.plot();
            shop.unknown();
            const part = require('@shop/lib/part');
            part.post(1);
        }
        """,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project(tmp_path / "node_modules" / "@shop" / "lib", DECLARATIONS)
    project(tmp_path / "node_modules" / "chart.js", WHOLE)
    return project(tmp_path / "src", CODE)


def test_radar_finds_what_declarations_call_deprecated(root: Path) -> None:
    report = radar(root, home=None)
    found = {one.line: (one.api, one.since, one.until, one.replacement) for one in report.findings}

    assert found == {
        8: ("@shop/lib.post", "2.0", None, "send"),
        9: ("@shop/lib.outer", None, None, "send"),
        11: ("@shop/lib.Answer.body", None, None, "text"),
        12: ("@shop/lib.Base.close", None, "3.0", None),
        14: ("@shop/lib.tools.inner", None, None, "send"),
        15: ("chart.js.plot", None, None, "draw"),
        16: ("chart.js.plot", None, None, "draw"),
    }
    one = report.findings[0]
    assert (one.ecosystem, one.package, one.version) == ("npm", "@shop/lib", "2.1.0")
    assert one.sentence == "@deprecated since 2.0. Use `send` instead."
    assert one.evidence == "@shop/lib/types/main.d.ts:13"
    assert report.packages == {"@shop/lib": "2.1.0", "chart.js": "1.0.0"}


async def test_calls_are_linked_to_the_references_of_packages(app: App, root: Path) -> None:
    report = await app.code.link(root, project="shop")
    again = await app.code.link(root, project="shop")
    uses = await app.graph.query("api_uses", project="shop", name="@shop/lib.Client.get")
    [send, post] = await app.graph.find(APIReference, ["@shop/lib.post", "@shop/lib.send"])
    replaced = await app.graph.query("replacements", name="@shop/lib.post", ecosystem="npm")
    near = await app.graph.query("neighbourhood", project="shop", path="a.ts")
    (root.parent / "node_modules" / "chart.js" / "package.json").write_text('{"version": "1.1.0"}')
    newer = await app.code.link(root, project="shop")

    assert (report.linked, report.libraries) == (1, {"@shop/lib": "2.1.0", "chart.js": "1.0.0"})
    assert (again.linked, newer.linked, newer.libraries["chart.js"]) == (0, 1, "1.1.0")
    assert [row["line_number"] for row in uses] == [11, 12, 13]
    assert post.name == "@shop/lib.send"
    assert post.example_code == "send(1)"
    assert (send.ecosystem, send.language, send.deprecated_in) == ("npm", "javascript", "2.0")
    assert [row["replacement"] for row in replaced] == ["@shop/lib.send"]
    assert "chart.js 1.0.0" in {row["name"] for row in near if row["relation"] == "EXPLAINS"}


def test_scripts_are_not_compared_with_python_packages(tmp_path: Path) -> None:
    install(tmp_path / ".venv", "yaml", "1.0", {"yaml/__init__.py": "def load(): ...\n"})
    files = {"a.js": "import yaml from 'yaml';\nyaml.parse('x');\n", "b.py": "import yaml\n"}
    report = radar(project(tmp_path, files), home=None)

    assert report.findings == []


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": "{"},
        {"package.json": "[]"},
    ],
)
def test_packages_that_cannot_be_read_are_told(tmp_path: Path, files: dict[str, str]) -> None:
    project(tmp_path / "node_modules" / "lib", files)
    packages = Packages(tmp_path)

    assert packages.resolve("lib.f()") is None
    assert packages.problems[0].startswith("lib: ")


def test_declarations_lead_neither_out_of_the_package_nor_in_circles(tmp_path: Path) -> None:
    project(tmp_path, {"secret.d.ts": "export declare function secret(): void;\n"})
    folder = project(
        tmp_path / "node_modules" / "lib",
        {
            "package.json": '{"version": "1", "types": "a.d.ts"}',
            "a.d.ts": """
                export * from './b';
                export * from '../../secret';
                export { x } from './b';
                export interface A extends B {}
                export interface B extends A {}
                """,
            "b.d.ts": "export * from './a';\nexport { x } from './a';\n",
        },
    )
    library = read_package(folder, "lib")

    assert sorted(library.apis) == ["lib", "lib.A", "lib.B"]
    assert Packages(tmp_path).resolve("lib.A{}.missing") is None
