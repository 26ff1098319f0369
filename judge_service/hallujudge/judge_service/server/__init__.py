"""The gRPC server: servicer, interceptors, lifecycle."""
