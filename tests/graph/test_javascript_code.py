from vademecum.graph.javascript_code import read_javascript


def calls(text: str, path: str = "a.js") -> list[tuple[str, int]]:
    return [
        (one.target, one.line) for one in read_javascript(path, text).uses if one.kind == "call"
    ]


def test_imports_of_every_form() -> None:
    text = """import React, {useState as state} from 'react';
import * as path from 'node:path';
const express = require('express');
const {get, post: send} = require('axios');
state(); path.join(); express(); get(); send(); React.memo();
"""
    assert calls(text) == [
        ("react.useState", 5),
        ("node:path.join", 5),
        ("express", 5),
        ("axios.get", 5),
        ("axios.post", 5),
        ("react.default.memo", 5),
    ]
    found = read_javascript("a.js", text)
    assert [one.target for one in found.uses if one.kind == "import"] == [
        "react",
        "node:path",
        "express",
        "axios",
    ]


def test_receivers_and_scopes() -> None:
    text = """import express from 'express'
const app = express()
app.get('/x', (request, app2) => { app2.get(); request.send() })
function other(app) { app.post('/') }
app
  .use(one)
"""
    assert calls(text) == [
        ("express.default", 2),
        ("express.default().get", 3),
        ("express.default().use", 6),
    ]


def test_typescript_and_jsx() -> None:
    text = """import { Client } from 'pg';
import type { Pool } from 'pg';
async function load(pool: Pool): Promise<void> { await pool.query('x'); new Client().connect(); }
const Page = () => <Client.Provider value={1}><div/></Client.Provider>;
"""
    assert calls(text, "a.tsx") == [
        ("pg.Pool{}.query", 3),
        ("pg.Client", 3),
        ("pg.Client().connect", 3),
        ("pg.Client.Provider", 4),
    ]
    found = read_javascript("a.tsx", text)
    assert [(one.name, one.line) for one in found.functions] == [("load", 3), ("Page", 4)]


def test_what_cannot_be_parsed_does_no_harm() -> None:
    assert calls("import x from 'x';\nx.a();\nfunction ((( {") == [("x.default.a", 2)]
    assert calls("(" * 5000) == []
    assert read_javascript("a.js", "").uses == ()
