"""Sentence encoders on onnxruntime: the graph writer, its cache and the encoder."""
