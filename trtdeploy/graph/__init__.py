"""ONNX models: load, save, look things up, and rewrite them pass by pass.

Weights stay on the disk while a model is worked on: ``load`` reads the structure and remembers
where each large tensor lies, ``save`` streams the tensors through. Memory is bounded by one
chunk, whatever the size of the model.
"""
