"""The scoring engine, its extractors and judges, and the gRPC server.

``engine`` has no transport. The server and the SDK's embedded backend both call it, so that both
return the same report.
"""
