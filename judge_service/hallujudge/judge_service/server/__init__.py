"""The gRPC server: servicer, interceptors and lifecycle."""
