"""The engine behind every way in, and the gRPC server around it.

``core`` has no transport in it. The server calls it, and so does the SDK's embedded backend:
both give the same report.
"""
