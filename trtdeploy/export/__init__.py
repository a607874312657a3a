"""From a trained model to an ONNX file that deploys; adapters load their framework when used."""
