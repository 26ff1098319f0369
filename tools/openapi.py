"""The OpenAPI document of the services over HTTP, made of the .proto files and their comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

__all__ = ["document_of"]

_Schema: TypeAlias = dict[str, Any]
_Path: TypeAlias = tuple[int, ...]

_JSON, _LINES, _PROTO = "application/json", "application/x-ndjson", "application/proto"
# Numbers of the fields in FileDescriptorProto and below, of which the paths of comments consist.
_MESSAGES, _ENUMS, _SERVICES, _PARTS = 4, 5, 6, 2
_SCALARS: Mapping[int, _Schema] = {
    FieldDescriptorProto.TYPE_STRING: {"type": "string"},
    FieldDescriptorProto.TYPE_BYTES: {"type": "string", "format": "byte"},
    FieldDescriptorProto.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptorProto.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptorProto.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptorProto.TYPE_UINT32: {"type": "integer", "format": "int64", "minimum": 0},
    FieldDescriptorProto.TYPE_UINT64: {"type": "string", "pattern": "^[0-9]+$"},
}
_INTRODUCTION = (
    "Every method is a POST request with the JSON form of its message, and answers as it does over "
    "gRPC. Names may be written as here or as in the .proto files. Responses leave out fields that "
    "are empty, zero or false. Methods with streams read or write newline-delimited JSON, a "
    "message in each line; an error after the first line is in the last line, under `error`. "
    "ListJobResults with `Accept: application/x-ndjson` returns all results, one in each line. "
    "Unary methods are also those of the Connect protocol, in JSON and in the binary form."
)
_STATUSES: Mapping[str, str] = {
    "400": "The message is invalid; the error names the field.",
    "401": "The API key is missing or not valid.",
    "403": "The key does not allow the call.",
    "404": "What the message names does not exist.",
    "409": "The request contradicts an earlier one.",
    "413": "The message is too large.",
    "415": "The content type or encoding is another one.",
    "429": "The server or the key is at a limit.",
    "499": "The call was cancelled.",
    "500": "The server failed.",
    "501": "The server does not support the request.",
    "503": "The server drains, or a judge cannot be reached.",
    "504": "The call took too long.",
}
_ERROR: _Schema = {
    "type": "object",
    "description": "Why a call failed, as the Connect protocol writes it.",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string", "description": "The gRPC status, such as invalid_argument."},
        "message": {"type": "string", "description": "What is wrong and what to do."},
        "details": {
            "type": "array",
            "description": "ErrorInfo, with a reason; BadRequest, with fields; RetryInfo.",
            "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": {"type": "string", "description": "Name of the message."},
                    "value": {"type": "string", "description": "The message, in base64."},
                    "debug": {"type": "object", "description": "The message as JSON."},
                },
            },
        },
    },
}


def document_of(descriptors: FileDescriptorSet) -> dict[str, Any]:
    """Return the document.

    Args:
        descriptors: The files, with their comments.
    """
    files = [_File(file=file, comments=_comments(file)) for file in descriptors.file]
    services = [(file, place, service) for file in files for place, service in file.services()]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hallujudge", "version": "", "description": _INTRODUCTION},
        "tags": [
            {"name": service.name, "description": file.comments.get((_SERVICES, place), "")}
            for file, place, service in services
        ],
        "security": [{"key": []}, {}],
        "paths": {
            path: operation
            for file, place, service in services
            for path, operation in file.paths(place, service)
        },
        "components": {
            "schemas": dict(sorted(_schemas(files))) | {"Error": _ERROR},
            "responses": dict(_responses()),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key. Servers on one machine may do without.",
                }
            },
        },
    }


def _schemas(files: Sequence[_File]) -> Iterator[tuple[str, _Schema]]:
    for file in files:
        for number, message in enumerate(file.file.message_type):
            yield message.name, file.message((_MESSAGES, number), message)
        for number, enum in enumerate(file.file.enum_type):
            yield enum.name, file.enum((_ENUMS, number), enum)


def _responses() -> Iterator[tuple[str, _Schema]]:
    for status, description in _STATUSES.items():
        response: _Schema = {
            "description": description,
            "content": {_JSON: {"schema": _reference("Error")}},
        }
        if status == "429":
            response["headers"] = {
                "Retry-After": {
                    "description": "Seconds to wait before another attempt.",
                    "schema": {"type": "integer"},
                }
            }
        yield status, response


def _comments(file: FileDescriptorProto) -> dict[_Path, str]:
    return {
        tuple(location.path): " ".join(location.leading_comments.split())
        for location in file.source_code_info.location
        if location.leading_comments
    }


def _reference(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name.rpartition('.')[2]}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One .proto file."""

    file: FileDescriptorProto
    """The file."""
    comments: Mapping[_Path, str]
    """Its comments by the place of what they stand above."""

    def services(self) -> Iterator[tuple[int, ServiceDescriptorProto]]:
        """Yield the services with their numbers."""
        yield from enumerate(self.file.service)

    def paths(self, place: int, service: ServiceDescriptorProto) -> Iterator[tuple[str, _Schema]]:
        """Yield the methods of a service by their paths."""
        for number, method in enumerate(service.method):
            comment = self.comments.get((_SERVICES, place, _PARTS, number), "")
            path = f"/{self.file.package}.{service.name}/{method.name}"
            yield path, {"post": _operation(service, method, comment)}

    def message(self, place: _Path, message: DescriptorProto) -> _Schema:
        """Return the schema of a message."""
        maps = {
            f".{self.file.package}.{message.name}.{nested.name}": nested
            for nested in message.nested_type
            if nested.options.map_entry
        }
        fields = enumerate(message.field)
        return {
            "type": "object",
            "description": self.comments.get(place, "") + _choices(message),
            "properties": {
                field.json_name: _described(
                    _field(field, maps), self.comments.get((*place, _PARTS, number), "")
                )
                for number, field in fields
            },
        }

    def enum(self, place: _Path, enum: EnumDescriptorProto) -> _Schema:
        """Return the schema of an enum."""
        values = [
            f"{value.name}: {self.comments.get((*place, _PARTS, number), '')}"
            for number, value in enumerate(enum.value)
        ]
        return {
            "type": "string",
            "description": " ".join((self.comments.get(place, ""), *values)),
            "enum": [value.name for value in enum.value],
        }


