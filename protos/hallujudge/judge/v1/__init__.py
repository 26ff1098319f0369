"""The wire package hallujudge.judge.v1: generated code, see the .proto files."""
