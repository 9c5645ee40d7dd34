"""Errors as RFC 9457 problem documents: one table from error class to status."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from vademecum import errors

STATUS: dict[type[errors.VadeError], HTTPStatus] = {
    errors.UnknownCollection: HTTPStatus.NOT_FOUND,
    errors.AlreadyServing: HTTPStatus.CONFLICT,
    errors.UserForgotten: HTTPStatus.CONFLICT,
    errors.UnknownRun: HTTPStatus.NOT_FOUND,
    errors.RunNotOpen: HTTPStatus.CONFLICT,
    errors.NotAllowed: HTTPStatus.FORBIDDEN,
    errors.NotStored: HTTPStatus.NOT_FOUND,
    errors.BadInput: HTTPStatus.BAD_REQUEST,
    errors.FetchRefused: HTTPStatus.FORBIDDEN,
    errors.UnreadableSource: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NoVectors: HTTPStatus.CONFLICT,
    errors.ModelUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.LanguageModelFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ProjectionUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.VectorStoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.MissingExtra: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DatabaseUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DatabaseRefused: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ServerProblem: HTTPStatus.BAD_GATEWAY,
    errors.Interrupted: HTTPStatus.SERVICE_UNAVAILABLE,
}


def status_of(error: errors.VadeError) -> HTTPStatus:
    """That of the nearest class of the error which the table has."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem(
    status: int,
    detail: str,
    *,
    kind: str = "about:blank",
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(
        _fields(status, detail, kind, hint),
        status,
        media_type="application/problem+json",
        headers=dict(headers or {}),
    )


def told(error: errors.VadeError) -> dict[str, object]:
    """The fields of the problem document of an error."""
    return _fields(status_of(error), str(error), _kind(error), error.hint)


def _kind(error: errors.VadeError) -> str:
    return f"urn:vademecum:{type(error).__name__}"


def _fields(status: int, detail: str, kind: str, hint: str | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "type": kind,
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    return fields | ({"hint": hint} if hint else {})


def install(api: FastAPI) -> None:
    """Let every error of the API leave it as a problem document."""

    @api.exception_handler(errors.VadeError)
    async def ours(request: Request, error: errors.VadeError) -> JSONResponse:
        return problem(status_of(error), str(error), kind=_kind(error), hint=error.hint)

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        )
        return problem(422, wrong, hint="GET /openapi.json describes what is accepted.")

    @api.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, error.detail, headers=error.headers)

    @api.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        # The traceback goes to the server's log; the caller learns nothing of our insides.
        return problem(500, "unexpected error; the server's log has the details")