def _choices(message: DescriptorProto) -> str:
    """Return a sentence for each oneof."""
    sentences = []
    for number, oneof in enumerate(message.oneof_decl):
        names = [
            field.json_name
            for field in message.field
            if field.HasField("oneof_index")
            and field.oneof_index == number
            and not field.proto3_optional
        ]
        if names:
            sentences.append(f" At most one of {', '.join(names)} ({oneof.name}).")
    return "".join(sentences)


def _field(field: FieldDescriptorProto, maps: Mapping[str, DescriptorProto]) -> _Schema:
    if (entry := maps.get(field.type_name)) is not None:
        return {"type": "object", "additionalProperties": _value(entry.field[1])}
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return {"type": "array", "items": _value(field)}
    return _value(field)


def _value(field: FieldDescriptorProto) -> _Schema:
    if field.type_name:
        return _reference(field.type_name)
    return dict(_SCALARS[field.type])


def _described(schema: _Schema, comment: str) -> _Schema:
    return schema | {"description": comment} if comment else schema


def _operation(
    service: ServiceDescriptorProto, method: MethodDescriptorProto, comment: str
) -> _Schema:
    sent = _kinds(method.client_streaming, streams=method.server_streaming)
    returned = _kinds(method.server_streaming, streams=method.client_streaming)
    answer = {kind: {"schema": _reference(method.output_type)} for kind in returned}
    if method.name == "ListJobResults":
        either = [_reference("JobResult"), _reference(method.output_type)]
        answer[_LINES] = {"schema": {"anyOf": either}}
    return {
        "operationId": f"{service.name}_{method.name}",
        "tags": [service.name],
        "summary": comment.partition(". ")[0].removesuffix("."),
        "description": comment,
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": _reference(method.input_type)} for kind in sent},
        },
        "responses": {"200": {"description": "The response.", "content": answer}}
        | {status: {"$ref": f"#/components/responses/{status}"} for status in _STATUSES},
    }


def _kinds(stream: bool, *, streams: bool) -> tuple[str, ...]:
    """Return the content types of one side of a method."""
    if stream:
        return (_LINES,)
    return (_JSON,) if streams else (_JSON, _PROTO)
