"""Runs local ONNX models through fastembed."""
